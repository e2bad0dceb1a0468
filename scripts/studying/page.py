"""The page of the study, from its records: the comparison's report, and what only this study says."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verbs import verb

from nmt.compare.reader import read_result
from nmt.compare.results import Result
from nmt.compare.verdict import count_of, p_text
from nmt.errors import UserError
from nmt.files import write_text
from nmt.runs import Run, runs_in
from studying import converged, costs
from studying.agreeing import agreement, summary_of_links
from studying.answers import (
    QUESTIONS,
    Answer,
    Question,
    RowNoise,
    about_seeds,
    answers,
    bleu_of_rows,
    by_length,
    by_row,
    contrasts,
    paragraph,
    summary,
    worse_than,
)
from studying.deviating import deviations
from studying.quoting import quote
from studying.rows import ONCE, ROWS, SEEDS
from studying.taking import BASE, Costs, all_costs, what_to_take
from studying.timing import QUESTION, after_equal_time
from studying.work import THRESHOLD, unpack

PAGE = Path("docs", "attention-study.md")
FOLDER = Path("docs", "attention-study")
RECORDS = FOLDER / "short"
BUILTIN_RECORDS = FOLDER / "builtin"
LONGER = ("tuning", "converged", "back")  # folders of the records of longer trainings
SPLIT = "test_2016_flickr"
#: Test sets of the longer trainings, and how tables call them.
SPLITS = {SPLIT: "test_2016", "test_2017_flickr": "test_2017"}
#: How the names of those of the short study begin.
ALL_SPLITS = {**SPLITS, "test_2016_joined": "long lines"}
SILVER = "test_2016_flickr.de-en.sp, words=moses"
OTHER_TEXT = "gold.sp"  # unlike the training text
#: A section of the report that needs the text.
LEFT_OUT = "Words and sentences"
JOINED = 3  # neighbouring sentences that make a long one


def report() -> int:
    """Write the page and its pictures from the records, and the tables of other pages that quote it."""
    records = records_of(RECORDS)
    status, exact = 0, dict[str, Any]()
    if builtin := sorted(BUILTIN_RECORDS.glob("*.tar.xz")):
        status, _, exact = compared(builtin, BASE, "labels=names", "pictures=0")
    if status:
        return status
    status, text, _ = compared(records, BASE, "labels=names", "pictures=2", "speeds=false")
    if status:
        return status
    _, *sections = text.split("\n\n## ")  # without the title and its verdict: the page has tests of its own
    results, longer = results_of(records), trained_longer()
    rows, splits, tests = by_row(results), splits_of(results), tested(results)
    measured = costs.read()
    table_of_contrasts = "\n".join(contrasts(list(splits.values()), tests))
    parts = [
        *(TITLE, first_line(results), f"## Questions and answers\n\n{first_screen(results, tests, longer, measured)}"),
        f"## What to take, by cost\n\n{what_to_take(rows, splits, measured)}",
        f"## All contrasts on all test sets\n\n{ABOUT_CONTRASTS}\n\n{table_of_contrasts}",
        *([converged.section(longer, SPLITS, SILVER)] if longer.tuning else []),
        *(METHOD, deviations(rows, splits, (SILVER, OTHER_TEXT)), published(rows)),
        f"## Word links of other text\n\n{agreement(rows, OTHER_TEXT)}",
        *(f"## {section}" for section in sections if section.partition("\n")[0] != LEFT_OUT),
        f"## Parameters and costs\n\n{all_costs(rows, SPLIT, measured)}",
        *([exact_links(exact)] if exact else []),
    ]
    write_text(PAGE, "\n\n".join(part.strip("\n") for part in parts) + "\n")
    quote(rows, splits)
    return 0


def first_line(results: Sequence[Result]) -> str:
    """What was compared, and how far the study has come."""
    total = len(ROWS) * len(SEEDS)
    done = f"each with {len(SEEDS)} seeds" if len(results) == total else f"{len(results)} of {total} runs so far"
    return (
        f"This page compares {count_of(len(by_row(results)), 'model')} **after four epochs**, before convergence "
        f"({done}). Ranks may change later."
    )


Tests = list[tuple[Question, list[Sequence[Answer]]]]


def tested(results: Sequence[Result]) -> Tests:
    """All questions with their tests on each test set."""
    rows = by_row(results)
    noises = [RowNoise(rows, name) for name in splits_of(results)]
    return [(each, [answers(each, noise) for noise in noises]) for each in QUESTIONS]


def first_screen(results: Sequence[Result], tests: Tests, longer: converged.Trained, measured: Costs) -> str:
    """All questions with their answers, in Markdown: a table, and then the tests on the first test set."""
    rows, splits = by_row(results), splits_of(results)
    on_one = [(QUESTION, after_equal_time(rows, measured)), *converged.self_attention(longer.there, SPLIT, measured)]
    all_tests = [*tests, *((question, [answers_on_one]) for question, answers_on_one in on_one)]
    table = [*summary(list(splits.values()), all_tests), *summary_of_links(rows, SILVER, len(splits) - 1)]
    lines = ["\n".join(table), CAPTION, f"### The tests on {SPLIT}", *about_seeds(rows)]
    for question, (answers_on_first, *_) in all_tests:
        lines.append(paragraph(question, answers_on_first))
        if question is QUESTIONS[0]:
            lines[-1] = f"{lines[-1]} {worse_than(RowNoise(rows, SPLIT), 'none')}".rstrip()
            lines.append(f"**At which lengths?** {by_length(rows, SPLIT, 'none', 'luong-general')}")
    lines.append(f"**Is attention an explanation?** {agreement(rows, SILVER)}")
    return "\n\n".join(lines)


def splits_of(results: Sequence[Result]) -> dict[str, str]:
    """The test sets of the short study, and how tables call them."""
    return {name: label for start, label in ALL_SPLITS.items() for name in results[0].splits if name.startswith(start)}


def records_of(folder: Path) -> list[Path]:
    """The records in a folder (UserError: there are none)."""
    records = sorted(folder.glob("*.tar.xz"))
    if not records:
        raise UserError(f"{folder} has no records yet. Train the study first.")
    return records


def results_of(records: Sequence[Path]) -> list[Result]:
    """The results of records."""
    with tempfile.TemporaryDirectory() as place:
        unpack(records, Path(place))
        return [read_result(path.name, Run(path), None) for path in runs_in(Path(place))]


def trained_longer() -> converged.Trained:
    """The results of the longer trainings that are recorded."""
    return converged.Trained(*(results_of(sorted((FOLDER / name).glob("*.tar.xz"))) for name in LONGER))


def answered(folder: Path) -> int:
    """Print what the records of a folder answer so far."""
    results, measured = results_of(records_of(folder)), costs.read()
    print(f"{len(results)} runs are recorded.\n\n{first_screen(results, tested(results), trained_longer(), measured)}")
    print(f"\n**What to take, by cost?** {what_to_take(by_row(results), splits_of(results), measured)}")
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

    def place(label: str) -> list[tuple[bool, float]]:
        """By the first column; a row without it comes last."""
        return [(label not in cells, cells.get(label, 0.0)) for cells in columns.values()]

    order = sorted({label for cells in columns.values() for label in cells}, key=place)
    guided = [f"`{label}`" for label in order if label.startswith("guided")]
    trained = f" So far, {len(order)} of {len(ONCE)} rows are trained." if len(order) < len(ONCE) else ""
    lines = [
        "## Where the links are exact",
        "",
        "The table shows the alignment error rate in per cent on the test set of the built-in corpus (English to "
        "Basque), whose word links are exact. Less is better. Every row was trained with one seed, and nothing here is "
        f"tested. {' and '.join(guided) or 'No row'} learned from the links as well (`trainer.guided_alignment=1`). "
        f"The columns with {THRESHOLD} link a target word to every source word with at least that weight.{trained}",
        "",
        f"| row | {' | '.join(f'{gold}: {way}' for gold, way in columns)} |",
        f"|---|{'---:|' * len(columns)}",
    ]
    for label in order:
        cells = [f"{column[label]:.1f}" if label in column else "-" for column in columns.values()]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    # Links that need no model have one rate, whatever is read off a model: it stands in each column of its links.
    without_model = {rates["gold"]: rates.get("without_model", {}) for rates in figures["alignments"]}
    names = dict.fromkeys(label for rates in without_model.values() for label in rates)
    if names:
        lines[2] += " Rows in brackets need no model."
    for label in names:
        cells = [f"{without_model[gold][label]:.1f}" if label in without_model[gold] else "-" for gold, _ in columns]
        lines.append(f"| ({label}) | {' | '.join(cells)} |")
    return "\n".join(lines)


TITLE = "# Which attention? A study on Multi30k, German to English"
CAPTION = (
    f"The columns are {SPLIT}, test_2017_flickr, and lines that are {JOINED} captions of the first. Brackets count the "
    "significant contrasts of the question (p < 0.05, corrected by Holm for each question and test set). The range of "
    "the differences in BLEU follows. Controls are in neither. The question about the same training time is about the "
    f"validation set. For word links ({SILVER}), brackets count the rows with significantly fewer or more errors, and "
    "differences are points of alignment error rate."
)
ABOUT_CONTRASTS = (
    "Differences in BLEU, in brackets p, corrected by Holm for each question and test set, with its controls. "
    "Columns are as in the first table."
)
METHOD = f"""## Method

