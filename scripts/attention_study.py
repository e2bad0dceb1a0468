"""The study of docs/attention-study.md: trains its variants, scores them, writes the page.

    python scripts/attention_study.py train multi30k=DIR [KEY=VALUE ...]     in parts: sent again, it goes on
    python scripts/attention_study.py score multi30k=DIR [alignments=DIR]    long sentences, word links; the records
    python scripts/attention_study.py builtin [KEY=VALUE ...]                the same on the built-in corpus, one seed
    python scripts/attention_study.py report                                 the page, from the records alone

DIR holds Multi30k (train.de.gz ...); `alignments` holds word links: of its validation and test sets
(multi30k_silver/val.de-en.sp and test_2016_flickr.de-en.sp) and of other text (deen/text.de, text.en, gold.sp).
Further KEY=VALUE words of `train` and `builtin` go to every training.
"""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from verbs import key_values, script, verb

from nmt.data.lines import read_lines
from nmt.files import write_text
from nmt.runs import Run, runs_in

SWEEP = Path("checkpoints", "attention-study")
BUILTIN = Path("checkpoints", "attention-study-builtin")
LONG = Path("checkpoints", "attention-study-long")
PAGE = Path("docs", "attention-study.md")
FOLDER = Path("docs", "attention-study")
RECORDS = FOLDER / "records"
BUILTIN_RECORDS = FOLDER / "builtin"
NOTES = FOLDER / "notes.md"  # what is to be said of these very runs, if anything
JOINED = 3  # neighbours that make a long sentence
SEEDS = "seed=1,2,3"
BASELINE = "bahdanau-1"
DEEN = ("text.de", "text.en", "gold.sp")  # words between spaces

#: One model for all, with one readout, so that wirings differ in when they attend and in nothing else: about two
#: million weights, which a core trains in six minutes.
MODEL = [
    *("model.embedding_size=128", "encoder.size=128", "decoder.size=256", "attention.size=128"),
    *("attention/score=additive", "decoder/readout=tanh", "decoder.readout.word=true", "trainer.tensorboard=false"),
]
MULTI30K = [
    *("data=multi30k", "data.source=de", "data.target=en", "tokenizer.split_digits=false", "trainer.epochs=4"),
]
#: What is compared: the name that begins a run's, where the values alone would not tell, and the overrides.
GROUPS = [
    ("", ["decoder=none,bahdanau"]),
    ("luong", ["decoder=luong", "attention/score=dot,general,concat,location,scaled_dot"]),
    (
        "luong",
        [
            *("decoder=luong", "attention/score=general", "attention/window=local_m,local_p"),
            "attention.window.radius=2,4",
        ],
    ),
    ("", ["decoder=bahdanau", "attention.heads=2,4"]),
    ("coverage", ["decoder=bahdanau", "attention.coverage=true"]),
    ("conditional", ["decoder=conditional"]),
    ("hard", ["decoder=bahdanau", "attention/read=hard"]),
]
#: Attention that is drawn to the links while it learns: only where the training text has links.
GUIDED = [("guided", ["decoder=bahdanau,luong", "trainer.guided_alignment=1"])]
#: What the exact links are put to: every mechanism, in the smaller of its sizes.
ONCE = [(prefix, [word.replace("=2,4", "=2") for word in words]) for prefix, words in [*GROUPS, *GUIDED]]
#: A word's share of the weight that makes a link, beside the best source word of each: the gold has links one to many.
THRESHOLD = 0.2


def main(arguments: list[str]) -> int:
    """Does one of the four parts; returns its exit status."""
    part, *words = arguments or [""]
    given = key_values(words)
    root = given.pop("multi30k", None)
    further = [f"{key}={value}" for key, value in given.items()]
    if part == "report" and not words:
        return report()
    if part == "builtin" and root is None:
        return builtin(further)
    if part not in ("train", "score") or root is None:
        print(__doc__, file=sys.stderr)
        return 1
    if part == "train":
        return train(SWEEP, GROUPS, [f"data.root={root}", *MULTI30K, SEEDS, *further])
    return score(Path(root), Path(given["alignments"]) if "alignments" in given else None)


