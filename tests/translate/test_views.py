"""Heatmaps of self-attention and of many heads through the verbs, in TensorBoard, and what cannot be shown."""

import json
from pathlib import Path

import pytest
from matplotlib.image import imread

from nmt.runs.run import Run
from tests.small import call, refusal, words, write_lines

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]

SIZES = ("encoder.layers=2", "decoder.layers=2", "encoder.size=32", "attention/score=scaled_dot", "attention.size=null")


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Transformer with two layers of four heads that has learnt some words, and its curves."""
    folder = tmp_path_factory.mktemp("views")
    more = ("name=numbers", "encoder=transformer", "decoder=transformer", "trainer.steps=40", "trainer.samples=1")
    assert call("train", *words(text, folder, *more, *SIZES, "trainer.tensorboard=true")) == 0
    return folder / "numbers"


def test_tensorboard_shows_every_kind(trained: Path) -> None:
    (events,) = (trained / "tensorboard").iterdir()
    data = events.read_bytes()
    for name in (b"attention/0", b"encoder_self_attention/0", b"decoder_self_attention/0"):
        assert name in data


@pytest.mark.parametrize("view", ["encoder", "decoder", "cross"])
def test_translate_draws_each_view_by_head(view: str, trained: Path, here: Path) -> None:
    """All heads need a larger page than a layer, and a layer a wider one than a head."""
    source = write_lines(here / "in", ["eins und zwei und drei", "", "rot"])
    line = [f"run={trained}", f"input={source}", f"output={here / 'out'}", "search=greedy", f"view={view}"]
    shapes = {}
    for head in ("all", "2.all", "2.4", "2.mean"):
        folder = here / head
        assert call("translate", *line, f"heatmaps={folder}", f"head={head}") == 0
        drawn = sorted(path.name for path in folder.iterdir())
        assert "00001.png" in drawn
        assert "00002.png" not in drawn
        shapes[head] = imread(folder / "00001.png").shape
    assert shapes["all"][0] > shapes["2.all"][0]
    assert shapes["2.4"] != shapes["2.all"]


def test_evaluate_draws_a_view_and_scores_the_links_of_the_head(trained: Path, here: Path, capfd: Capture) -> None:
    line = [f"run={trained}", "split=test", "pictures=1", "search=greedy"]
    for name, more in (("views", ["view=encoder"]), ("grid", ["head=all"]), ("plain", [])):
        assert call("evaluate", *line, *more, f"output={here / name}") == 0
        assert len(list((here / name / "test" / "heatmaps").iterdir())) == 2
        capfd.readouterr()
    links = [(here / name / "test" / "alignments.pharaoh").read_bytes() for name in ("views", "grid", "plain")]
    assert links[0] == links[1] == links[2]
    pictures = [(here / name / "test" / "heatmaps" / "0001-word.png").read_bytes() for name in ("views", "plain")]
    assert pictures[0] != pictures[1]
    measured = json.loads((here / "plain" / "test" / "scores.json").read_text(encoding="utf-8"))["measured"]
    by_head = measured["attention_entropy_by_head"]
    assert list(by_head) == [f"{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
    assert sum(by_head.values()) / 8 == pytest.approx(measured["attention_entropy"])


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (["view=encoder"], "view=encoder is for heatmaps. Give heatmaps=FOLDER as well."),
        (
            ["view=decoder", "heatmaps={here}/maps", "head=3.1"],
            "head=3.1 does not exist. Give head=auto, all, mean",
        ),
        (["heatmaps={here}/maps", "head=3.all"], "head=3.all does not exist. Give head=auto, all, mean"),
        (["alignments={here}/links", "head=all"], "head=all does not exist. Give head=auto, mean, 2.mean"),
        (["view=self", "heatmaps={here}/maps"], "view=self: must be encoder, decoder, cross or context"),
    ],
)
def test_heads_and_views_that_are_not_there(
    line: list[str], part: str, trained: Path, here: Path, capfd: Capture
) -> None:
    source = write_lines(here / "in", ["rot"])
    filled = [word.format(here=here) for word in line]
    assert part in refusal(capfd, here, "translate", f"run={trained}", f"input={source}", *filled)
    assert Run(trained).exists()


@pytest.mark.parametrize("view", ["encoder", "decoder"])
@pytest.mark.parametrize("verb", ["translate", "evaluate"])
def test_a_recurrent_run_has_no_self_attention(
    verb: str, view: str, unattentive: Path, here: Path, capfd: Capture
) -> None:
    own = [f"input={write_lines(here / 'in', ['rot'])}", f"heatmaps={here / 'maps'}"] if verb == "translate" else []
    message = refusal(capfd, here, verb, f"run={unattentive}", *own, f"view={view}")
    assert f"this run's {view} has none. Leave it out, or use a run with {view}=transformer." in message