The recurrent rows differ in attention or wiring, and `hard` rows and `coverage-loss` also in the loss that trains the
attention. Their numbers of weights differ, too ("Parameters and costs"). They share:

- embeddings of 128, a bidirectional GRU encoder of 128 per direction, a GRU decoder and an attention of 256
- the decoder starts from the mean of the encoder's states; a tanh readout of state, previous word and context
- 4,000 joint pieces and four epochs of Multi30k's 29,000 captions, in float32
- the same batches, learning rate and dropout for all; nothing was tuned for any row

What the names mean:

- `none` has no attention: the last states of the encoder enter every step.
- `bahdanau` attends with the state before the step, which has not read the previous word, and feeds the context
  into its GRU. The readout of `bahdanau-previous-state` gets that state instead of the new one, as in the appendix
  of Bahdanau et al. 2015. `conditional` attends between two GRU cells (Sennrich et al. 2017). All three have the
  score `additive`.
- `luong-SCORE` attends with the new state and has input feeding. `-nofeed` rows have none: their recurrence is fed
  nothing but words.
- `location` computes an energy for each position and does not look at the keys (Luong et al. 2015, eq. 8).
  `general` has a matrix between query and key. `concat` is `additive` written in another way, and serves as a
  control.
- `dot`, `scaled_dot` and `cosine` compare the states as they are; `cosine` has one weight, its strength. The rows with
  `-projected` project query, key and value, and the context back. `dot-projected` can express the same scores as
  `general`.
