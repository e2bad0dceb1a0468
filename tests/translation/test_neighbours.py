"""A translation is its own: equal text has one translation, whatever stands beside it in a batch, file or server."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt import api
from nmt.system.compute import has_int8
from nmt.translation import shortlist
from tests.small import pairs

#: A text and its score.
Hypothesis = tuple[str, float]
#: What the model has learnt: no hypothesis is near another one, so that coarse products exchange none.
KNOWN = [sentence for sentence, _ in pairs(40)]
PRECISIONS = ["float32", "bf16", *(["int8"] if has_int8() else [])]
SEARCHES = {
    "greedy": ["search=greedy"],
    "beam of 1": ["search.beam_size=1"],
    "beam of 3": ["search.beam_size=3", "search.nbest=3"],
    "beam of 5": ["search.beam_size=5", "search.coverage_penalty=0.2"],
    "sampling": ["search=sampling", "search.nbest=2"],
}
#: By how much rounding changes a score, or part of it.
TIE = {"float32": 1e-3, "bf16": 0.05, "int8": 0.05}
ODD = ["Ωmega 数据 🙂", "zwei\u2028?drei", "q", "äöü ½ № eins"]
odd = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12)


@pytest.fixture(autouse=True)
def few_common_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that are mostly those of one sentence."""
    monkeypatch.setattr(shortlist, "COMMON", 20)


@pytest.fixture(scope="module")
def loaded(trained: Path) -> Callable[..., api.RunTranslator]:
    """Translators by their settings."""
    return cache(lambda *words: api.load(trained, "device=cpu", "threads=1", "extra_length=5", *words))


def check_own(answers: Sequence[Sequence[Hypothesis]], tie: float, known: bool) -> None:
    """Two answers are the same; but rounding may exchange texts that have one score."""
    alone, beside = answers
    assert [score for _, score in beside] == pytest.approx([score for _, score in alone], rel=tie, abs=tie)
    if known:
        assert [text for text, _ in beside] == [text for text, _ in alone]


@pytest.mark.long
@settings(max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    precision=st.sampled_from(PRECISIONS),
    count=st.sampled_from([0, 1, 50]),
    search=st.sampled_from([*SEARCHES]),
    lines=st.lists(st.sampled_from(KNOWN) | odd, min_size=1, max_size=4),
    others=st.lists(st.sampled_from(KNOWN) | odd, max_size=8),
    batch=st.sampled_from([2, 5, 64]),
    data=st.data(),
)
def test_a_line_beside_others_is_translated_as_alone(
    precision: str,
    count: int,
    search: str,
    lines: list[str],
    others: list[str],
    batch: int,
    data: st.DataObject,
    loaded: Callable[..., api.RunTranslator],
) -> None:
    words = f"precision={precision}", f"shortlist={count}", *SEARCHES[search]
    one, many = loaded(*words), loaded(*words, f"batch_sentences={batch}")
    order = data.draw(st.permutations([*lines, *lines[:1], *others]))
    for line, beside in zip(order, many.nbest(order), strict=True):
        known = line in KNOWN and search != "sampling"  # which coarse products may draw otherwise
        if known or precision == "float32":
            [alone] = one.nbest([line])
            found = [[(each.text, each.score) for each in nbest] for nbest in (alone, beside)]
            check_own(found, TIE[precision], known)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_clients_that_ask_at_once_get_what_each_would_get_alone(precision: str, trained: Path) -> None:
    serve = pytest.importorskip("tests.serve.conftest", reason="nmt.serve is not there")
    made = serve.pool_of(trained, words=(f"precision={precision}",))
    bodies: list[dict[str, Any]] = [{"text": text, "include": []} for text in [*KNOWN[:5], KNOWN[0], *ODD]]
    bodies[1]["search"] = bodies[5]["search"] = {"nbest": 4}
    bodies[2]["search"] = bodies[6]["search"] = {"length_penalty": 0.0, "coverage_penalty": 0.3}
    bodies[3]["search"] = {"max_length": 3}
    bodies[4]["prefix"] = "one"
    rows = made.first.worker.queue
    with serve.client(made) as to, ThreadPoolExecutor(len(bodies)) as pool:
        waiting = [pool.submit(to.post, "/v1/translate", json=body) for body in bodies]
        while len(rows) < len(bodies) and not any(answer.done() for answer in waiting):
            time.sleep(0.01)
        made.first.worker.start()
        together = [answer.result().json() for answer in waiting]
        alone = [to.post("/v1/translate", json=body).json() for body in bodies]
    assert made.first.worker.stop(600)
    assert {answer["timing"]["batch_size"] for answer in alone} == {1}
    assert min(answer["timing"]["batch_size"] for answer in together) > 1
    for body, *answers in zip(bodies, alone, together, strict=True):
        found = [
            [(each["text"], each["score"]) for each in answer["translations"][0]["hypotheses"]] for answer in answers
        ]
        if precision == "float32" or body["text"] in KNOWN:
            check_own(found, TIE[precision], body["text"] in KNOWN)
