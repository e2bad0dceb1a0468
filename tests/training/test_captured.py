"""Updates of fixed shapes equal ordinary ones. As CUDA graphs, `tests/cuda/` plays them."""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from nmt.data.batch import Batch, make_batch
from nmt.model import Seq2Seq
from nmt.system.compute import CPU
from nmt.training.captured import reason_against
from nmt.training.learner import Learner, Update
from nmt.training.schedules import Constant, CosineDecay
from tests.catalogue import model
from tests.training.test_trainer import trainer


def batches() -> list[Batch]:
    """Batches of three shapes, in which no length is a multiple of four by design."""
    generator = np.random.default_rng(7)

    def pieces(count: int, most: int, limit: int) -> list[list[int]]:
        return [generator.integers(4, limit, generator.integers(1, most)).tolist() for _ in range(count)]

    return [
        make_batch(pieces(rows, most, 23), pieces(rows, most, 29)) for rows, most in ((3, 9), (9, 4), (5, 7), (3, 9))
    ]


def updates(made: Seq2Seq, graphs: str, given: Sequence[Batch]) -> list[Update]:
    """Results of updates, which change the model."""
    settings = trainer(steps=9, average="none", clip_norm=1.0, graphs=graphs)
    learner = Learner(made.train(), torch.optim.SGD(made.parameters(), lr=0.1), Constant(0), settings, CPU)
    assert (learner.fixed is not None) == (graphs == "always")
    found = [learner.update([batch], step, 0.0) for step, batch in enumerate(given)]
    return [update for update in found if update is not None]


@pytest.mark.parametrize(
    "overrides",
    [
        ["decoder=bahdanau"],
        ["decoder=conditional", "attention.heads=2", "attention.coverage=true"],
        ["decoder=luong", "attention/window=local_p"],
        ["decoder=none", "encoder.layers=2"],
        ["encoder=transformer", "decoder=transformer"],
        ["encoder=conv", "decoder=conv"],
        ["encoder=lstm", "decoder=luong"],
        ["attention/read=hard", "attention.read.objective=enumerate"],
    ],
    ids=" ".join,
)
def test_a_fixed_shape_changes_no_update(overrides: list[str]) -> None:
    """Losses, norms and weights after four updates. Logits are in float32, the rest is in double precision."""
    ordinary = model(*overrides)
    fixed = copy.deepcopy(ordinary)
    before = copy.deepcopy(ordinary.state_dict())
    for one, other in zip(updates(ordinary, "never", batches()), updates(fixed, "always", batches()), strict=True):
        assert one.tokens == other.tokens
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert other.negative_log_likelihood == pytest.approx(one.negative_log_likelihood, rel=1e-5)
        assert other.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-4)
    torch.testing.assert_close(dict(fixed.state_dict()), dict(ordinary.state_dict()), rtol=1e-4, atol=1e-5)
    assert any((weight - before[name]).abs().max() > 1e-3 for name, weight in ordinary.state_dict().items())


def kept(learner: Learner) -> dict[str, object]:
    """Weights, averages and the optimizer's state."""
    state = learner.state()
    return {"averages": state["averaging"]["averaged"], **{part: state[part] for part in ("model", "optimizer")}}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_fixed_update_that_the_device_finishes_is_the_ordinary_one(accumulate: int) -> None:
    """As on a GPU, without graphs: clipping, a falling rate, the optimizer and the average; one update is skipped.

    The last one, which follows, has a single batch.
    """
    made = model()
    infinite = made.output.bias.new_zeros(())
    made.output.register_forward_hook(lambda _, __, output: output + infinite)
    results, states = [], []
    for graphs in ("never", "always"):
        infinite.zero_()
        learned = copy.deepcopy(made)
        settings = trainer(steps=9, average="ema", clip_norm=1.0, graphs=graphs, accumulate=accumulate)
        optimizer = torch.optim.AdamW(learned.parameters(), lr=0.0625, eps=1e-3, fused=True)
        learner = Learner(learned.train(), optimizer, CosineDecay(0), settings, CPU)
        learner.defers = graphs == "always"
        found = []
        for step, start in enumerate([0, 2, 1, 0, 3]):
            infinite.fill_(torch.inf if step == 3 else 0)
            update = learner.update(batches()[start : start + accumulate], step, step / 9)
            found += learner.read() if update is None else [update]
        results.append(found)
        states.append(kept(learner))
    for one, other in zip(*results, strict=True):
        assert other.skipped == one.skipped
        assert other.rows == one.rows
        assert other[:5] == pytest.approx(one[:5], rel=1e-4, nan_ok=True)
    assert [update.skipped for update in results[1]] == [False, False, False, True, False]
    torch.testing.assert_close(*states, rtol=1e-3, atol=1e-4)


def test_an_update_that_is_no_number_is_skipped() -> None:
    """The next one does not see its gradients."""
    made = model()
    with torch.no_grad():
        made.source_embedding.weight[22] = torch.inf
    good, bad = make_batch([[5, 6]], [[7, 8]]), make_batch([[5, 22]], [[7, 8]])
    skipping = copy.deepcopy(made)
    (expected,) = updates(made, "never", [good])
    first, second = updates(skipping, "always", [bad, good])
    assert first.skipped
    assert not second.skipped
    assert second.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-5)


@pytest.mark.parametrize(
    ("overrides", "settings", "reason"),
    [
        (["context=concat", "context.sentences=1"], {}, "the model sees previous sentences"),
        (["model.fast=false"], {}, "model.fast=false needs packed sequences"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_fixed_shape_is_named_and_trains(
    overrides: list[str], settings: dict[str, object], reason: str
) -> None:
    made = model(*overrides)
    chosen = trainer(steps=9, graphs="always", **settings)
    assert reason_against(made, chosen) == reason
    learner = Learner(made.train(), torch.optim.SGD(made.parameters(), lr=0.1), Constant(0), chosen, CPU)
    assert learner.take_notes() == [f"Updates run without CUDA graphs: {reason}."]
    assert learner.take_notes() == []
    update = learner.update([batches()[0]], 0, 0.0)
    assert update is not None
    assert not update.skipped


def test_auto_changes_nothing_on_a_cpu() -> None:
    """Neither do the settings of runs that are older than the key."""
    for graphs in ({"graphs": "auto"}, {}):
        learner = Learner(
            *(made := model(), torch.optim.SGD(made.parameters())), Constant(0), trainer(steps=1, **graphs), CPU
        )
        assert learner.fixed is None
        assert learner.take_notes() == []