- `local_m` and `local_p`, with a radius of 2 or 4 pieces, have the score `general`.
- `-heads-2` and `-heads-4` share the 256 dimensions among the heads, as in Vaswani et al. 2017. The `-projected`
  row beside them is one head with projections.
- `coverage` shows the score how much weight each piece has received. `coverage-loss` adds the loss of See et al.
  2017 (eq. 12, 13).
- `hard` draws one piece in training and reads the likeliest one in search, with the default settings (`reward=0.01
  expected=0.5`): its weights mostly learn from the steps with a soft read. `hard-soft-half` has no gradient of the
  draws (`reward=0`). `hard-self-critical` draws at every step; each draw is compared with the soft read of the same
  step. These three have a bonus of 0.01 for entropy. `hard-enumerate` sums over all pieces exactly, in `luong`
  without input feeding.
- `transformer`, `weighted-transformer` and `conv` have three layers of 128 on both sides. `gru-transformer` has a
  recurrent encoder, `transformer-luong` a recurrent decoder.

A difference is tested by Student's t with the errors of sentences and of seeds ([statistics.md](statistics.md)). It
covers other sentences and, from two seeds on, other seeds. The p-values of a question are corrected by Holm for its
contrasts and controls, those of the ranges of lengths for the ranges. Nothing is corrected over questions and test
sets, so the chance of at least one false claim on this page is above 5 %. In other tables the same difference has
another p, because it is corrected for other tests, and may be significant in one table and not in another. The
questions decide; a verdict that depends on the correction is weak evidence. Minimum
detectable differences are at the level of Bonferroni, which is slightly stricter than Holm's.

The deviation over seeds is pooled over the rows. A row that deviates significantly more than the others has its own,
which leaves its tests little power ("Deviations over seeds"). Rows with the same seed read the same batches, so their
deviations are not quite independent, and what is pooled is less certain than the tests assume.

