"""Labels of variants, and which settings tell them apart."""

from typing import Any

import pytest

from nmt.compare.labels import labels
from tests.compare.runs import ADDITIVE, NEW, OLD, study


def test_links_that_guided_are_named_where_nothing_else_tells() -> None:
    guided = {**OLD, "trainer.guided_alignment": 1.0, "data.train_links": "12ab"}
    plain = {**OLD, "trainer.guided_alignment": 0.0}
    assert labels([plain, guided])[1] == ["guided alignment 0", "guided alignment 1"]
    assert labels([guided, {**guided, "data.train_links": "34cd"}])[1] == ["train links 12ab", "train links 34cd"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([{**NEW, "attention.heads": 1}, {**NEW, "attention.heads": 4}], ["heads 1", "heads 4"]),
        ([{**NEW, "attention.heads": heads} for heads in (1, 4)] + [{**OLD, "attention.heads": 1}],
         ["luong", "luong heads 4", "bahdanau"]),
        ([{**OLD, "attention/score": name} for name in ("scaled_dot", "additive")],
         ["scaled_dot", "additive"]),
        ([{"encoder.size": 8, "decoder.size": size} for size in (8, 16)], ["decoder size 8", "decoder size 16"]),
        ([{"attention.coverage": False}, {"attention.coverage": True}], ["no coverage", "coverage"]),
        ([{"encoder": "gru"}, {"encoder": "lstm"}],
         ["gru encoder", "lstm encoder"]),
        ([OLD], ["bahdanau additive"]),
        ([{"attention/score@encoder.self_attention.score": own} for own in ("dot", "general")],
         ["dot encoder score", "general encoder score"]),
        ([{"positions@decoder.positions": own} for own in ("learned", "none")],
         ["learned decoder positions", "none decoder positions"]),
        ([{"attention.heads": 4, "encoder.self_attention.heads": heads, "decoder.self_attention.heads": 4}
          for heads in (4, 8)],
         ["encoder self attention heads 4", "encoder self attention heads 8"]),
        # Only a setting that one has and the other has not tells these apart.
        ([{"a": 1, "attention.window.radius": 2}, {"a": 1}, {"a": 1, "attention.window.radius": 3}],
         ["radius 2", "without radius", "radius 3"]),
        # The usual one needs a name too, where it is all that it has.
        ([{"attention.heads": one, "attention.coverage": two} for one, two in ((1, False), (2, False), (1, True))],
         ["no coverage", "heads 2", "coverage"]),
        # Of two scores that come with two wirings, the wiring says enough.
        ([OLD, NEW, {**NEW, "attention/score": ADDITIVE}], ["bahdanau", "luong general", "luong additive"]),
    ],
)  # fmt: skip
def test_labels_are_the_fewest_words_that_tell_apart(settings: list[dict[str, Any]], expected: list[str]) -> None:
    assert labels(settings)[1] == expected


def test_labels_of_a_study_hide_what_is_usual() -> None:
    known = study()
    assert labels([own for _, own in known])[1] == [name for name, _ in known]
