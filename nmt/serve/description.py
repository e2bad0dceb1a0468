"""What GET /v1/models says of a run: its languages, heads, scores, and a sentence that the page opens with.

Reads nothing outside the run folder: its settings name files of text, but a stranger may have written them.
"""

import contextlib
import hashlib
import re
from itertools import islice
from typing import Any

from nmt.build.link_scores import named_languages
from nmt.data.languages import UNNAMED, english_name, sample
from nmt.runs.run import EXAMPLE_FOLLOWS, Run
from nmt.system.errors import UserError
from nmt.system.foreign import inside
from nmt.translation.translator import Translator

_LINES = 50  # of an evaluation, to choose from
_LOG = 65_536  # bytes at the end of a log, where the sentence stands
_LENGTH = range(4, 81)  # characters


def describe(run: Run, translator: Translator, languages: Any = None) -> dict[str, Any]:
    """What GET /v1/models says of a run; `languages` are those of a run whose training has not named them."""
    codes = tuple(str(code) for code in run.facts().get("languages", []))
    source, target = codes if len(codes) == 2 else (None, None)
    if languages is not None and {source, target} & {None, *UNNAMED}:
        source, target = named_languages(languages, UNNAMED)
    model = translator.models[0]
    return {
        "fingerprint": fingerprint(run),
        "source": source,
        "target": target,
        "languages": [english_name(code or word) for code, word in ((source, "source"), (target, "target"))],
        "attends": translator.attends,
        "heads": list(translator.heads.names),
        "encoder_heads": list(model.encoder.heads),
        "self_heads": list(model.decoder.self_heads),
        "context_sentences": translator.context_sentences,
        "example": example(run),
        "bleu": scored(run, "bleu"),
        "chrf": scored(run, "chrf"),
        "splits": run.splits(),
        "validation": validation(run),
    }


def fingerprint(run: Run) -> str:
    """The first digits of a sum over the weights and the configuration of a run."""
    digest = hashlib.sha256()
    for path in (run.folder / "config.yaml", run.best if run.best.exists() else run.last):
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()[:16]


def validation(run: Run) -> dict[str, float] | None:
    """BLEU (chrF where BLEU cannot judge), exact matches and perplexity of the best validation; None without one."""
    best = [entry for entry in run.history() if entry.get("best")]
    names = {name: f"valid_{name}" for name in ("bleu", "chrf", "exact", "perplexity")} | {"step": "step"}
    return {name: best[-1][key] for name, key in names.items() if key in best[-1]} if best else None


def scored(run: Run, metric: str) -> dict[str, Any] | None:
    """A score of the first evaluated split with its signature; None without an evaluation, and for chrF beside BLEU.

    chrF comes with the exact matches in per cent, where BLEU cannot judge.
    """
    for split in run.splits():
        with contextlib.suppress(UserError, KeyError, TypeError):
            scores = run.scores(split)
            if metric == "chrf" and scores.get("judged_by") != "chrf":
                return None
            exact = {"exact": scores["exact_matches"]} if metric == "chrf" else {}
            found = scores[metric]
            return {"score": found["value"], "signature": found["signature"], "split": split, **exact}
    return None


def example(run: Run) -> str:
    """A sentence for the page's first view: of the run's evaluation, else of the validation set, else a date.

    Empty if there is none of these, and no one knows the run's source language.
    """
    languages = run.facts().get("languages", [])
    return _evaluated(run) or _validated(run) or (sample(str(languages[0])) if languages else "")


def _evaluated(run: Run) -> str:
    """A sentence of ordinary length from an evaluated split."""
    for split in run.splits():
        path = run.evaluation / split / "source.txt"
        with contextlib.suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as lines:
            some = [line.strip() for line in islice(lines, _LINES)]
            fitting = [line for line in some if 4 <= len(line.split()) <= 14]
            fitting += [line for line in some if len(line) in _LENGTH]  # a script may have no spaces
            if fitting:
                return fitting[0]
    return ""


def _validated(run: Run) -> str:
    """The sentence of the validation set that stands at the end of the log of a finished training."""
    with contextlib.suppress(OSError, UserError), inside(run.folder, "train.log").open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _LOG))
        _, mark, rest = file.read().decode("utf-8", errors="replace").rpartition(f"{EXAMPLE_FOLLOWS}\n")
        # The log numbers the words that are linked: "Ein[1] Hund[2]".
        sentence = re.sub(r"(?<=\S)\[\d+\](?=\s|$)", "", rest.partition("\n")[0].strip())
        return sentence if mark and len(sentence) in _LENGTH else ""
    return ""
