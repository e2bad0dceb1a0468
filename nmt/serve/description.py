"""The description of a run for GET /v1/models: its languages, heads, scores, training text, and example sentences.

Only files in the run folder are read: the settings name text files, but may be untrusted.
"""

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from nmt.build.link_scores import named_languages
from nmt.data.languages import UNNAMED, english_name
from nmt.runs.maturity import hardly_trained
from nmt.runs.run import Run, settings
from nmt.serve.first_sentences import first_sentences
from nmt.system.errors import UserError
from nmt.system.limits import written_as
from nmt.system.platform import shell_quoted
from nmt.text.known_words import KnownWords
from nmt.translation.translator import Translator

#: The choices that go into the label of a model before all other settings.
_NAMING = (
    "decoder",
    *(f"attention/{axis}" for axis in ("score", "normaliser", "window", "read")),
    "encoder",
    "context",
)
#: Settings that go into a label only if nothing else differs, and the maximum number of differences in a label.
_BESIDE, _MOST = ("trainer", "optimizer", "schedule", "search", "tokenizer", "data"), 3


def describe(
    run: Run, translator: Translator, words: KnownWords | None, languages: Any = None, checkpoint: str = "best"
) -> dict[str, Any]:
    """The description of a run for GET /v1/models; `languages` is used if the run does not name its languages."""
    facts = run.facts()
    codes = tuple(str(code) for code in facts.get("languages", []))
    source, target = codes if len(codes) == 2 else (None, None)
    if languages is not None and {source, target} & {None, *UNNAMED}:
        source, target = named_languages(languages, UNNAMED)
    model = translator.models[0]
    return {
        "fingerprint": fingerprint(run, checkpoint),
        "source": source,
        "target": target,
        "languages": [english_name(code or word) for code, word in ((source, "source"), (target, "target"))],
        "attends": translator.attends,
        "heads": list(translator.heads.names),
        "encoder_heads": list(model.encoder.heads),
        "self_heads": list(model.decoder.self_heads),
        "context_sentences": translator.context_sentences,
        "examples": first_sentences(run, translator, words),
        "trained_on": {"pairs": facts.get("pairs"), "data": facts.get("data")},
        **evaluated(run),
        "validation": validation(run),
        "hardly_trained": hardly_trained(run) or None,
    }


def evaluated(run: Run) -> dict[str, Any]:
    """The scores and splits that are now on disk, and the command that evaluates the run."""
    scores = {metric: scored(run, metric) for metric in ("bleu", "chrf")}
    return {**scores, "splits": run.splits(), "evaluate": evaluation_command(run)}


def evaluation_command(run: Run) -> str:
    """The shell command that evaluates a run."""
    return f"python -m nmt.evaluate {shell_quoted(f'run={run.folder}')}"


def fingerprint(run: Run, checkpoint: str) -> str:
    """The first 16 hex digits of the SHA-256 of a run's configuration and weights ("best" or "last")."""
    digest = hashlib.sha256()
    for path in (run.folder / "config.yaml", run.best if checkpoint == "best" and run.best.exists() else run.last):
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()[:16]


def validation(run: Run) -> dict[str, float] | None:
    """Scores, perplexity and step of the best validation; None without a validation."""
    best = [entry for entry in run.history() if entry.get("best")]
    names = {name: f"valid_{name}" for name in ("bleu", "chrf", "exact", "perplexity")} | {"step": "step"}
    return {name: best[-1][key] for name, key in names.items() if key in best[-1]} if best else None


def scored(run: Run, metric: str) -> dict[str, Any] | None:
    """A score of the first evaluated split with its signature; None without an evaluation.

    chrF is given only where BLEU is unreliable, together with the exact matches in per cent; else None.
    """
    for split in run.splits():
        with contextlib.suppress(UserError, KeyError, TypeError):
            scores = run.scores(split)
            if metric == "chrf" and scores.get("judged_by") != "chrf":
                return None
            exact = {"exact": scores["exact_matches"]} if metric == "chrf" else {}
            score = scores[metric]
            return {"score": score["value"], "signature": score["signature"], "split": split, **exact}
    return None


def labels(runs: Sequence[Run], ids: Sequence[str]) -> list[str]:
    """Labels that distinguish runs: choices or settings that differ; the id if nothing differs.

    Settings of training and search appear only if nothing else differs.
    """
    of_runs = []
    for run in runs:
        config = run.config()
        of_runs.append({f"choices.{name}": value for name, value in config.choices.items()} | settings(config))
    keys = [key for key in dict.fromkeys(key for each in of_runs for key in each)
            if len({str(each.get(key)) for each in of_runs}) > 1]  # fmt: skip
    label_keys = [f"choices.{name}" for name in _NAMING if f"choices.{name}" in keys]
    label_keys = (
        label_keys
        or [key for key in keys if "." in key and not key.startswith(("choices.", *_BESIDE))]
        or [key for key in keys if not key.startswith("choices.")]
    )
    run_labels = [
        " ".join(dict.fromkeys(_label(key, each[key]) for key in label_keys[:_MOST] if key in each)) for each in of_runs
    ]
    return [
        name if len(runs) < 2 or not label else f"{label} ({name})" if run_labels.count(label) > 1 else label
        for label, name in zip(run_labels, ids, strict=True)
    ]


def _label(key: str, value: object) -> str:
    """The name of a choice, or the last part of a setting's key and its value."""
    return str(value) if key.startswith("choices.") else f"{key.rpartition('.')[2]} {written_as(value)}"
