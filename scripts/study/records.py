"""The records of the study: `runs.parquet` has a row for each run, `sentences.parquet` a row for each translation.

A run has its settings, seed, validations, scores with signatures, and error rates of word links. A translation has the
counts from which BLEU is computed: its words, the words of the reference, and the n-grams that both share. The total
number of n-grams follows from the length. In the file, `run` is STUDY/ROW/SEED, and a count of n-grams is stored as its
difference from the count of (n-1)-grams.
"""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from nmt.compare.results import Result
from nmt.compare.variance import Statistics
from nmt.system.errors import UserError, reading
from nmt.system.files import replace_atomically
from study.rows import CHOOSING

FOLDER = Path("docs", "attention-study")
RUNS, SENTENCES = "runs.parquet", "sentences.parquet"
KEY = ("study", "row", "seed")
#: Columns of a translation with its counts for BLEU.
BLEU = ("words", "reference_words", *(f"words_{order}" for order in range(1, 5)))

_NO_SENTENCES = pa.table(
    {
        **{name: pa.array([], pa.string()) for name in ("study", "row")},
        "seed": pa.array([], pa.int64()),
        "split": pa.array([], pa.string()),
        **{name: pa.array([], pa.int64()) for name in ("line", "length")},
        **{name: pa.array([], pa.int16()) for name in BLEU},
    }
)


class Run(NamedTuple):
    """A recorded run.

    Attributes:
        row: name of the variant.
        seed: seed of the run.
        history: validations of the run.
        minutes: training time.
        scores: by split: "bleu", "chrf", "ter", "perplexity" and so on.
        links: measurements against word links: "gold", "attention", "rates" and "without_model" in per cent.
        counts: by split: the statistics of BLEU [N, 10], in sacreBLEU's order.
        lengths: by split: the number of source words of each line.
    """

    row: str
    seed: int
    history: Sequence[Mapping[str, Any]]
    minutes: float
    scores: Mapping[str, Mapping[str, Any]]
    links: Sequence[Mapping[str, Any]]
    counts: Mapping[str, Statistics]
    lengths: Mapping[str, list[int]]


def load(study: str, folder: Path = FOLDER) -> dict[str, list[Run]]:
    """Load the runs of each row of a study, sorted by name and seed.

    Raises:
        UserError: the records are missing or damaged.
    """
    rows = load_all(folder).get(study)
    if not rows:
        raise UserError(f"{folder / RUNS} has no run of the study {study} yet. Train it first.")
    return rows


def load_all(folder: Path = FOLDER) -> dict[str, dict[str, list[Run]]]:
    """Load the runs of each row of all studies with records.

    Raises:
        UserError: the records are missing or damaged.
    """
    with reading(folder / RUNS, also=(pa.ArrowException,)):
        runs, table = pq.read_table(folder / RUNS).to_pylist(), read_sentences(folder)
    table = table.sort_by([(name, "ascending") for name in (*KEY, "split", "line")])
    columns = {name: table[name].to_numpy() for name in (*BLEU, "length")}
    names = list(zip(*(table[name].to_pylist() for name in (*KEY, "split")), strict=True))
    begins = [at for at, name in enumerate(names) if at == 0 or name != names[at - 1]]
    counts: dict[tuple[str, str, int], dict[str, Statistics]] = {}
    lengths: dict[tuple[str, str, int], dict[str, list[int]]] = {}
    for begin, end in itertools.pairwise([*begins, len(names)]):
        study, row, seed, split = names[begin]
        key = study, row, seed
        lines = np.stack([columns[name][begin:end] for name in BLEU], 1).astype(float)
        counts.setdefault(key, {})[split] = np.c_[lines, np.maximum(lines[:, :1] - np.arange(4), 0)]
        lengths.setdefault(key, {})[split] = columns["length"][begin:end].tolist()
    studies: dict[str, dict[str, list[Run]]] = {}
    for run in sorted(runs, key=lambda run: [run[name] for name in KEY]):
        study, row, seed = key = run["study"], run["row"], run["seed"]
        scores = {score["split"]: score for score in run["scores"]}
        links = _of_maps(run["links"])
        texts = counts.get(key, {}), lengths.get(key, {})
        record = Run(row, seed, run["history"], run["training"]["minutes"], scores, links, *texts)
        studies.setdefault(study, {}).setdefault(row, []).append(record)
    return studies


