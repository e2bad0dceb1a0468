"""Scores by length, and the folder of a split."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.evaluation import length_bins as by_length
from nmt.evaluation.metrics import bleu
from nmt.evaluation.split import Gold, HeatmapSettings, evaluate_split, summary
from nmt.system.errors import UserError
from tests.alignment.by_hand import EMPTY, WORKED, even


def test_bins_hold_the_sentences_of_their_lengths() -> None:
    sources = ["a", "a b c d e", "a b c d e f", " ".join("abcdefghijkl"), ""]
    lines = ["v w x y z", "v w x y z", "v w x y q", "v w x y z", ""]
    found = by_length.score_by_length(sources, lines, ["v w x y z"] * 4 + [""], "en")
    assert [(entry.shortest, entry.longest, entry.sentences) for entry in found.bins] == [
        (1, 5, 2),
        (6, 10, 1),
        (11, 15, 1),
    ]
    assert [entry.score for entry in found.bins] == pytest.approx(
        [100, bleu(["v w x y q"], ["v w x y z"], "en").value, 100]
    )
    assert (found.metric, found.unit) == ("bleu", "words")


def test_long_texts_get_wider_bins() -> None:
    found = by_length.score_by_length(["x " * 61], ["a"], ["a"], "en")
    assert found.bins[0][:2] == (61, 70)


def test_text_without_spaces_is_measured_in_characters() -> None:
    found = by_length.score_by_length(["我爱你们的狗"], ["I love"], ["I love"], "en")
    assert found.unit == "characters"
    assert found.bins[0][:2] == (6, 10)


def test_empty_sources_are_in_no_bin() -> None:
    assert by_length.score_by_length([" "], ["a"], ["a"], "en").bins == []


def test_bins_with_few_sentences_are_joined_with_their_neighbours() -> None:
    bins = by_length.binned([1, 6, 7, 8, 11, 12, 13, 16, 21])
    assert [(shortest, longest, len(rows)) for shortest, longest, rows in bins] == [
        (1, 5, 1), (6, 10, 3), (11, 15, 3), (16, 20, 1), (21, 25, 1)
    ]  # fmt: skip
    found = by_length.joined(bins, 2)
    assert found == [(1, 10, [0, 1, 2, 3]), (11, 15, [4, 5, 6]), (16, 25, [7, 8])]
    assert by_length.joined(bins, 10) == [(1, 25, list(range(9)))]
    assert by_length.joined(bins, 1) == bins
    assert by_length.joined([], 2) == []


SENTENCES = [WORKED, EMPTY, even("Zwei Hunde", "two dogs", heads=2)]


REFERENCES = ["houses are burning", "", "two dogs"]


def test_a_split_lands_whole_in_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "prüfung = [1]"
    result = evaluate_split(
        SENTENCES,
        REFERENCES,
        name="test",
        languages=("de", "en"),
        folder=folder,
        gold=Gold(["1-0 2-1", "", "0-0 1-1"], SENTENCES),
        display=HeatmapSettings(first=1, lines=[3]),
        provenance={"run": "checkpoints/x"},
        measured={"perplexity": 3.0},
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "alignments.pharaoh",
        "heatmaps",
        "hypotheses.txt",
        "reference.txt",
        "scores.json",
        "sentences.json",
        "source.txt",
    ]
    names = ["0001-subword.png", "0001-word.png", "0003-subword.png", "0003-word.png"]
    assert sorted(path.name for path in (folder / "heatmaps").iterdir()) == names
    assert sorted(path.name for path in result.pictures) == names
    assert (folder / "hypotheses.txt").read_text(encoding="utf-8") == "houses burn\n\ntwo dogs\n"
    # Mean of the heads: houses at Haus, burn at brennt; the even one links everything to its first word.
    assert (folder / "alignments.pharaoh").read_text(encoding="utf-8") == "1-0 2-1\n\n0-0 0-1\n"
    record = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    assert record["sentences"] == 3
    bins = [(each["shortest"], each["longest"], each["sentences"]) for each in record["by_length"]["bins"]]
    assert bins == [(1, 5, 2)]
    assert record["bleu"]["value"] == result.scores.bleu.value
    assert record["provenance"] == {"run": "checkpoints/x"}
    assert record["measured"] == {"perplexity": 3.0}
    assert (folder / "reference.txt").read_text(encoding="utf-8") == "houses are burning\n\ntwo dogs\n"
    assert (folder / "source.txt").read_text(encoding="utf-8") == "das Haus brennt\n\nZwei Hunde\n"
    # Four links, of which 1-0, 2-1 and 0-0 are in the gold's four.
    assert record["alignment"]["shift_0"]["aer"] == pytest.approx(1 - (3 + 3) / (4 + 4))
    assert set(result.alignment) == {0, 1}
    printed = summary([result])
    for part in ("BLEU", "tok:13a", "shift 0", "25.0 %", "source words", str(folder)):
        assert part in printed


def test_without_attention_there_are_scores_and_a_note(tmp_path: Path) -> None:
    blind = [sentence._replace(weights=None) for sentence in SENTENCES]
    result = evaluate_split(
        blind,
        REFERENCES,
        name="test",
        languages=("de", "en"),
        folder=tmp_path / "out",
        gold=Gold(["0-0", "", ""], blind),
    )
    assert result.pictures == []
    assert result.alignment == {}
    assert not (tmp_path / "out" / "alignments.pharaoh").exists()
    assert any("decoder=none" in note for note in result.notes)
    assert "no heatmaps" in summary([result])


def test_a_line_too_long_for_weights_has_no_links_and_no_heatmap(tmp_path: Path) -> None:
    lines = [SENTENCES[0]._replace(weights=None), *SENTENCES[1:]]
    result = evaluate_split(lines, REFERENCES, name="test", languages=("de", "en"), folder=tmp_path)
    assert (tmp_path / "alignments.pharaoh").read_text(encoding="utf-8") == "\n\n0-0 0-1\n"
    assert {path.name[:4] for path in result.pictures} == {"0002", "0003"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"display": HeatmapSettings(lines=[4])}, "Heatmap of line 4 of test: it has lines 1 to 3"),
        ({"display": HeatmapSettings(lines=[0])}, "Heatmap of line 0"),
        ({"references": ["a"]}, "the translation has 3 lines and the reference has 1 line:"),
        ({"gold": Gold(["0-0"], SENTENCES)}, "The gold has 1 line and the text has 3 lines"),
        ({"gold": Gold(["0-0", "", "x"], SENTENCES)}, "'x' is not a word link"),
        ({"display": HeatmapSettings(head=5)}, "head=5"),
        ({"display": HeatmapSettings(shift=3)}, "shift=3"),
    ],
)
def test_mistakes_are_named_and_leave_no_scores(tmp_path: Path, change: dict[str, object], message: str) -> None:
    how: dict[str, object] = {"references": REFERENCES, **change}
    with pytest.raises(UserError, match=message):
        evaluate_split(
            SENTENCES,
            name="test",
            languages=("de", "en"),
            folder=tmp_path / "out",
            **how,  # type: ignore[arg-type]
        )
    assert not (tmp_path / "out").exists()


def test_pictures_asked_of_a_model_without_attention(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="decoder=none"):
        evaluate_split(
            [sentence._replace(weights=None) for sentence in SENTENCES],
            REFERENCES,
            name="test",
            languages=("de", "en"),
            folder=tmp_path / "out",
            display=HeatmapSettings(lines=[1]),
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_the_room_needs_no_torch_and_the_report_loads_matplotlib_late() -> None:
    code = (
        "import sys, nmt.evaluation.split\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import nmt.drawing.heatmap, nmt.evaluation.length_bins\n"
        "assert 'torch' not in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ, cwd=Path(__file__).parents[2])
