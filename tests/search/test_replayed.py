"""Beams in tensors of fixed shapes: what an ordinary search finds, in any room, and in a beam that was used before.

Here nothing is captured; `tests/cuda/` replays the steps as a CUDA graph.
"""

import dataclasses

import pytest
import torch
from torch import Tensor

from nmt.model import Seq2Seq, Source
from nmt.search import BeamSearch, GreedySearch, Hypothesis, Limits, Search
from nmt.search.replayed import MOST_BEAMS, Replays, Room
from nmt.system.graphs import Graphs
from nmt.translation.glossary import Glossary
from nmt.translation.request import Request
from nmt.translation.stepper import Stepper
from nmt.translation.translator import Translator
from tests.catalogue import model, sentences, thinned
from tests.test_configs import tokenizer
from tests.translation.test_stepping import BOS, COMBINATIONS, EOS
from tests.translation.test_translator import SENTENCES, small

ROOM = Room(4, 8, 12)


def padded(source: Tensor, mask: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sentences that are padded to the room, with empty ones after them."""
    rows, slots = len(source), source.shape[1]
    wide, real = source.new_zeros(ROOM.rows, ROOM.slots), mask.new_zeros(ROOM.rows, ROOM.slots)
    wide[:, 0], real[:, 0] = EOS, True
    wide[:rows, :slots], real[:rows, :slots] = source, mask
    return wide, real, torch.cat([counts, counts.new_ones(ROOM.rows - rows)])


def found(
    search: Search, made: Seq2Seq, lengths: list[int], most: list[int], replays: Replays | None
) -> list[list[Hypothesis]]:
    """The n-best lists of sentences, by beams of fixed shapes if there are any."""
    source, stepper = sentences(lengths, 23, len(lengths)), Stepper([made])
    forbidden = 0, 1, BOS
    with torch.inference_mode():
        if replays is None:
            limits = Limits(BOS, EOS, forbidden, torch.tensor(most), source[1])
            return search(stepper, stepper.start(Source(*source)), limits)
        source = padded(*source)
        limits = Limits(BOS, EOS, forbidden, torch.tensor([*most, *[1] * (ROOM.rows - len(most))]), source[1])
        state = stepper.start(Source(*source), room=ROOM.steps)
        return replays(search, stepper, state, limits, ROOM, max(most))[: len(most)]


def check_same(some: list[list[Hypothesis]], others: list[list[Hypothesis]]) -> None:
    for one, other in zip(some, others, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        for ordinary, fixed in zip(one, other, strict=True):
            assert (fixed.score, fixed.log_prob) == pytest.approx((ordinary.score, ordinary.log_prob), abs=1e-5)
            assert (fixed.weights is None) == (ordinary.weights is None)
            if ordinary.weights is not None and fixed.weights is not None:
                weights = torch.from_numpy(fixed.weights[:, :, : ordinary.weights.shape[2]])
                torch.testing.assert_close(weights, torch.from_numpy(ordinary.weights), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("overrides", thinned(COMBINATIONS, 3), ids=" ".join)
def test_a_beam_of_a_fixed_shape_finds_what_an_ordinary_one_finds(overrides: tuple[str, ...]) -> None:
    """Batches of other lengths and sizes after one another, the last one with a sentence at its limit."""
    made = model(*overrides)
    coverage = 0.2 if made.decoder.heads else 0.0
    for search in (BeamSearch(3, nbest=2, coverage_penalty=coverage), GreedySearch()):
        replays = Replays(Graphs(on_gpu=False))
        for lengths, most in (([5, 2, 7, 1], [9, 4, 12, 6]), ([3, 6], [7, 7]), ([8], [1])):
            check_same(*(found(search, made, lengths, most, each) for each in (None, replays)))
        assert len(replays.beams) == 1


def test_other_settings_have_other_beams_and_old_ones_are_forgotten() -> None:
    made, replays = model("decoder=luong"), Replays(Graphs(on_gpu=False))
    for size in range(1, MOST_BEAMS + 3):
        check_same(*(found(BeamSearch(size), made, [5, 2], [6, 6], each) for each in (None, replays)))
    assert len(replays.beams) == MOST_BEAMS
    kept = next(iter(replays.beams))
    found(BeamSearch(3), made, [5, 2], [6, 6], replays)  # the oldest one
    assert kept not in list(replays.beams)[:1]


@pytest.mark.parametrize(
    ("rows", "slots", "room"),
    [(1, 3, (1, 4)), (2, 9, (4, 12)), (17, 17, (64, 24)), (65, 33, (80, 48)), (1024, 64, (1024, 64))],
)
def test_rooms_have_few_sizes(rows: int, slots: int, room: tuple[int, int]) -> None:
    assert Room.of(rows, slots, lambda slots: 2 * slots) == (*room, 2 * room[1])


def test_a_translator_finds_the_same_texts_and_weights() -> None:
    """Where something makes other shapes, it searches as usual."""
    made, words = small("decoder=conditional"), tokenizer("unigram")
    plain = Translator([made, small("decoder=luong")], words, BeamSearch(3, nbest=2), batch_sentences=2)
    fixed = dataclasses.replace(plain, replays=Replays(Graphs(on_gpu=False)))
    requests = [*map(Request, SENTENCES), Request(""), Request("eins", max_length=2)]
    forced = [Request("eins", prefix="zwei"), Request("eins", pins={0: [0]}), Request("eins", glossary=Glossary({}))]
    for one, other in zip(plain.translate(requests + forced), fixed.translate(requests + forced), strict=True):
        for ordinary, replayed in zip(one, other, strict=True):
            assert replayed.text == ordinary.text
            assert replayed.score == pytest.approx(ordinary.score, abs=1e-5)
            assert (replayed.weights is None) == (ordinary.weights is None)
    assert fixed.replays is not None
    assert 0 < len(fixed.replays.beams) < 5