def recorded(folder: Path = FOLDER) -> set[tuple[str, str, int]]:
    """Study, row and seed of all runs with a record."""
    if not (folder / RUNS).exists():
        return set()
    return {tuple(run.values()) for run in pq.read_table(folder / RUNS, columns=list(KEY)).to_pylist()}


def add(runs: Mapping[tuple[str, str, int], Result], folder: Path = FOLDER) -> None:
    """Add the results of runs to the records by study, row and seed; they replace earlier results.

    Sentences of studies in CHOOSING are left out, since these studies choose settings by validations only.
    """
    tables = {  # in this order: after a kill in between, a run has no record and is added again
        SENTENCES: pa.concat_tables(
            [_sentences(key, split, run) for key, run in runs.items() for split in run.splits if key[0] not in CHOOSING]
            or [_NO_SENTENCES]
        ),
        RUNS: pa.Table.from_pylist([{**dict(zip(KEY, key, strict=True)), **_about(run)} for key, run in runs.items()]),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        if (folder / name).exists():
            known = pq.read_table(folder / name) if name == RUNS else read_sentences(folder)
            other = [key not in runs for key in zip(*(known[part].to_pylist() for part in KEY), strict=True)]
            table = pa.concat_tables([known.filter(pa.array(other, pa.bool_())), table], promote_options="default")
        write(table, folder / name)


def write(table: pa.Table, path: Path) -> None:
    """Write a file of records, sorted and compressed to a small size."""
    order: Sequence[str] = KEY
    if path.name == SENTENCES:
        keys = zip(*(table[part].to_pylist() for part in KEY), strict=True)
        table = _differences(table.drop_columns(list(KEY)), written=True)
        table = table.append_column("run", pa.array(["/".join(map(str, key)) for key in keys], pa.string()))
        order = ("split", "line", *BLEU, "run")  # similar translations are adjacent, for compression
    with replace_atomically(path) as temporary:
        pq.write_table(
            table.sort_by([(part, "ascending") for part in order]),
            temporary,
            compression="zstd",
            compression_level=19,
            use_dictionary=["run", "split"] if path.name == SENTENCES else True,
        )


def read_sentences(folder: Path) -> pa.Table:
    """Read the table of translations, with columns as counted."""
    table = pq.read_table(folder / SENTENCES)
    keys = zip(*(name.split("/") for name in table["run"].to_pylist()), strict=True)
    study, row, seed = (list(part) for part in keys) if len(table) else ([], [], [])
    named = {"study": pa.array(study, pa.string()), "row": pa.array(row, pa.string())}
    table = _differences(table.drop_columns(["run"]), written=False)
    for name, column in {**named, "seed": pa.array(map(int, seed), pa.int64())}.items():
        table = table.append_column(name, column)
    return table


def _differences(table: pa.Table, *, written: bool) -> pa.Table:
    """Convert counts of n-grams to differences from (n-1)-grams (`written`, a third smaller in the file), or back."""
    length, _, *orders = BLEU
    pairs = list(itertools.pairwise((length, *orders)))
    for shorter, longer in reversed(pairs) if written else pairs:
        less = pc.subtract(table[shorter], table[longer])
        table = table.set_column(table.column_names.index(longer), longer, less)
    return table


def _about(run: Result) -> dict[str, Any]:
    """The columns of a run in `runs.parquet`, except study, row and seed."""
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
    """The rows of a run and a split for `sentences.parquet`."""
    split = run.splits[name]
    count = len(split.lengths)
    counts = split.counts["bleu"][:, : len(BLEU)].astype(np.int16)
    columns: dict[str, Any] = {part: [value] * count for part, value in zip(KEY, key, strict=True)}
    columns |= {"split": [name] * count, "line": range(1, count + 1), "length": split.lengths}
    columns |= dict(zip(BLEU, counts.T, strict=True))
    return pa.table({title: pa.array(column) for title, column in columns.items()})
