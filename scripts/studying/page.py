"""The page of the study, from its records: the comparison's report, and what only this study says."""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verbs import verb

from nmt.comparison.results import Result
from nmt.errors import UserError
from nmt.files import write_text
from nmt.pipeline.results import read_result
from nmt.runs import Run, runs_in
from studying import costs
from studying.answers import by_cost, by_row, first_screen
from studying.rows import ROWS, SEEDS
from studying.work import unpack

PAGE = Path("docs", "attention-study.md")
FOLDER = Path("docs", "attention-study")
RECORDS = FOLDER / "short"
BUILTIN_RECORDS = FOLDER / "builtin.tar.xz"
NOTES = FOLDER / "notes.md"  # remarks on these runs, if there are any
SPLIT = "test_2016_flickr"
SILVER = "test_2016_flickr.de-en.sp, words=moses"
OTHER_TEXT = "gold.sp"  # its verdict stands apart: the text is unlike the training text
JOINED = 3  # neighbouring sentences that make a long one
BASELINE = "bahdanau"


def report() -> int:
    """Write the page and its pictures from the records."""
    status, _, exact = compared([BUILTIN_RECORDS], BASELINE, "pictures=0")
    if status:
        return status
    records = sorted(RECORDS.glob("*.tar.xz"))
    results = results_of(records)
    status, compared_text, figures = compared(records, BASELINE, "labels=names", "pictures=2")
    if status:
        return status
    _, _, body = compared_text.partition("\n\n")  # drop the title
    lead, _, rest = body.partition("\n\n## ")
    paragraphs = lead.split("\n\n")
    elsewhere = [text for text in paragraphs if text.startswith(f"Closest to the word links of {OTHER_TEXT}")]
    remarks = [NOTES.read_text("utf-8")] if NOTES.exists() else []
    parts = [
        *(TITLE, first_line(results), f"## Questions and answers\n\n{first_screen(results, SPLIT, SILVER)}"),
        f"## What to take, by cost\n\n{by_cost(by_row(results), SPLIT, costs.read())}",
        "## All rows together\n\n" + "\n\n".join(text for text in paragraphs if text not in elsewhere),
        *(METHOD, *remarks, published(figures)),
        *(f"## Word links of other text\n\n{text}" for text in elsewhere),
        *(f"## {rest}", exact_links(exact)),
    ]
    write_text(PAGE, "\n\n".join(part.strip("\n") for part in parts) + "\n")
    return 0


def first_line(results: Sequence[Result]) -> str:
    """What was compared, and how far the study has come."""
    rows = by_row(results)
    total = len(ROWS) * len(SEEDS)
    done = f"with {len(SEEDS)} seeds each" if len(results) == total else f"{len(results)} of {total} runs so far"
    return (
        f"This page compares {len(rows)} models **after four epochs**, a tenth of what the best of them need to "
        f"converge: {done}. Ranks may change later."
    )


def results_of(records: Sequence[Path]) -> list[Result]:
    """The results of records."""
    with tempfile.TemporaryDirectory() as place:
        unpack(records, Path(place))
        return [read_result(path.name, Run(path), None) for path in runs_in(Path(place))]


def answered(folder: Path) -> int:
    """Print what the records of a folder answer so far."""
    results = results_of(sorted(folder.glob("*.tar.xz")))
    if not results:
        raise UserError(f"{folder} has no records yet. Train the study first.")
    print(f"{len(results)} runs are recorded.\n\n{first_screen(results, SPLIT, SILVER)}")
    print(f"\n**What to take, by cost?** {by_cost(by_row(results), SPLIT, costs.read())}")
    return 0


def compared(records: Sequence[Path], baseline: str, *words: str) -> tuple[int, str, dict[str, Any]]:
    """Compare records; return the exit status, the report's text with paths relative to the page, and its figures."""
    with tempfile.TemporaryDirectory() as folder:
        unpack(records, Path(folder))
        line = [f"runs={folder}", f"output={FOLDER}", f"baseline={baseline}", "evaluate=false", *words]
        status = verb("compare", *line)
    if status:
        return status, "", {}
    page, data = FOLDER / "report.md", FOLDER / "report.json"
    text = page.read_text("utf-8").replace("](<pictures/", f"](<{FOLDER.name}/pictures/")
    figures = json.loads(data.read_text("utf-8"))
    for path in (page, data):
        path.unlink()
    shutil.rmtree(FOLDER / "tables")
    return 0, text, figures


