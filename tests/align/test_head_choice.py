"""`head=auto`: the head and the shift are those with the best links on validation data, and nothing else decides."""

import json
import re
from pathlib import Path

import pytest

from nmt.translation.named_heads import Heads
from tests.small import Capture, call, copied, pairs, words, write_lines

pytestmark = pytest.mark.long


SIZES = ("encoder=transformer", "decoder=transformer", "encoder.layers=2", "decoder.layers=2", "encoder.size=32")
HEADS = [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
VALID, TEST = pairs(340)[300:320], pairs(340)[320:340]


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer of two layers with four heads each that has learnt a little."""
    folder = tmp_path_factory.mktemp("auto")
    score = ("attention/score=scaled_dot", "attention.size=null", "optimizer.lr=0.005", "trainer.steps=60")
    assert call("train", *words(text, folder, "name=numbers", *SIZES, *score)) == 0
    return folder / "numbers"


def gold(path: Path, rows: list[tuple[str, str]], turned: bool) -> Path:
    """Links from word n to word n, or to word n from the end."""
    counts = [len(row[0].split()) for row in rows]
    return write_lines(
        path, [" ".join(f"{at}-{count - 1 - at if turned else at}" for at in range(count)) for count in counts]
    )


def candidates(err: str) -> dict[tuple[str, int], float]:
    """The error rate of each candidate in the message, by its words and its shift."""
    rows = re.findall(r"^(mean .*?|head \S+) {2,}(\S+) % +(\S+) %$", err, re.MULTILINE)
    return {(name, shift): float(row[shift]) for name, *row in rows for shift in (0, 1)}


def test_validation_links_choose_and_test_links_do_not(trained: Path, here: Path, capfd: Capture) -> None:
    """Whatever the links of the test are, the choice is that of the validation; other validation links choose anew."""
    run = copied(trained, here)
    sides = {
        name: [write_lines(here / f"{name}.{at}", [row[at] for row in rows]) for at in (0, 1)]
        for name, rows in (("valid", VALID), ("test", TEST))
    }
    chosen = {}
    for turned in (False, True):
        valid = gold(here / f"valid-{turned}", VALID, turned)
        for test_turned in (False, True):
            tested = gold(here / f"test-{test_turned}", TEST, test_turned)
            line = [f"source={sides['test'][0]}", f"target={sides['test'][1]}", f"gold={tested}"]
            line += [f"valid_source={sides['valid'][0]}", f"valid_target={sides['valid'][1]}", f"valid_gold={valid}"]
            capfd.readouterr()
            assert call("align", f"run={run}", *line, f"output={here / 'links'}") == 0
            out, err = capfd.readouterr()
            rates = candidates(err)
            assert len(rates) == 2 * (1 + 2 + 8)
            head, shift = re.findall(r"^Links use head=([\w.]+)[,;] .*\(shift (\d)\)", err, re.MULTILINE)[0]
            assert rates[Heads(HEADS).describe(head), int(shift)] == min(rates.values())
            assert re.search(rf"^attention, shift {shift} \*", out, re.MULTILINE)
            chosen[turned, test_turned] = head, shift
    assert chosen[False, False] == chosen[False, True]
    assert chosen[True, False] == chosen[True, True]
    # The saved measurement says what it is, under the name that all runs share.
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in (run / "alignments").iterdir()]
    assert {measured["gold"] for measured in kept} == {"test-False", "test-True"}
    assert {measured["head"] for measured in kept} <= {chosen[True, True][0]}


def test_the_rates_of_candidates_are_those_of_their_links(trained: Path, here: Path, capfd: Capture) -> None:
    """What the message says of a head is what scoring the links of that head on the validation data says."""
    valid = gold(here / "gold", VALID, False)
    sides = [write_lines(here / f"valid.{at}", [row[at] for row in VALID]) for at in (0, 1)]
    text = [f"source={sides[0]}", f"target={sides[1]}"]
    line = [f"valid_source={sides[0]}", f"valid_target={sides[1]}", f"valid_gold={valid}", f"output={here / 'x'}"]
    assert call("align", f"run={trained}", *text, *line) == 0
    rates = candidates(capfd.readouterr().err)
    for head, name in (("1.3", "head 1.3"), ("2.mean", "mean of the 4 heads of layer 2"), ("mean", "mean of 8 heads")):
        for shift in (0, 1):
            links = here / f"{head}-{shift}"
            assert call("align", f"run={trained}", *text, f"head={head}", f"shift={shift}", f"output={links}") == 0
            assert call("align", *text, f"links={links}", f"gold={valid}") == 0
            printed = re.findall(r" {2,}(\S+) % .* %$", capfd.readouterr().out, re.MULTILINE)[0]  # before the diagonal
            assert float(printed) == rates[name, shift]


def test_without_validation_links_the_default_is_stated(trained: Path, here: Path, capfd: Capture) -> None:
    sides = [write_lines(here / f"test.{at}", [row[at] for row in TEST]) for at in (0, 1)]
    line = [f"run={trained}", f"source={sides[0]}", f"target={sides[1]}"]
    assert call("align", *line, f"output={here / 'auto'}") == 0
    assert (
        "shift=auto head=auto: no validation links, so shift=0 and head=1.mean, the mean of the 4 heads of layer 1. To "
        "choose the shift and the head on validation links, give valid_gold=FILE."
    ) in capfd.readouterr().err
    assert call("align", *line, "head=1.mean", "shift=0", f"output={here / 'default'}") == 0
    assert (here / "auto").read_text(encoding="utf-8") == (here / "default").read_text(encoding="utf-8")
    capfd.readouterr()
    command = [f"run={trained}", f"input={sides[0]}", f"output={here / 'out'}", "search=greedy"]
    assert call("translate", *command, f"alignments={here / 'one'}") == 0
    assert "head=auto: links and heatmaps use head=1.mean, the mean of the 4 heads of layer 1" in capfd.readouterr().err
    assert call("translate", *command, f"alignments={here / 'two'}", "head=1.mean") == 0
    assert "head=auto" not in capfd.readouterr().err
    assert (here / "one").read_text(encoding="utf-8") == (here / "two").read_text(encoding="utf-8")
