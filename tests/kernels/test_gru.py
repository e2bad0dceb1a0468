"""The fast GRU layers against torch's own."""

import contextlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.kernels import plain
from nmt.kernels.gru import fast_layers, plain_layers
from nmt.kernels.lstm import masked_lstm_layers
from nmt.model import Encoded
from nmt.model.recurrent.recurrent_encoder import RecurrentEncoder


def layers(size: int, count: int, directions: int, dtype: torch.dtype = torch.float64) -> nn.GRU:
    torch.manual_seed(size)
    return nn.GRU(3, size, count, batch_first=True, bidirectional=directions == 2, dtype=dtype)


def torchs_own(rnn: nn.GRU, inputs: Tensor, first: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, last = rnn(packed, first)
    return pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])[0], last


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    extra=st.integers(0, 2),
    size=st.integers(1, 4),
    count=st.integers(1, 3),
    directions=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_states_and_gradients_are_those_of_torch(
    lengths: list[int], extra: int, size: int, count: int, directions: int, seed: int
) -> None:
    rnn = layers(size, count, directions)
    torch.manual_seed(seed)
    ends = torch.tensor(lengths)
    inputs = torch.randn(len(lengths), int(ends.max()) + extra, 3, dtype=torch.float64, requires_grad=True)
    first = torch.randn(count * directions, len(lengths), size, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(inputs.shape[1]) < ends.unsqueeze(1)
    theirs, ours = torchs_own(rnn, inputs, first, ends), fast_layers(rnn, inputs, first, mask)
    weights = [torch.randn_like(part) for part in theirs]
    wanted = (inputs, first, *rnn.parameters())
    gradients = [
        torch.autograd.grad([(part * weight).sum() for part, weight in zip(parts, weights, strict=True)], wanted)
        for parts in (theirs, ours)
    ]
    for their, our in zip((*theirs, *gradients[0]), (*ours, *gradients[1]), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-10, atol=1e-12)


def test_gradients_agree_with_finite_differences() -> None:
    rnn = layers(2, 1, 2)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    inputs = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    first = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda inputs, first: fast_layers(rnn, inputs, first, mask), (inputs, first))


def test_without_a_mask_or_a_first_state_all_is_real_and_the_start_is_zero() -> None:
    rnn = layers(4, 2, 1)
    inputs = torch.randn(2, 5, 3, dtype=torch.float64)
    outputs, last = fast_layers(rnn, inputs)
    wanted, wanted_last = rnn(inputs)
    torch.testing.assert_close(outputs, wanted)
    torch.testing.assert_close(last, wanted_last)


def test_dropout_acts_between_layers_and_in_training_only() -> None:
    rnn = layers(4, 2, 2)
    inputs = torch.randn(2, 5, 3, dtype=torch.float64)
    plain, _ = fast_layers(rnn, inputs)
    rnn.dropout = 0.5
    assert not torch.equal(fast_layers(rnn, inputs)[0], plain)
    assert torch.equal(fast_layers(rnn.eval(), inputs)[0], plain)


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bf16"])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_the_fast_encoder_is_the_reference(count: int, bidirectional: bool, autocast: bool) -> None:
    encoded: list[Encoded] = []
    mask = torch.arange(7) < torch.tensor([[7], [3], [1]])
    inputs = torch.randn(3, 7, 6)
    for kernels in (contextlib.nullcontext, plain):
        torch.manual_seed(3)
        encoder = RecurrentEncoder(6, 8, count, bidirectional=bidirectional)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast), kernels():
            encoded.append(encoder(inputs, mask, mask.sum(1)))
    bound = 0.02 if autocast else 1e-6
    for name in ("values", "mask", "last"):
        ours, theirs = (getattr(result, name) for result in encoded)
        torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound, check_dtype=False)
    assert not encoded[0].values[~mask].any()


@pytest.mark.parametrize("directions", [1, 2])
def test_lstm_layers_by_the_mask_are_those_of_torch(directions: int) -> None:
    """States, last states and gradients, whatever the padding holds."""
    torch.manual_seed(3)
    rnn = nn.LSTM(3, 4, 2, batch_first=True, bidirectional=directions == 2, dtype=torch.float64)
    ends = torch.tensor([2, 5, 1])
    inputs = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    theirs = plain_layers(rnn, inputs, ends)
    ours = masked_lstm_layers(rnn, inputs, torch.arange(6) < ends.unsqueeze(1))
    weights = [torch.randn_like(part) for part in theirs]
    gradients = [
        torch.autograd.grad(
            [(part * weight).sum() for part, weight in zip(parts, weights, strict=True)], (inputs, *rnn.parameters())
        )
        for parts in (theirs, ours)
    ]
    for their, our in zip((*theirs, *gradients[0]), (*ours, *gradients[1]), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-10, atol=1e-12)