def exact_links(figures: dict[str, Any]) -> str:
    """The error rates on the built-in corpus, one row per variant, with and without the threshold."""
    columns = {
        (rates["gold"], way): {row["label"]: row["aer"][way]["mean"] for row in rates["variants"] if way in row["aer"]}
        for rates in figures["alignments"]
        for way in sorted({way for row in rates["variants"] for way in row["aer"]} - {"attention"})
    }
    best = {
        label: min(
            # Variants without attention come last.
            (way == "saliency", column[label])
            for (_, way), column in columns.items()
            if label in column
        )
        for label in {label for column in columns.values() for label in column}
    }
    lines = [
        "## Where the links are exact",
        "",
        "The table shows the alignment error rate in per cent on the test set of the built-in corpus (English to "
        "Basque), whose word links are exact. Less is better. Every mechanism was trained with one seed. `luong "
        "additive` and `bahdanau guided alignment 1` were trained with the links (`trainer.guided_alignment=1`). With "
        "one link per target word, the minimum is 11.6: the gold links some words to several.",
        "",
        f"| attention | {' | '.join(f'{gold}: {way}' for gold, way in columns)} |",
        f"|---|{'---:|' * len(columns)}",
    ]
    for label in sorted(best, key=best.__getitem__):
        cells = [f"{column[label]:.1f}" if label in column else "-" for column in columns.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    # Links that need no model have one rate, whatever is read off a model: it stands in each column of its links.
    needless = {rates["gold"]: rates.get("without_model", {}) for rates in figures["alignments"]}
    for label in dict.fromkeys(label for rates in needless.values() for label in rates):
        cells = [f"{needless[gold][label]:.1f}" if label in needless[gold] else "-" for gold, _ in columns]
        lines.append(f"| ({label}) | {' | '.join(cells)} |")
    return "\n".join(lines)


TITLE = "# Which attention? A study on Multi30k, German to English"
METHOD = f"""## Method

The recurrent rows are one model with a different attention:

- embeddings of 128, a bidirectional GRU encoder of 128 per direction, a GRU decoder and an attention of 256
- the decoder starts from the mean of the encoder's states; a tanh readout of state, previous word and context
- 4,000 joint pieces and four epochs of Multi30k's 29,000 captions
- the same batches, learning rate and dropout, in float32, with one thread

The settings were chosen for `bahdanau`. A row that needs other settings is at a disadvantage. What the names mean:

- `none` has no attention. `bahdanau` asks with the state before the step, which has not read the previous word. The
  readout of `bahdanau-previous-state` sees that state as well, as in the appendix of Bahdanau et al. 2015.
  `conditional` asks between the two halves of the step. Their score is additive.
- `luong-SCORE` asks with the new state and feeds the answer back; `-nofeed` does not feed it back.
- `dot`, `scaled_dot` and `cosine` compare the states as they are. The rows with `-projected` have learned projections
  of query and key.
- `local_m` and `local_p`, with a radius of 2 or 4 slots, have the score `general`.
- `-heads-2` and `-heads-4` share the 256 dimensions among the heads, as in Vaswani et al. 2017. The `-projected` row
  beside them is one head with projections.
- `coverage` shows the attention what it has looked at. `coverage-loss` adds the loss of See et al. 2017 (eq. 12, 13).
- `hard` reads one slot that it draws, with the default settings (`reward=0.01 expected=0.5`). Its weights mostly
  learn from the soft half of the steps. `hard-soft-half` is the control: it has no gradient of the draws at all
  (`reward=0`). `hard-self-critical` learns from the draws alone, each compared with the soft read of the same step.
  `hard-enumerate` sums over all slots exactly, in `luong` without feeding.
- `transformer`, `weighted-transformer` and `conv` have three layers of 128 on both sides. `gru-transformer` has a
  recurrent encoder, `transformer-luong` a recurrent decoder.

Each question is a family of its own: its p-values are corrected by Holm for its contrasts. The test is that of
[statistics.md](statistics.md), for other sentences and other seeds at once.

Each long sentence is {JOINED} neighbouring sentences of test_2016_flickr in one line. All are longer than the
training sentences. The models have learnt to end after one sentence, so BLEU is low: it shows which models continue.
Perplexity is forced through the whole line: it shows which models still find the right source words.

There are two sets of word links. Those of the same test set come from a statistical aligner: they are silver, not gold.
The gold links (`{OTHER_TEXT}`) are of a hundred sentences of Europarl, which differ much from the training text.

    python scripts/attention_study.py train multi30k=DIR alignments=DIR
    python scripts/attention_study.py builtin
    python scripts/attention_study.py costs
    python scripts/attention_study.py report

The last command writes this page from the records in `{RECORDS}` and `{BUILTIN_RECORDS}`. It needs no corpus
and no weights. Each record names the code that made it (`code` in `run.json`)."""

#: BLEU after the replacement of unknown words, WMT'14 English-German. Luong, Pham, Manning 2015, table 4.
LUONG = {"location": 19.3, "dot": 20.5, "general": 19.1, "local-m general": 20.4, "local-p general": 20.9}
#: Our rows for these.
OURS = {
    **{name: (f"luong-{name}",) for name in ("location", "dot", "general")},
    **{f"local-{way} general": (f"luong-local_{way}-2", f"luong-local_{way}-4") for way in "mp"},
}
#: BLEU on newstest2013, English-German, mean and deviation of four runs. Britz et al. 2017, table 5.
BRITZ = [
    ("additive, 128", "22.23 ± 0.11"),
    ("additive, 512", "22.47 ± 0.27"),
    ("dot of projections, 128", "22.03 ± 0.08"),
    ("dot of projections, 512", "21.78 ± 0.05"),
    ("no attention, state from the encoder", "9.98 ± 0.28"),
    ("no attention, summary at every step", "11.57 ± 0.30"),
]


def published(figures: dict[str, Any]) -> str:
    """Published rankings beside ours."""
    means = {figure["label"]: figure["figures"]["bleu"]["mean"] for figure in figures["splits"][0]["variants"]}
    ours = {name: max((means[row] for row in OURS[name] if row in means), default=None) for name in LUONG}
    order = sorted(LUONG, key=lambda name: -LUONG[name])
    ranking = sorted((name for name, value in ours.items() if value is not None), key=lambda name: -(ours[name] or 0))
    lines = [
        "## Compared with the literature",
        "",
        "The first table compares our means over seeds with table 4 of Luong, Pham and Manning 2015 (four layers of "
        "1,000, WMT'14 English-German). For windows, ours is the better radius. Their figures are of one run each: no "
        "test shows which differences are significant.",
        "",
        "| attention | theirs | rank | ours | rank |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in order:
        bleu = ours[name]
        cells = ("-", "-") if bleu is None else (f"{bleu:.2f}", str(ranking.index(name) + 1))
        lines.append(f"| {name} | {LUONG[name]:.1f} | {order.index(name) + 1} | {' | '.join(cells)} |")
    deviations = sorted(
        figure["deviation"]
        for variant in figures["splits"][0]["variants"]
        if (figure := variant["figures"]["bleu"])["deviation"] is not None
    )
    lines += ["", "Britz, Goldie, Luong and Le 2017, table 5:", "", "| attention, size | BLEU |", "|---|---:|"]
    lines += [f"| {name} | {value} |" for name, value in BRITZ]
    ranked = [f"`{row}` {means[row]:.2f}" for row in ("luong-additive", "luong-dot-projected", "none") if row in means]
    lines += ["", f"Ours, with an attention of 256: {', '.join(ranked)}."]
    if deviations:
        lines += [
            "",
            f"The standard deviation over runs of one setting is 0.04 to 0.30 BLEU for theirs and {deviations[0]:.2f} "
            f"to {deviations[-1]:.2f} for ours. Our model is smaller, with less text and a test set a third of the "
            f"size.",
        ]
    return "\n".join(lines)
