"""The evaluation of a run -> its sentences with measures, to sort and to compare with those of another run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Query
from starlette.responses import JSONResponse, Response

from nmt.evaluation.metrics import sentence_chrf
from nmt.runs.run import Run
from nmt.serve.pool import ModelPool, Served
from nmt.serve.problems import ProblemError
from nmt.system.errors import UserError
from nmt.system.facts import MAP
from nmt.system.files import read_whole
from nmt.system.foreign import inside, read_text_of
from nmt.text.canonical import shows_nothing

Json = dict[str, Any]
_TEXTS = {"source": "source.txt", "translation": "hypotheses.txt", "reference": "reference.txt"}


def add_corpus(app: FastAPI, pool: ModelPool) -> None:
    """Add the route."""

    @app.get("/v1/corpus", summary="The sentences of a model's evaluation with their measures")
    async def corpus(
        model: str | None = None, split: str | None = None, other: str | None = Query(None, alias="with")
    ) -> Response:
        first = pool.model(model)
        second = None if other is None else pool.model(other, "with")
        return await pool.off_loop(answer, first, split, second)

    def answer(first: Served, split: str | None, second: Served | None) -> Response:
        cure = "Evaluate the model again: python -m nmt.evaluate run=..."
        try:
            found = described(first.run, split, None if second is None else second.run)
            return JSONResponse({"model": first.named, "with": second and second.named, **found})
        except UserError as error:
            raise ProblemError(503, str(error), cure=cure) from error
        except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
            raise ProblemError(503, "The evaluation has damaged or foreign files.", cure=cure) from error


def described(run: Run, split: str | None, other: Run | None = None) -> Json:
    """The sentences of a split.

    Args:
        run: whose evaluation is read.
        split: an evaluated split; None for the first.
        other: a run to compare with, if it has translated the same sentences.

    Returns:
        `split`; `splits`, all that there are; `compared`, whether `other` has the same sentences; `note`, what is
        missing, or None; and `rows`: `line`, `source`, `translation`, `reference`, the measures of `sentences.json`,
        and `context`, the sentences before it that the model saw, if it saw some. With `other`: `other`, its
        translation; `gain`, the chrF of the run less that of `other`;
        `difference`, 100 less the chrF of the one translation against the other; and `disagreement`, the mean
        Jensen-Shannon divergence of the attention in nats, for the sentences of `attention.json`.

    Raises:
        ProblemError: 404, the run has no such evaluation.
        UserError: a file of the run is damaged.
    """
    splits = run.splits()
    if not splits:
        cure = "Evaluate it: python -m nmt.evaluate run=FOLDER"
        raise ProblemError(404, "This run has not been evaluated.", cure=cure)
    name = splits[0] if split is None else split
    if name not in splits:
        raise ProblemError(404, "split: there is no such split.", field="split", cure=f"Give one of: {splits}.")
    rows, measures = read_whole(run.evaluation / name, lambda: _rows(run, name))
    for row, more in zip(rows, measures or [{"chrf": _chrf(row)} for row in rows], strict=True):
        row |= {key: value for key, value in more.items() if key != "line"}
    _add_contexts(rows)
    compared = other is not None and _compare(rows, run, other, name)
    note = None if measures else "Only chrF is known of this evaluation. Evaluate the run again for the other measures."
    return {"split": name, "splits": splits, "compared": compared, "note": note, "rows": rows}


def _rows(run: Run, split: str) -> tuple[list[Json], list[Json] | None]:
    rows = _texts(run, split)
    return rows, run.measures(split, len(rows))


def _chrf(row: Json) -> float:
    return sentence_chrf(row["translation"], row["reference"])


def _add_contexts(rows: Sequence[Json]) -> None:
    """Add to each row of a run with context the sentences before it that the model saw."""
    texts: list[str] = []
    for row in rows:
        seen = row.pop("context_sentences", 0)
        if isinstance(seen, int) and 0 < seen <= len(texts):
            row["context"] = texts[-seen:]
        if not shows_nothing(row["source"]):
            texts.append(row["source"])


def _texts(run: Run, split: str) -> list[Json]:
    columns = {key: _lines(inside(run.folder, "evaluation", split, file)) for key, file in _TEXTS.items()}
    if len({len(lines) for lines in columns.values()}) != 1:
        raise UserError(f"{run.evaluation / split}: its texts differ in length. Evaluate the run again.")
    return [
        {"line": line, **dict(zip(columns, texts, strict=True))}
        for line, texts in enumerate(zip(*columns.values(), strict=True), 1)
    ]


def _lines(path: Path) -> list[str]:
    try:
        return read_text_of(path).split("\n")[:-1]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. Evaluate the run again.") from error


def _compare(rows: list[Json], run: Run, other: Run, split: str) -> bool:
    """Add what differs in the other run; False if it has not translated the same sentences."""
    if split not in other.splits():
        return False
    others, _ = read_whole(other.evaluation / split, lambda: _rows(other, split))
    if [row["source"] for row in others] != [row["source"] for row in rows]:
        return False
    disagreements = _disagreements(run, other, split)
    for row, one in zip(rows, others, strict=True):
        row["other"] = one["translation"]
        row["gain"] = _chrf(row) - sentence_chrf(one["translation"], row["reference"])
        row["difference"] = 100 - sentence_chrf(one["translation"], row["translation"])
        row["disagreement"] = disagreements.get(row["line"])
    return True


def _disagreements(run: Run, other: Run, split: str) -> dict[int, float]:
    """The disagreement of each line of which both runs have recorded the attention to its reference."""
    one, two = (
        {each["line"]: each for each in each_run.rows(split, "attention.json", MAP) or []} for each_run in (run, other)
    )
    return {
        line: divergence(one[line]["weights"], two[line]["weights"])
        for line in one.keys() & two.keys()
        if all(one[line][side] == two[line][side] for side in ("source", "target")) and one[line]["weights"]
    }


def divergence(one: Sequence[Sequence[float]], two: Sequence[Sequence[float]]) -> float:
    """The mean over the rows of the Jensen-Shannon divergence of two matrices of weights [T][S], in nats.

    Rows are normalised first. 0 for equal rows, log 2 for rows without a common word.
    """
    from scipy.special import rel_entr  # type: ignore[import-untyped]

    weights = (np.asarray(each, np.float64) for each in (one, two))
    p, q = (each / np.maximum(each.sum(axis=1, keepdims=True), 1e-12) for each in weights)
    return float((rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)).sum(axis=1).mean() / 2)
