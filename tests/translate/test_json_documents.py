"""One value of a translation, by four doors: `nmt.translate format=json`, Python, the REST interface, reports."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

import nmt
from nmt.inspection.details import Detail
from tests.colours import documents as coloured_lines
from tests.small import BOTH, call, write_lines
from tests.small import words as small_words
from tests.translate.test_translate import LINES, Capture, translate

pytestmark = pytest.mark.long

ALL = get_args(Detail)
SENTENCES = ["eins zwei drei", "", "rot und blau", "vier\x0bfünf"]
SEARCH = ["search.beam_size=3", "search.nbest=2"]


def terminal(run: Path, sentences: Sequence[str], here: Path, include: Sequence[str], *more: str) -> list[Any]:
    """The documents that the command writes."""
    lines = translate(run, list(sentences), here, "format=json", f"include=[{','.join(include)}]", *SEARCH, *more)
    return [json.loads(line) for line in lines]


def same(one: Any, other: Any) -> bool:
    """Whether two values have the same keys, texts and numbers; log-probabilities depend on the batch a little."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, abs=1e-4)
    return bool(one == other)


@pytest.fixture(params=["trained", "transformer", "unattentive"])
def run(request: pytest.FixtureRequest) -> Path:
    """A recurrent run, one with layers of several heads, one without attention."""
    return Path(request.getfixturevalue(request.param))


@pytest.mark.parametrize("include", [ALL, ("alignment",), ("weights", "alternatives")], ids=len)
def test_the_terminal_writes_what_python_returns(run: Path, include: tuple[str, ...], here: Path) -> None:
    translator = nmt.load(run, *SEARCH, "device=cpu", "threads=1")
    ours, theirs = terminal(run, SENTENCES, here, include), translator.documents(SENTENCES, include)
    assert same(ours, theirs)
    assert [each["source"]["text"] for each in ours] == SENTENCES
    assert [len(each["hypotheses"]) for each in ours] == [2, 1, 2, 2]
    assert bool(ours[0]["beam"]) == ("beam" in include)
    assert (ours[0]["hypotheses"][0]["pieces"][0]["alternatives"] is None) == ("alternatives" not in include)


def test_a_record_is_a_line_for_every_reader(trained: Path, here: Path) -> None:
    lines = translate(trained, LINES, here, "format=json")
    assert [len(line.splitlines()) for line in lines] == [1] * len(LINES)


def test_the_links_are_of_the_head_that_a_run_was_guided_to_align(text: Path, here: Path) -> None:
    """By all doors, and not of the mean of the penultimate layer."""
    links = write_lines(here / "links", ["0-0"] * 300)
    guided = ["trainer.guided_alignment=1", f"data.train_links={links}", "trainer.steps=2"]
    layers = [*BOTH, "encoder.size=32", "attention/score=scaled_dot", "attention.size=null", "decoder.layers=2"]
    assert call("train", *small_words(text, here, "name=guided", *layers, *guided)) == 0
    [document] = terminal(here / "guided", ["eins"], here, ["alignment"])
    [other] = nmt.load(here / "guided", *SEARCH).documents(["eins"])
    assert document["hypotheses"][0]["alignment"]["head"] == other["hypotheses"][0]["alignment"]["head"] == "1.1"
    [chosen] = terminal(here / "guided", ["eins"], here, ["alignment"], "head=2.mean", "shift=1")
    assert (chosen["hypotheses"][0]["alignment"]["head"], chosen["hypotheses"][0]["alignment"]["shift"]) == (
        "2.mean",
        1,
    )


def test_the_server_answers_the_same(trained: Path, transformer: Path, here: Path) -> None:
    serve = pytest.importorskip("tests.serve.conftest", reason="nmt.serve is not there")

    made = serve.pool_of(trained, transformer)
    for model in made.models.values():
        model.worker.start()
    with serve.client(made) as server:
        for name, run in (("0", trained), ("1", transformer)):
            body = {"text": SENTENCES, "model": name, "include": ALL, "search": {"beam_size": 3, "nbest": 2}}
            answer = server.post("/v1/translate", json=body).json()["translations"]
            assert [each.pop("unseen") for each in answer][1:3] == [[], []], "which the command says in a note"
            assert [each.pop("unlike") for each in answer][1:3] == [None, None], "likewise"
            assert same([{**each, "model": None} for each in answer], terminal(run, SENTENCES, here, ALL))
    for model in made.models.values():
        assert model.worker.stop(600)


def test_a_report_has_the_same_keys(trained: Path, here: Path) -> None:
    """Its weights are bytes, its search is that of the scores, and it leaves out the vectors, which would be large."""
    write_lines(here / "source", ["eins zwei drei"])
    write_lines(here / "reference", ["one two three"])
    line = [f"source={here / 'source'}", f"reference={here / 'reference'}", f"output={here / 'scores'}", *SEARCH]
    assert call("evaluate", f"run={trained}", *line) == 0
    page = next((here / "scores").glob("*/report.html")).read_text(encoding="utf-8")
    [found] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    [sentence] = json.loads(found)["sentences"]
    [report] = [each["translation"] for each in sentence["translations"]]
    [ours] = terminal(trained, ["eins zwei drei"], here, [detail for detail in ALL if detail != "vectors"])
    assert same(*({**each, "search": None, "hypotheses": [_plain(own) for own in each["hypotheses"]]}
                  for each in (report, ours)))  # fmt: skip


def _plain(hypothesis: dict[str, Any]) -> dict[str, Any]:
    """A hypothesis without the numbers of its weights."""
    weights = {name: each and {**each, "data": 0, "bytes": 0} for name, each in hypothesis["weights"].items()}
    return {**hypothesis, "weights": weights}


def test_prefixes_and_contexts_are_in_the_documents(seeing: Path, here: Path) -> None:
    source, expected = coloured_lines(3, seed=4)
    prefixes = write_lines(here / "prefixes", ["", expected[1][:2], *[""] * (len(source) - 2)])
    for include in (["alignment"], ["beam"]):  # which searches each line alone
        found = terminal(seeing, source, here, include, f"prefix={prefixes}")
        assert [each["hypotheses"][0]["text"] for each in found] == expected
        assert [[side["text"] for side in each["context"] or []] for each in found[:3]] == [[], source[:1], []]
        forced = [[piece["forced"] for piece in each["hypotheses"][0]["pieces"]] for each in found[:2]]
        assert not any(forced[0])
        assert forced[1][0]
        assert not forced[1][-1]


@pytest.mark.parametrize(("settings", "message"), [
    (["include=[beam]"], "include= needs format=json."),
    (["format=jsonl", "include=[beam]"], "include= needs format=json."),
    (["format=json", "include=[beams]"], "include=beams does not exist. Give some of: alignment, weights, "),
    (["format=json", "include=beam"], "include=beam: must be a list, written [a,b]"),
    (["format=json", "weights=true"], "weights=true needs format=jsonl. With format=json, give include=[alignment,wei"),
    (["format=json", "show=links"], "show=links is for text on standard output."),
])  # fmt: skip
def test_settings_that_do_not_fit(settings: list[str], message: str, trained: Path, here: Path, capfd: Capture) -> None:
    write_lines(here / "in.txt", ["eins"])
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", f"output={here / 'out'}", *settings) == 1
    assert message in capfd.readouterr().err
    assert not (here / "out").exists()
    assert call("translate", f"run={trained}", f"input={here / 'in.txt'}", "format=json", "include=[beam]") == 0
    assert json.loads(capfd.readouterr().out)["beam"]["size"] == 5
