"""The Triton kernels against their references: on a GPU, or on the CPU by Triton's interpreter (`make test-triton`)."""

import os
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from nmt.data.batch import make_batch
from nmt.kernels import gpu
from nmt.kernels.attentive_gru import Parameters, fast_attentive_gru, plain_attentive_gru
from nmt.kernels.cross_entropy import fast_cross_entropy, plain_cross_entropy
from nmt.kernels.energies import ProjectedMemory, Query
from nmt.training.loss import batch_loss
from tests.catalogue import model

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
pytestmark = [
    pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton: make test-triton"),
    pytest.mark.skipif(not INTERPRETED and not torch.cuda.is_available(), reason="needs a GPU or TRITON_INTERPRET=1"),
]


@pytest.fixture(autouse=True)
def _on_this_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter computes on the CPU, where nothing else would choose these kernels."""
    if INTERPRETED:
        monkeypatch.setattr(gpu, "usable", lambda numbers: True)


def drawn(*shapes: tuple[int, ...], seed: int = 3) -> list[Tensor]:
    """Random tensors with gradients."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.randn(shape, generator=generator) * 0.5).to(DEVICE).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(
    "sizes", [(5, 3, 7, 11, 13), (1, 1, 1, 1, 1), (2, 2, 17, 70, 33), (2, 1, 300, 5, 20)], ids=lambda own: str(own)
)
def test_states_weights_and_gradients_are_those_of_the_plain_recurrence(
    sizes: tuple[int, int, int, int, int], low: bool
) -> None:
    steps, batch, slots, size, space = sizes
    inputs, first, shares, keys, weight, v, *rest = values = drawn(
        *((batch, steps, 3 * size), (batch, size), (batch, slots, 3 * size), (batch, slots, space)),
        *((space, size), (space,), (3 * size, size), (3 * size,)),
    )
    lengths = torch.linspace(slots, 0, batch, device=DEVICE).round()[:, None]  # the last of several sees nothing
    mask = torch.arange(slots, device=DEVICE) < lengths
    results = []
    for compute, products in ((plain_attentive_gru, False), (fast_attentive_gru, low)):
        with torch.autocast(DEVICE.type, torch.bfloat16, enabled=products):
            states, weights = compute(
                inputs,
                first,
                ProjectedMemory(shares, keys, mask),
                Parameters(Query(weight, v), rest[0], rest[1]),
            )
        loss = (states**3).sum() + (weights**2).sum()
        results.append((states, weights, *torch.autograd.grad(loss, values)))
    for plain, fast in zip(*results, strict=True):
        if low:
            assert (fast - plain).norm() <= 0.03 * plain.norm() + 1e-3
        else:
            torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


def test_a_backward_step_writes_to_nothing_that_several_of_its_threads_read() -> None:
    """`direct` is read by all warps, without a barrier before the first one writes what the next step reads."""
    from nmt.kernels.gpu.triton_attentive_gru import _backward_step, blocks

    slots, space, size = 3, 5, 4
    sizes = [(size,)] * 5 + [(3 * size,), (3 * size + space,), (slots, 3 * size), (slots,), (slots,), (slots, space)]
    read = [each.detach() for each in drawn(*((1, *shape) for shape in sizes), (space,))]
    before, onward = [each.clone() for each in read], read.pop(1)
    written = [torch.zeros_like(each) for each in (read[4], read[5], read[9])] + [read[0].new_zeros(1, space)]
    _backward_step[(1,)](read[0], onward, *read[1:], *written, slots, space, size, **blocks(slots, space, size))
    assert all(map(torch.equal, read, before[:1] + before[2:]))
    update = read[4][0, size : 2 * size]
    torch.testing.assert_close(onward[0], (read[0] + read[1] + read[2])[0] * update)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("words", [1, 16, 37, 5000])
@pytest.mark.parametrize("padded", [False, True])
def test_losses_and_gradients_are_those_of_torch(kind: torch.dtype, words: int, padded: bool) -> None:
    (logits,) = drawn((6, words))
    logits = (8 * logits.detach()).to(kind).requires_grad_()
    targets = torch.arange(6, device=DEVICE) * 7 % words
    real = torch.arange(6, device=DEVICE) % 3 > 0 if padded else None
    results = []
    for compute in (plain_cross_entropy, fast_cross_entropy):
        loss, plain = compute(logits, targets, 0.1, real)
        results.append((loss, plain, *torch.autograd.grad(3 * loss, logits)))
    for reference, fast in zip(*results, strict=True):
        tolerance = 1e-4 if kind == torch.float32 else 2e-2
        torch.testing.assert_close(fast, reference, rtol=tolerance, atol=tolerance / 10)
    assert results[1][0].dtype == torch.float32


def test_a_model_learns_the_same_from_a_batch() -> None:
    """Loss and gradients of a whole model, with these kernels and without any fast one."""
    batch = make_batch([[5, 6, 7], [8], [9, 4]], [[9, 4], [5, 6, 7, 8, 9], [4]]).to(DEVICE)
    found: list[list[Tensor]] = []
    for fast in ("true", "false"):
        made = model("decoder=bahdanau", f"model.fast={fast}", pieces=(23, 300), train=True).to(DEVICE, torch.float32)
        loss = batch_loss(made, batch, 0.1)
        found.append([loss.total, *torch.autograd.grad(loss.total, list(made.parameters()))])
    for result, reference in zip(*found, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-5)
