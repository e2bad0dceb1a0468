"""The records of the study: `runs.parquet` with a row for each run, `sentences.parquet` with one for each translation.

A run has its settings, seed, validations, scores with their signatures, and error rates of word links. A translation
has the counts from which BLEU and chrF follow: its own length and that of the reference, in words and in characters,
and the n-grams that both have. How many n-grams a text has follows from its length.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from nmt.compare.results import Result
from nmt.compare.variance import Statistics
from nmt.system.errors import UserError, reading
from nmt.system.files import replace_atomically

FOLDER = Path("docs", "attention-study")
RUNS, SENTENCES = "runs.parquet", "sentences.parquet"
KEY = ("study", "row", "seed")
#: Columns of a translation: words, then characters.
BLEU = ("words", "reference_words", *(f"words_{order}" for order in range(1, 5)))
CHRF = ("characters", "reference_characters", *(f"characters_{order}" for order in range(1, 7)))

_NO_SENTENCES = pa.table(
    {
        **{name: pa.array([], pa.string()) for name in ("study", "row")},
        "seed": pa.array([], pa.int64()),
        "split": pa.array([], pa.string()),
        **{name: pa.array([], pa.int64()) for name in ("line", "length")},
        **{name: pa.array([], pa.int16()) for name in (*BLEU, *CHRF)},
    }
)


class Run(NamedTuple):
    """A recorded run.

    Attributes:
        row: name of its variant.
        seed: of the run.
        history: its validations.
        scores: of each split: "bleu", "chrf", "ter", "perplexity" and so on.
        links: measurements against word links: "gold", "attention", "rates" and "without_model" in per cent.
        counts: of each split the statistics of BLEU [N, 10], in sacreBLEU's order.
        lengths: of each split the source words of each line.
    """

    row: str
    seed: int
    history: Sequence[Mapping[str, Any]]
    scores: Mapping[str, Mapping[str, Any]]
    links: Sequence[Mapping[str, Any]]
    counts: Mapping[str, Statistics]
    lengths: Mapping[str, list[int]]


def load(study: str, folder: Path = FOLDER) -> dict[str, list[Run]]:
    """The runs of each row of a study, by name and seed.

    Raises:
        UserError: the records are missing or damaged.
    """
    with reading(folder / RUNS, also=(pa.ArrowException,)):
        runs = pq.read_table(folder / RUNS, filters=[("study", "=", study)]).to_pylist()
        table = pq.read_table(folder / SENTENCES, filters=[("study", "=", study)])
    if not runs:
        raise UserError(f"{folder / RUNS} has no run of the study {study} yet. Train it first.")
    table = table.sort_by([(name, "ascending") for name in ("row", "seed", "split", "line")])
    columns = {name: table[name].to_numpy() for name in (*BLEU, "length")}
    names = list(zip(*(table[name].to_pylist() for name in ("row", "seed", "split")), strict=True))
    begins = [at for at, name in enumerate(names) if at == 0 or name != names[at - 1]]
    counts: dict[tuple[str, int], dict[str, Statistics]] = {}
    lengths: dict[tuple[str, int], dict[str, list[int]]] = {}
    for begin, end in itertools.pairwise([*begins, len(names)]):
        row, seed, split = names[begin]
        lines = np.stack([columns[name][begin:end] for name in BLEU], 1).astype(float)
        counts.setdefault((row, seed), {})[split] = np.c_[lines, np.maximum(lines[:, :1] - np.arange(4), 0)]
        lengths.setdefault((row, seed), {})[split] = columns["length"][begin:end].tolist()
    rows: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run["row"], run["seed"])):
        key = run["row"], run["seed"]
        scores = {score["split"]: score for score in run["scores"]}
        own = Run(*key, run["history"], scores, _of_maps(run["links"]), counts.get(key, {}), lengths.get(key, {}))
        rows.setdefault(run["row"], []).append(own)
    return rows


def recorded(folder: Path = FOLDER) -> set[tuple[str, str, int]]:
    """Study, row and seed of the runs that have a record."""
    if not (folder / RUNS).exists():
        return set()
    return {tuple(run.values()) for run in pq.read_table(folder / RUNS, columns=list(KEY)).to_pylist()}


def add(runs: Mapping[tuple[str, str, int], Result], folder: Path = FOLDER) -> None:
    """Add the results of runs to the records, in place of earlier ones, by study, row and seed.

    Sentences of the study `tuning` are left out: it chooses settings by validations alone.
    """
    tables = {
        RUNS: pa.Table.from_pylist([{**dict(zip(KEY, key, strict=True)), **_about(run)} for key, run in runs.items()]),
        SENTENCES: pa.concat_tables(
            [_sentences(key, split, run) for key, run in runs.items() for split in run.splits if key[0] != "tuning"]
            or [_NO_SENTENCES]
        ),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        if (folder / name).exists():
            known = pq.read_table(folder / name)
            other = [key not in runs for key in zip(*(known[part].to_pylist() for part in KEY), strict=True)]
            table = pa.concat_tables([known.filter(pa.array(other, pa.bool_())), table], promote_options="default")
        order = KEY if name == RUNS else ("split", "line", *KEY)  # alike translations together: a third of the size
        with replace_atomically(folder / name) as path:
            pq.write_table(
                table.sort_by([(part, "ascending") for part in order]),
                path,
                compression="zstd",
                compression_level=19,
                use_dictionary=["study", "row", "split"] if name == SENTENCES else True,
            )


def _about(run: Result) -> dict[str, Any]:
    """What `runs.parquet` has of a run beside its name."""
    return {
        "settings": [f"{key}={value}" for key, value in run.settings.items()],
        "trained": list(run.trained_on),
        "code": list(run.code),
        "training": dict(run.training),
        "history": [dict(entry) for entry in run.history],
        "scores": [
            {
                "split": name,
                **{metric: score.value for metric, score in split.scores.items()},
                "signatures": [score.signature for score in split.scores.values()],
                **{key: value for key, value in split.measured.items() if isinstance(value, int | float)},
            }
            for name, split in run.splits.items()
        ],
        "links": [
            {
                "gold": links.gold,
                "pairs": links.pairs,
                "attention": links.attention,
                "shift_from": links.shift_from,
                "rates": _pairs(links.rates),
                "without_model": _pairs(links.without_model),
            }
            for links in run.aligned.values()
        ],
    }


def _pairs(rates: Mapping[str, float]) -> list[dict[str, Any]]:
    return [{"name": name, "rate": rate} for name, rate in rates.items()]


def _of_maps(links: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    maps = ("rates", "without_model")
    return [{**each, **{key: {one["name"]: one["rate"] for one in each[key]} for key in maps}} for each in links]


def _sentences(key: tuple[str, str, int], name: str, run: Result) -> pa.Table:
    """The rows of `sentences.parquet` of a run on a split."""
    split = run.splits[name]
    count = len(split.lengths)
    bleu, chrf = split.counts["bleu"][:, : len(BLEU)], split.counts["chrf"]
    chrf = np.c_[chrf[:, :2], chrf[:, 2::3]]
    columns: dict[str, Any] = {part: [value] * count for part, value in zip(KEY, key, strict=True)}
    columns |= {"split": [name] * count, "line": range(1, count + 1), "length": split.lengths}
    columns |= dict(zip(BLEU + CHRF, np.c_[bleu, chrf].astype(np.int16).T, strict=True))
    return pa.table({title: pa.array(column) for title, column in columns.items()})
