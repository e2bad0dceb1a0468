"""Links where two views of a pair agree: two directions, or the attention and the saliency of one model."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.links import parse_links
from tests.small import Capture, call, pairs, write_lines

ROWS = [*pairs(360)[345:], ("", ""), ("eins", ""), ("eins zwei drei", "one two"), ("eins", "one two three")]
LEAST = 0.85
Matrices = list[dict[str, Any]]


@pytest.fixture
def files(here: Path) -> list[str]:
    return [
        f"{name}={write_lines(here / name, [row[at] for row in ROWS])}" for at, name in enumerate(("source", "target"))
    ]


def aligned(here: Path, *line: str) -> tuple[Matrices, list[set[tuple[int, int]]]]:
    """The matrices and the links that the command writes."""
    assert call("align", *line, "shift=0", f"matrix={here / 'matrix'}", f"output={here / 'links'}") == 0
    matrices, links = ((here / name).read_text(encoding="utf-8").split("\n")[:-1] for name in ("matrix", "links"))
    return list(map(json.loads, matrices)), [set(parse_links(row).sure) for row in links]


def check(one: Matrices, other: Matrices, links: list[set[tuple[int, int]]], least: float = LEAST) -> None:
    """Links are where the product, in relation to the best of its row and its column, is large."""
    for first, second, linked in zip(one, other, links, strict=True):
        p = np.multiply(first["weights"], second["weights"])
        if not p.size:
            assert linked == set()
            continue
        agreed = p / np.sqrt(np.outer(p.max(1), p.max(0)) + 1e-12)
        margin = 0.01  # weights in the file have five digits
        assert {(s, t) for t, s in np.argwhere(agreed > least + margin).tolist()} <= linked
        assert linked <= {(s, t) for t, s in np.argwhere(agreed > least - margin).tolist()}


def test_attention_and_saliency_of_a_model_agree(trained: Path, here: Path, files: list[str]) -> None:
    run = [f"run={trained}", *files]
    attention, saliency = (aligned(here, *run, f"method={method}")[0] for method in ("attention", "saliency"))
    rows, links = aligned(here, *run, "method=both")
    assert sum(map(len, links)) > 20
    check(attention, saliency, links)
    for row, one, other in zip(rows, attention, saliency, strict=True):
        if np.size(one["weights"]):
            np.testing.assert_allclose(row["weights"], np.mean([one["weights"], other["weights"]], axis=0), atol=2e-5)
    assert aligned(here, *run, "method=both", "symmetrize=agreement")[1] == links
    _, more = aligned(here, *run, "method=both", "threshold=0.3")
    check(attention, saliency, more, 0.3)
    assert sum(map(len, more)) > sum(map(len, links))


@pytest.mark.parametrize("method", ["attention", "saliency", "both"])
def test_two_directions_agree(method: str, trained: Path, back: Path, here: Path, files: list[str]) -> None:
    for line, least in (([], LEAST), (["threshold=0.5"], 0.5)):
        rows, links = aligned(here, f"run={trained}", f"reverse={back}", *files, f"method={method}", *line)
        turned = [{**row, "weights": np.transpose(row["reverse"])} for row in rows]
        check(rows, turned, links, least)
        assert sum(map(len, links)) > 20


def test_the_written_links_are_the_marked_row(
    trained: Path, back: Path, here: Path, files: list[str], capfd: Capture
) -> None:
    gold = write_lines(here / "gold", ["0-0" if all(row) else "" for row in ROWS])
    both = [f"reverse={back}", "method=both"]
    for line, name in (([], "attention, shift 0"), (both[1:], "agreement of attention, shift 0 and saliency")):
        rate(here, [f"run={trained}", *files, *line], gold, name, capfd)
    for line, name in ((both[:1], "attention, shift 0"), (both, "attention, shift 0 + saliency")):
        rate(here, [f"run={trained}", *files, *line], gold, f"agreement of {name}", capfd)


def rate(here: Path, line: list[str], gold: Path, name: str, capfd: Capture) -> None:
    assert call("align", *line, "shift=0", f"gold={gold}", f"output={here / 'links'}") == 0
    marked = re.findall(r"^(\S.*?) \* {2,}(.*)$", capfd.readouterr().out, re.MULTILINE)
    assert call("align", f"links={here / 'links'}", f"gold={gold}") == 0
    (scores,) = re.findall(r"\S+ %  .*$", capfd.readouterr().out, re.MULTILINE)
    assert [(label, rates.split()) for label, rates in marked] == [(name, scores.split())]
