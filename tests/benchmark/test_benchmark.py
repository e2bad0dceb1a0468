"""The measuring scripts: clocks, logs of peers, mistakes, the same model in torch."""

import benchmark
import numpy as np
import pytest
import torch
from benchmarking import clocks
from benchmarking.settings import (
    TRANSFORMER,
    Json,
    Place,
    Sizes,
    overrides,
)
from benchmarking.torch_models import Plain, replaced, train_plain

from nmt.build.parts import assemble
from nmt.config.composition import compose
from nmt.data.batch import make_batch
from nmt.data.pairs import EncodedPairs, Ragged
from nmt.model import Source

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


def test_the_transformer_of_torch_is_the_same_model() -> None:
    """The features of our layers with the weights of torch's, padding and future hidden in both."""
    sizes = Sizes(11, 8, 8, 8, 8, 8, layers=2)
    config = compose("train", overrides(TRANSFORMER, sizes, 4, 80))
    ours, theirs = (assemble(config, 11, 11, True).eval() for _ in range(2))
    theirs = replaced(theirs, sizes, 0.1).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.2)
    assert sum(own.numel() for own in ours.parameters()) == sum(own.numel() for own in theirs.parameters())
    own, other = ours.state_dict(), theirs.state_dict()
    for name in own:
        own[name] = other[name] if name in other else _of_torch(other, name)
    ours.load_state_dict(own)
    batch = make_batch([[4, 5, 6], [7]], [[7, 8], [9, 10, 4, 5]])
    inputs = (Source.of(batch), batch.target_in)
    features, expected = (made(*inputs).features[batch.target_mask] for made in (ours, theirs))
    torch.testing.assert_close(features, expected, atol=1e-5, rtol=1e-5)
    dropouts = [layer.p for layer in theirs.modules() if isinstance(layer, torch.nn.Dropout)]
    assert dropouts.count(0.0) == 5  # of the inner layers and before the softmax
    assert {layer.dropout for layer in theirs.modules() if isinstance(layer, torch.nn.MultiheadAttention)} == {0.0}


def _of_torch(other: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """A parameter of our layers among torch's."""
    side, *rest = name.split(".")
    if rest[0] == "norm":
        return other[f"{side}.stack.norm.{rest[1]}"]
    _, layer, part, *inner = rest
    stack = f"{side}.stack.layers.{layer}"
    norms = {"around_self": "norm1", "around_attention": "norm2"}
    norms["around_feed_forward"] = "norm2" if side == "encoder" else "norm3"
    if part in norms:
        return other[f"{stack}.{norms[part]}.{inner[-1]}"]
    if part == "feed_forward":
        return other[f"{stack}.linear{1 if inner[0] == 'inner' else 2}.{inner[1]}"]
    attention = f"{stack}.{'self_attn' if part == 'self_attention' else 'multihead_attn'}"
    if inner[0] == "out":
        return other[f"{attention}.out_proj.{inner[1]}"]
    return other[f"{attention}.in_proj_{inner[1]}"].chunk(3)[("query", "key", "value").index(inner[0])]