A long line (`test_2016_joined`) is {JOINED} neighbouring captions: 18 to 53 words. Of the training sentences, 0.5 %
have 25 words or more, and none has more than 39. Perplexity is under forced decoding. Two runs trained at a time,
with one thread each and beside other work: compare the learning curves by update, not by minutes.

There are two sets of word links. Those of test_2016_flickr come from a statistical aligner: they are silver, not
gold. The gold links (`{OTHER_TEXT}`) are of a hundred sentences of Europarl, which differ much from the training
text. Head and shift of the attention were chosen on silver links of the validation set.

    python scripts/attention_study.py train multi30k=DIR alignments=DIR
    python scripts/attention_study.py converge multi30k=DIR alignments=DIR
    python scripts/attention_study.py builtin
    python scripts/attention_study.py costs
    python scripts/attention_study.py report

The last command writes this page, and the tables that quote it elsewhere. It needs nothing but the records and
costs in `{FOLDER}`. It also writes `{FOLDER}/report.html`, which has the same figures to click
through. Each record names the code that made it (`code` in `run.json`)."""

#: BLEU after the replacement of unknown words, WMT'14 English-German, and our rows. Luong, Pham, Manning 2015, table 4.
LUONG = [
    ("local-p general", 20.9, ("luong-local_p-2", "luong-local_p-4")),
    ("dot", 20.5, ("luong-dot",)),
    ("local-m general", 20.4, ("luong-local_m-2", "luong-local_m-4")),
    ("location", 19.3, ("luong-location",)),
    ("general", 19.1, ("luong-general",)),
]
#: BLEU on newstest2013, English-German, mean and deviation of four runs, and our rows. Britz et al. 2017, table 5.
BRITZ = [
    ("additive, 256", "22.33 ± 0.04", "luong-additive"),
    ("dot of projections, 256", "22.33 ± 0.28", "luong-dot-projected"),
    ("no attention, state from the encoder", "9.98 ± 0.28", ""),
    ("no attention, summary at every step", "11.57 ± 0.30", "none"),
]


def published(rows: Mapping[str, Sequence[Result]]) -> str:
    """Published figures beside ours, with the tests of ours."""
    noise, bleu = RowNoise(rows, SPLIT), bleu_of_rows(rows, SPLIT)
    ours = [name for *_, some in LUONG for name in some if name in rows]
    best = max(ours, key=bleu.__getitem__, default="")
    pairs = len(ours) * (len(ours) - 1) // 2  # the best row was picked by its BLEU
    p_values = {name: min(1.0, pairs * noise.between(best, name).p) for name in ours if name != best}
    lines = [
        "## Compared with the literature",
        "",
        "Luong, Pham and Manning 2015, table 4: BLEU of four layers of 1,000 on newstest2014, English-German, after "
        "unknown words were replaced. They give no deviation over runs, so no test shows which of their differences "
        "are significant. Their windows have a radius of 10 words, ours of 2 or 4 pieces. Two of their models have no "
        "row here: `local-p` with `dot`, which has 19.6, and `local-m` with `dot`, for which they give no BLEU. p is "
        "that of our difference to our highest BLEU, corrected by Bonferroni for all pairs of these rows.",
        "",
        "| attention | theirs | our row | ours | p |",
        "|---|---:|---|---:|---:|",
    ]
    for attention, theirs, some in LUONG:
        for name in some:
            value = f"{bleu[name]:.2f}" if name in rows else "-"
            p = p_text(p_values[name]) if name in p_values else "highest" if name == best else "-"
            lines.append(f"| {attention} | {theirs:.1f} | `{name}` | {value} | {p} |")
    lines += [
        "",
        "Britz, Goldie, Luong and Le 2017, table 5: BLEU on newstest2013, English-German, mean and standard deviation "
        "of four runs. Ours are means over seeds. BLEU of different corpora cannot be compared.",
        "",
        "| attention, size | theirs | our row | ours |",
        "|---|---:|---|---:|",
    ]
    for attention, value, name in BRITZ:
        lines.append(f"| {attention} | {value} | {f'`{name}` | {bleu[name]:.2f}' if name in rows else '- | -'} |")
    return "\n".join(lines)