def train(sweep: Path, groups: Sequence[tuple[str, list[str]]], words: Sequence[str]) -> int:
    """Trains what is not trained yet, a group after the other."""
    failed = 0
    for prefix, overrides in groups:
        given = [*MODEL, *overrides, *words]
        if any("," in word for word in given):
            status = verb("train", "-m", f"name={sweep.name}/{prefix}".strip("/"), *given)
        else:
            alone = [word for word in given if not word.startswith("jobs=")]  # how many of a sweep run at a time
            name = prefix or overrides[-1].rpartition(".")[2].replace("=", "-")  # as a sweep would have it: heads-2
            status = verb("train", f"name={name}", f"checkpoints={sweep}", "resume=auto", *alone)
        if status > 128:  # stopped by a signal
            return status
        failed |= status
    return failed


def finished(sweep: Path) -> list[Path]:
    """The folders of the runs that came to their end."""
    return [run for run in runs_in(sweep) if Run(run).read_object("run.json").get("status") == "finished"]


def builtin(further: Sequence[str]) -> int:
    """Trains every variant on the built-in corpus, whose links are exact, and keeps their error rates."""
    status = train(BUILTIN, ONCE, ["data=builtin", "seed=1", *further])
    if status:
        return status
    verbs = []
    for run in finished(BUILTIN):
        if not (run / "evaluation").exists():
            verbs.append(["evaluate", f"run={run}", "pictures=0"])
        words = ["align", f"run={run}", f"method={looked(run)}"]
        verbs += unless_aligned(run, [[*words, f"threshold={threshold}"] for threshold in ("null", THRESHOLD)])
    return side_by_side(verbs) or records(BUILTIN, BUILTIN_RECORDS, "bahdanau")


def unless_aligned(run: Path, verbs: list[list[str]]) -> list[list[str]]:
    """Nothing where the error rates of so many verbs are kept already; all of them where one was interrupted."""
    return [] if len(list((run / "alignments").glob("*.json"))) >= len(verbs) else verbs


