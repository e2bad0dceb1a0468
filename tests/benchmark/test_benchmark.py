"""The measuring scripts: clocks and mistakes."""

import benchmark
import numpy as np
import pytest
from benchmarking import clocks
from benchmarking.settings import (
    Json,
    Place,
    Sizes,
)
from benchmarking.torch_models import Plain, train_plain

from nmt.data.pairs import EncodedPairs, Ragged

SIZES = Sizes(pieces=11, embedding=3, encoder=2, decoder=5, attention=6, features=7)


def pairs() -> EncodedPairs:
    """Four pairs, of 2 to 4 and 1 to 3 tokens."""
    source = Ragged([(np.full(13, 5, dtype=np.int32), np.array([0, 2, 5, 9, 13]))])
    target = Ragged([(np.full(9, 6, dtype=np.int32), np.array([0, 1, 3, 6, 9]))])
    return EncodedPairs(source, target, np.arange(4), {})


def test_the_clock_stops_after_the_updates_that_were_ordered() -> None:
    answers: list[Json] = []

    def exchange(answer: Json) -> Json | None:
        answers.append(answer)
        return {"updates": 2} if len(answers) < 3 else None

    place = Place("cpu", "float32", 1)
    feed = clocks.Feed(pairs(), exchange, place, tokens=100, sentences=2)
    with pytest.raises(clocks.Enough):
        train_plain(Plain(SIZES, 0.1), feed, place)
    assert [answer["updates"] for answer in answers] == [0, 2, 4]
    for answer in answers[1:]:  # two batches of two are an epoch
        assert answer["batches"] == 2
        assert sorted(answer["lengths"]) == [(3, 2), (4, 3), (5, 4), (5, 4)]  # with the ends
        assert answer["tokens"] == 13
        assert answer["seconds"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "trainin"], "'training'"),
        (["--data", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--rounds", "0"], "--rounds"),
        (["--round-robin"], "--round-robin"),
        (["--device", "tpu"], "tpu"),
        (["--json", "/proc/none/results.json"], "/proc/none"),
    ],
)
def test_mistakes_are_said_at_once(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(words) == 1
    assert said in capsys.readouterr().err
