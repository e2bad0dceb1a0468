"""The attentive recurrence on a GPU: one product and one kernel per step, forward and backward.

Each program of the kernel computes one sentence: energies, weights, the weighted sum of the memory's shares, gates and
state. The backward kernel recomputes the terms sigmoid(W s + k), so that the T x B x S x A numbers which
`nmt.kernels.attentive_gru` stores are never in memory. Programs write to separate memory, so results are
deterministic. Nothing waits for the host, so the kernels can be part of a CUDA graph.

Products run in the type of `shares`; energies, gates, states and sums are computed in float32.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Numbers of a block of keys or shares: 32 for each of 128 threads.
_BLOCK = 4096


@triton.jit
def _read(pointers, inside):
    """Load numbers as float32; zero where `inside` is false."""
    return tl.load(pointers, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _tanh(x):
    """The hyperbolic tangent of each number."""
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def _terms(keys, query, slots, units, inside, A: tl.constexpr):
    """The terms sigmoid(W s + k) [slots, units] of the given slots and units of the attention."""
    key = _read(keys + slots[:, None] * A + units[None, :], inside)
    return tl.sigmoid(key + _read(query + units, units < A)[None, :])


@triton.jit
def _forward_step(
    keys, v, mask, shares, inputs, projected, before, weights, gates, after, rounded,
    S, A: tl.constexpr, D: tl.constexpr, SLOTS: tl.constexpr, UNITS: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    """Compute a sentence's weights [S], gates [3D] and new state [D], which is also stored in the products' type."""
    sentence = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, SLOTS)
    inside, slots = index < S, sentence * S + index
    projected += sentence * (3 * D + A)
    energies = tl.zeros([SLOTS], tl.float32)
    for start in range(0, A, UNITS):
        units = start + tl.arange(0, UNITS)
        both = inside[:, None] & (units < A)[None, :]
        energies += tl.sum(_terms(keys, projected + 3 * D, slots, units, both, A) * _read(v + units, units < A), 1)
    visible = tl.load(mask + slots, mask=inside, other=0) != 0
    energies = tl.where(visible, energies, -1.0e30)
    shifted = tl.where(visible, tl.exp(energies - tl.max(energies, 0)), 0.0)
    weight = shifted / tl.maximum(tl.sum(shifted, 0), 1.0e-30)  # zeros without a visible slot
    tl.store(weights + slots, weight, mask=inside)
    for start in range(0, D, STATES):
        units = start + tl.arange(0, STATES)
        real = units < D
        both, share = inside[:, None] & real[None, :], shares + slots[:, None] * (3 * D) + units[None, :]
        entry, gate, place = inputs + sentence * 3 * D + units, gates + sentence * 3 * D + units, sentence * D + units
        mixed = tl.sum(_read(share, both) * weight[:, None], 0)
        reset = tl.sigmoid(_read(entry, real) + mixed + _read(projected + units, real))
        mixed = tl.sum(_read(share + D, both) * weight[:, None], 0)
        update = tl.sigmoid(_read(entry + D, real) + mixed + _read(projected + D + units, real))
        mixed = tl.sum(_read(share + 2 * D, both) * weight[:, None], 0)
        new = _tanh(_read(entry + 2 * D, real) + mixed + reset * _read(projected + 2 * D + units, real))
        state = new + update * (_read(before + place, real) - new)
        tl.store(gate, reset, mask=real)
        tl.store(gate + D, update, mask=real)
        tl.store(gate + 2 * D, new, mask=real)
        tl.store(after + place, state, mask=real)
        tl.store(rounded + place, state.to(rounded.dtype.element_ty), mask=real)


@triton.jit
def _backward_step(
    direct, onward, through_product, states_grad, before, gates, projected, shares, weights, weights_grad, keys, v,
    inputs_grad, projected_grad, keys_grad, v_grad,
    S, A: tl.constexpr, D: tl.constexpr, SLOTS: tl.constexpr, UNITS: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    """Compute a sentence's gradients at a step.

    The gradient of the state is direct + through_product + states_grad. `onward` receives the gradient that reaches the
    previous state through the update gate alone. It is not written to `direct`: in a block with fewer numbers than
    threads, several threads read the same number and one writes, so a late thread could read the new number. In
    keys_grad and v_grad [B, A], each number is updated by the thread that has read it.
    """
    sentence = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, SLOTS)
    inside, slots = index < S, sentence * S + index
    projected += sentence * (3 * D + A)
    projected_grad += sentence * (3 * D + A)
    kind = projected_grad.dtype.element_ty
    weight_grad = _read(weights_grad + slots, inside)
    for start in range(0, D, STATES):
        units = start + tl.arange(0, STATES)
        real, place = units < D, sentence * D + units
        both, share = inside[:, None] & real[None, :], shares + slots[:, None] * (3 * D) + units[None, :]
        gate, input_grad = gates + sentence * 3 * D + units, inputs_grad + sentence * 3 * D + units
        total = _read(direct + place, real) + _read(through_product + place, real) + _read(states_grad + place, real)
        reset, update, new = _read(gate, real), _read(gate + D, real), _read(gate + 2 * D, real)
        carried = _read(projected + 2 * D + units, real)
        new_grad = total * (1.0 - update) * (1.0 - new * new)
        update_grad = total * (_read(before + place, real) - new) * update * (1.0 - update)
        reset_grad = new_grad * carried * reset * (1.0 - reset)
        tl.store(input_grad, reset_grad, mask=real)
        tl.store(input_grad + D, update_grad, mask=real)
        tl.store(input_grad + 2 * D, new_grad, mask=real)
        tl.store(projected_grad + units, reset_grad.to(kind), mask=real)
        tl.store(projected_grad + D + units, update_grad.to(kind), mask=real)
        tl.store(projected_grad + 2 * D + units, (new_grad * reset).to(kind), mask=real)
        tl.store(onward + place, total * update, mask=real)
        weight_grad += tl.sum(_read(share, both) * reset_grad[None, :], 1)
        weight_grad += tl.sum(_read(share + D, both) * update_grad[None, :], 1)
        weight_grad += tl.sum(_read(share + 2 * D, both) * new_grad[None, :], 1)
    weight = _read(weights + slots, inside)
    energy_grad = weight * (weight_grad - tl.sum(weight * weight_grad, 0))
    for start in range(0, A, UNITS):
        units = start + tl.arange(0, UNITS)
        real = units < A
        both, place = inside[:, None] & real[None, :], keys_grad + slots[:, None] * A + units[None, :]
        term = _terms(keys, projected + 3 * D, slots, units, both, A)
        slot_grad = energy_grad[:, None] * _read(v + units, real)[None, :] * term * (1.0 - term)
        tl.store(place, _read(place, both) + slot_grad, mask=both)
        tl.store(projected_grad + 3 * D + units, tl.sum(slot_grad, 0).to(kind), mask=real)
        v_place = v_grad + sentence * A + units
        tl.store(v_place, _read(v_place, real) + tl.sum(energy_grad[:, None] * term, 0), mask=real)


def blocks(slots: int, space: int, size: int) -> dict[str, int]:
    """The block sizes of a program, powers of two: at most `_BLOCK` numbers, but at least 16 columns."""
    rows = 1 << (slots - 1).bit_length()
    columns = max(16, _BLOCK // rows)
    return {
        "SLOTS": rows,
        "UNITS": min(columns, 128, 1 << (space - 1).bit_length()),
        "STATES": min(columns, 64, 1 << (size - 1).bit_length()),
        "num_warps": 4 if rows <= 256 else 8,
    }


class TritonAttentiveGRU(torch.autograd.Function):
    """Arguments, results and gradients as in `_AttentiveGRU` of `nmt.kernels.attentive_gru`, without GRU_1."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        shares: Tensor,
        keys: Tensor,
        first: Tensor,
        recurrent: Tensor,
        bias: Tensor,
        v: Tensor,
        mask: Tensor,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, _ = inputs.shape
        size, slots, space, product = first.shape[1], mask.shape[1], v.shape[0], shares.dtype
        states = inputs.new_empty(steps + 1, batch, size)
        states[0] = first
        rounded = states if product == states.dtype else states.to(product)
        projected = shares.new_empty(steps, batch, 3 * size + space)
        gates, weights = inputs.new_empty(steps, batch, 3 * size), inputs.new_empty(steps, batch, slots)
        recurrent_t, product_bias = recurrent.to(product).t(), bias.to(product)
        shares, keys, visible = shares.contiguous(), keys.contiguous(), mask.to(torch.int8).contiguous()
        inputs, v, block_sizes = inputs.contiguous(), v.contiguous(), blocks(slots, space, size)
        for t in range(steps):
            torch.addmm(product_bias, rounded[t], recurrent_t, out=projected[t])
            _forward_step[(batch,)](
                *(keys, v, visible, shares, inputs[t], projected[t], states[t]),
                *(weights[t], gates[t], states[t + 1], rounded[t + 1], slots, space, size),
                **block_sizes,
            )
        ctx.save_for_backward(shares, keys, recurrent, v, states, rounded, weights, gates, projected)
        return states[1:], weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states_grad, weights_grad = (gradient.contiguous() for gradient in gradients)
        shares, keys, recurrent, v, states, rounded, weights, gates, projected = ctx.saved_tensors
        steps, batch, slots = weights.shape
        size, space, product = states.shape[2], v.shape[0], rounded.dtype
        product_recurrent, block_sizes = recurrent.to(product), blocks(slots, space, size)
        inputs_grad, projected_grad = torch.empty_like(gates), torch.empty_like(projected)
        keys_grad, v_grad = torch.zeros_like(keys, dtype=torch.float32), v.new_zeros(batch, space)
        direct, onward = states.new_zeros(2, batch, size)
        through_product = rounded.new_zeros(batch, size)
        for t in range(steps - 1, -1, -1):
            _backward_step[(batch,)](
                *(direct, onward, through_product, states_grad[t], states[t], gates[t], projected[t], shares),
                *(weights[t], weights_grad[t], keys, v, inputs_grad[t], projected_grad[t], keys_grad, v_grad),
                *(slots, space, size),
                **block_sizes,
            )
            torch.mm(projected_grad[t], product_recurrent, out=through_product)
            direct, onward = onward, direct
        flat = projected_grad.flatten(0, 1)
        shares_grad = torch.bmm(weights.permute(1, 2, 0).to(product), inputs_grad.transpose(0, 1).to(product))
        recurrent_grad = (flat.t() @ rounded[:-1].flatten(0, 1)).to(recurrent.dtype)
        return (
            *(inputs_grad, shares_grad, keys_grad.to(keys.dtype), direct + through_product, recurrent_grad),
            *(flat.sum(0, dtype=recurrent.dtype), v_grad.sum(0), None),
        )