def side_by_side(verbs: Sequence[list[str]]) -> int:
    """Runs the product's commands, one a core; returns the exit status of one that failed, or 0."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return max(pool.map(lambda words: verb(*words, "threads=1"), verbs), default=0)


def records(sweep: Path, folder: Path, baseline: str) -> int:
    """Writes what is compared, without the weights, and of the text only the sentences whose weights are shown."""
    return verb(
        "compare", f"runs={sweep}", f"records={folder}", "record_text=shown", f"baseline={baseline}", "pictures=0"
    )


def score(root: Path, links: Path | None) -> int:
    """Scores all runs on long sentences too, and on word links where there are any, and writes the records."""
    source, target = (LONG / f"test_2016_joined.{language}" for language in ("de", "en"))
    for path in (source, target):
        lines = read_lines(root / f"test_2016_flickr{path.suffix}.gz")
        joined = [" ".join(lines[first : first + JOINED]) for first in range(0, len(lines) - JOINED + 1, JOINED)]
        write_text(path, "".join(f"{line}\n" for line in joined))
    verbs = []
    for run in finished(SWEEP):
        if not (run / "evaluation" / "test_2016_flickr").exists():
            verbs.append(["evaluate", f"run={run}", "pictures=0"])
        if not any((run / "evaluation").glob(f"{source.name}-*/scores.json")):
            verbs.append(["evaluate", f"run={run}", f"source={source}", f"reference={target}", "pictures=0"])
        if links is not None:
            aligned = [["align", f"run={run}", f"method={looked(run)}", *words] for words in _links(root, links)]
            verbs += unless_aligned(run, aligned)
    return side_by_side(verbs) or records(SWEEP, RECORDS, BASELINE)


def looked(run: Path) -> str:
    """What `align` reads links off."""
    return "saliency" if run.name.partition("-")[0] == "none" else "attention"


def _links(root: Path, links: Path) -> list[list[str]]:
    """The words that make `align` score a run on each set of links, its shift chosen on the validation links."""

    def words(prefix: str, name: str) -> list[str]:
        sides = (f"{prefix}{side}={root / name}.{code}.gz" for side, code in (("source", "de"), ("target", "en")))
        return [*sides, f"{prefix}gold={links}/multi30k_silver/{name}.de-en.sp"]

    valid = [*words("valid_", "val"), "valid_words=moses"]
    deen = [f"{key}={links}/deen/{name}" for key, name in zip(("source", "target", "gold"), DEEN, strict=True)]
    return [["words=moses", *words("", "test_2016_flickr"), *valid], [*deen, *valid]]


def report() -> int:
    """Writes the page and its pictures from the records."""
    status, _, exact = compared(BUILTIN_RECORDS, "bahdanau", "pictures=0")
    if status:
        return status
    status, text, found = compared(RECORDS, BASELINE)
    if status:
        return status
    _, _, body = text.partition("\n\n")  # without its title
    lead, _, rest = body.partition("\n\n## ")
    remarks = [NOTES.read_text("utf-8")] if NOTES.exists() else []
    parts = [TITLE, lead, METHOD, *remarks, published(found), f"## {rest}", exact_links(exact)]
    write_text(PAGE, "\n\n".join(part.strip("\n") for part in parts) + "\n")
    return 0


def compared(records: Path, baseline: str, *words: str) -> tuple[int, str, dict[str, Any]]:
    """Compares records; returns the exit status, the text with its pictures' places as of the page, the figures."""
    status = verb("compare", f"runs={records}", f"output={FOLDER}", f"baseline={baseline}", "evaluate=false", *words)
    if status:
        return status, "", {}
    written, figures = FOLDER / "report.md", FOLDER / "report.json"
    text = written.read_text("utf-8").replace("](<pictures/", f"](<{FOLDER.name}/pictures/")
    found = json.loads(figures.read_text("utf-8"))
    for path in (written, figures):
        path.unlink()
    return 0, text, found


