"""The sentences of a run's evaluation with their measures, to sort, and to compare with another run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import FastAPI, Query
from starlette.responses import JSONResponse, Response

from nmt.evaluation.metrics import sentence_chrf
from nmt.runs.run import Run
from nmt.serve.description import evaluation_command
from nmt.serve.pool import ModelPool, Served
from nmt.serve.problems import ProblemError
from nmt.system.errors import UserError
from nmt.system.facts import MAP
from nmt.system.files import read_whole
from nmt.system.foreign import inside, read_text_of
from nmt.text.canonical import shows_nothing

Json = dict[str, Any]
_NO_MAP: Json = {"source": [], "target": [], "weights": []}
_TEXTS = {"source": "source.txt", "translation": "hypotheses.txt", "reference": "reference.txt"}


def add_corpus(app: FastAPI, pool: ModelPool) -> None:
    """Add the route /v1/corpus."""

    @app.get("/v1/corpus", summary="The sentences of a model's evaluation with their measures")
    async def corpus(
        model: str | None = None, split: str | None = None, other: str | None = Query(None, alias="with")
    ) -> Response:
        first = pool.model(model)
        second = None if other is None else pool.model(other, "with")
        return await pool.off_loop(answer, first, split, second)

    def answer(first: Served, split: str | None, second: Served | None) -> Response:
        cure = f"Evaluate the model again: {evaluation_command(first.run)}"
        try:
            evaluation = described(first.run, split, None if second is None else second.run)
            return JSONResponse({"model": first.named, "with": second and second.named, **evaluation})
        except UserError as error:
            raise ProblemError(503, str(error), cure=cure) from error
        except (LookupError, TypeError, ValueError, AttributeError, OSError) as error:
            raise ProblemError(503, "The evaluation has damaged or foreign files.", cure=cure) from error


def described(run: Run, split: str | None, other: Run | None = None) -> Json:
    """The evaluated sentences of a split; None means the first split.

    Returns:
        `split`, its name; `splits`, the names of all splits; `compared`, whether `other` has translated the same
        sentences; and `rows`, which docs/serving.md describes.

    Raises:
        ProblemError: 404, the run has no evaluation of this split.
        UserError: a file of the run is damaged.
    """
    splits = run.splits()
    if not splits:
        cure = f"Evaluate it: {evaluation_command(run)}"
        raise ProblemError(404, "This run has not been evaluated.", cure=cure)
    name = splits[0] if split is None else split
    if name not in splits:
        raise ProblemError(404, "split: there is no such split.", field="split", cure=f"Give one of: {splits}.")
    rows = read_whole(run.evaluation / name, lambda: _rows(run, name))
    _add_contexts(rows)
    compared = other is not None and _compare(rows, run, other, name)
    return {"split": name, "splits": splits, "compared": compared, "rows": rows}


def _rows(run: Run, split: str) -> list[Json]:
    """The texts and the measures of each sentence."""
    columns = {
        key: read_text_of(inside(run.folder, "evaluation", split, file)).split("\n")[:-1]
        for key, file in _TEXTS.items()
    }
    if len({len(lines) for lines in columns.values()}) != 1:
        raise UserError(f"{run.evaluation / split}: its texts have different numbers of lines. Evaluate the run again.")
    measures = run.measures(split, len(columns["source"]))
    if measures is None:
        raise UserError(f"{run.evaluation / split} has no sentences.json. Evaluate the run again.")
    return [
        dict(zip(columns, texts, strict=True)) | of_line
        for of_line, *texts in zip(measures, *columns.values(), strict=True)
    ]


def _add_contexts(rows: Sequence[Json]) -> None:
    """Replace the number of context sentences in each row by the previous sentences that the model saw."""
    texts: list[str] = []
    for row in rows:
        seen = row.pop("context_sentences", 0)
        if isinstance(seen, int) and 0 < seen <= len(texts):
            row["context"] = texts[-seen:]
        if not shows_nothing(row["source"]):
            texts.append(row["source"])


def _compare(rows: list[Json], run: Run, other: Run, split: str) -> bool:
    """Add comparisons with the other run to all rows; return False if it has not translated the same sentences."""
    if split not in other.splits():
        return False
    others = read_whole(other.evaluation / split, lambda: _rows(other, split))
    if [row["source"] for row in others] != [row["source"] for row in rows]:
        return False
    maps = [{each["line"]: each for each in one.rows(split, "attention.json", MAP) or []} for one in (run, other)]
    for row, of_other in zip(rows, others, strict=True):
        line, translation = row["line"], of_other["translation"]
        row["other"] = translation
        row["gain"] = sentence_chrf(row["translation"], row["reference"]) - sentence_chrf(translation, row["reference"])
        row["difference"] = 100 - sentence_chrf(translation, row["translation"])
        row["disagreement"] = _disagreement(*(each.get(line, _NO_MAP) for each in maps))
    return True


def _disagreement(one: Json, two: Json) -> float | None:
    """The divergence of two attention maps; None if a map is empty or their pieces differ."""
    if not one["weights"] or any(one[side] != two[side] for side in ("source", "target")):
        return None
    return divergence(one["weights"], two["weights"])


def divergence(one: Sequence[Sequence[float]], two: Sequence[Sequence[float]]) -> float:
    """The Jensen-Shannon divergence of two matrices of weights [T][S], as the mean over rows, in nats.

    Rows are normalised first. Equal rows have 0; rows without a common word have log 2.
    """
    from scipy.special import rel_entr  # type: ignore[import-untyped]

    weights = (np.asarray(each, np.float64) for each in (one, two))
    p, q = (each / np.maximum(each.sum(axis=1, keepdims=True), 1e-12) for each in weights)
    return float((rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)).sum(axis=1).mean() / 2)