def exact_links(found: dict[str, Any]) -> str:
    """The error rates on the built-in corpus: a row a variant, the best source word or all above the threshold."""
    columns = {
        (own["gold"], way): {row["label"]: row["aer"][way]["mean"] for row in own["variants"] if way in row["aer"]}
        for own in found["alignments"]
        for way in sorted({way for row in own["variants"] for way in row["aer"]} - {"attention"})
    }
    best = {
        label: min(
            # Those without attention come last.
            (way == "saliency", column[label])
            for (_, way), column in columns.items()
            if label in column
        )
        for label in {label for column in columns.values() for label in column}
    }
    lines = [
        "## Where the links are exact",
        "",
        "Every mechanism, one seed each, on the built-in corpus (English to Basque), whose word links are known and "
        "not guessed: alignment error rate on its test set in per cent, less is better. `luong additive` and "
        "`bahdanau guided alignment 1` were trained with the links (`trainer.guided_alignment=1`). One link a target "
        "word cannot do better than 11.6 here, since "
        "the gold links some words to several.",
        "",
        f"| attention | {' | '.join(f'{gold}: {way}' for gold, way in columns)} |",
        f"|---|{'---:|' * len(columns)}",
    ]
    for label in sorted(best, key=best.__getitem__):
        cells = [f"{column[label]:.1f}" if label in column else "-" for column in columns.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


TITLE = "# Which attention? A study on Multi30k, German to English"
METHOD = f"""## What was done

Every variant is the same model but for its attention: embeddings of 128, a bidirectional GRU of 128 a direction, a
decoder of 256, a tanh readout of state, previous word and context, 4,000 joint pieces, four epochs of Multi30k's
29,000 captions, the same batches, learning rate and dropout, three seeds each. `none` has no attention, `bahdanau` is
additive, `luong` has input feeding; windows are around `luong` with `general`; heads, coverage, `hard` and
`conditional` have the additive score. Every variant but the baseline keeps the settings that suit the baseline: a
variant that needs others is treated unkindly. The long sentences are {JOINED} neighbours of test_2016_flickr joined to
one line, longer than all that was trained on: the models have learnt to end after one, so that BLEU there is low and
says who goes on, and perplexity, which is forced through the whole line, who still finds the place.
The word links are a statistical aligner's on the same test set, silver and not gold, and gold links of a hundred
sentences of Europarl, far from what was trained on.

    python scripts/attention_study.py train multi30k=DIR precision=bf16
    python scripts/attention_study.py score multi30k=DIR alignments=DIR
    python scripts/attention_study.py builtin precision=bf16
    python scripts/attention_study.py report

The last command makes this page from the records in `{RECORDS}`; it needs no corpus and no weights."""

#: BLEU after the replacement of unknown words, WMT'14 English-German. Luong, Pham, Manning 2015, table 4.
LUONG = {"location": 19.3, "dot": 20.5, "general": 19.1, "local_m general": 20.4, "local_p general": 20.9}
#: BLEU on newstest2013, English-German, mean and deviation of four runs. Britz et al. 2017, table 5.
BRITZ = [
    ("additive, 128", "22.23 ± 0.11"),
    ("additive, 512", "22.47 ± 0.27"),
    ("dot of projections, 128", "22.03 ± 0.08"),
    ("dot of projections, 512", "21.78 ± 0.05"),
    ("no attention, state from the encoder", "9.98 ± 0.28"),
    ("no attention, summary at every step", "11.57 ± 0.30"),
]


def published(found: dict[str, Any]) -> str:
    """Our order beside those that were published."""
    ours = {name: _bleu(found, name) for name in LUONG}
    order = sorted(LUONG, key=lambda name: -LUONG[name])
    own = sorted((name for name, value in ours.items() if value is not None), key=lambda name: -(ours[name] or 0))
    lines = [
        "## Beside the literature",
        "",
        "Luong, Pham and Manning 2015, table 4 (four layers of 1,000, WMT'14 English-German, one run each), and ours "
        "(the mean over seeds; of the windows the better radius). Their differences are of single runs: no test says "
        "which are real.",
        "",
        "| attention | theirs | place | ours | place |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in order:
        mine = ours[name]
        shown = ("-", "-") if mine is None else (f"{mine:.2f}", str(own.index(name) + 1))
        lines.append(
            f"| {name.replace('_', '-')} | {LUONG[name]:.1f} | {order.index(name) + 1} | {' | '.join(shown)} |"
        )
    deviations = sorted(
        figure["deviation"]
        for variant in found["splits"][0]["variants"]
        if (figure := variant["figures"]["bleu"])["deviation"] is not None
    )
    lines += ["", "Britz, Goldie, Luong and Le 2017, table 5:", "", "| attention, size | BLEU |", "|---|---:|"]
    lines += [f"| {name} | {value} |" for name, value in BRITZ]
    if deviations:
        lines += [
            "",
            f"Their runs of one setting deviate by 0.04 to 0.30 BLEU; ours by {deviations[0]:.2f} to "
            f"{deviations[-1]:.2f}, with a smaller model, less text and a test set a third of the size.",
        ]
    return "\n".join(lines)


def _bleu(found: dict[str, Any], name: str) -> float | None:
    """The best mean on the first split of the variants whose runs are named so."""
    # Runs are called luong-dot-1, luong-local_m-radius-2-1.
    runs = {variant["label"]: variant["runs"][0]["name"] for variant in found["variants"]}
    window, _, _ = name.partition(" ")
    values = [
        variant["figures"]["bleu"]["mean"]
        for variant in found["splits"][0]["variants"]
        if runs[variant["label"]].startswith(f"luong-{window}-")
    ]
    return max(values, default=None)


if __name__ == "__main__":
    sys.exit(script("attention_study.py", main))
