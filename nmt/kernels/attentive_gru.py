"""A GRU that attends with its previous state: c_t = attend(s_{t-1}), s_t = GRU(s_{t-1}, [y_t; c_t]) for all t.

Weight gradients of all steps are one product after the loop; autograd would compute them step by step. The memory's
share of the gates is projected before the loop. So a step sums [S, 3D] rows with its weights instead of multiplying its
context by a matrix. Measured: docs/benchmarks.md, "Training the matched model".

Shapes: inputs [B, T, 3D] (the gates' products with the words, biases added), first [B, D], shares [B, S, 3D] (the
gates' products with the memory's values), keys [B, S, A], mask [B, S], query_weight [A, D], v [A], weight [3D, D] and
bias [3D] of the state's product. Results: states [B, T, D] and weights [B, T, S].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.kernels import gpu
from nmt.kernels.gru import advance, retreat

#: Energies [B, S] and mask [B, S] -> weights [B, S].
Softmax = Callable[[Tensor, Tensor], Tensor]


class ProjectedMemory(NamedTuple):
    """The memory as this recurrence needs it: shares, keys and mask."""

    shares: Tensor
    keys: Tensor
    mask: Tensor


class Parameters(NamedTuple):
    """Parameters of the attention (query_weight, v) and of the GRU (weight, bias)."""

    query_weight: Tensor
    v: Tensor
    weight: Tensor
    bias: Tensor


def plain_attentive_gru(
    inputs: Tensor, first: Tensor, memory: ProjectedMemory, parameters: Parameters, softmax: Softmax
) -> tuple[Tensor, Tensor]:
    """e_tj = v^T tanh(W s_{t-1} + k_j), and a step of the GRU, one after the other."""
    query_weight, v, weight, bias = parameters
    size = first.shape[1]
    hidden, states, weights = first, [], []
    for step in inputs.unbind(1):
        energies = torch.tanh(nn.functional.linear(hidden, query_weight).unsqueeze(1) + memory.keys) @ v
        weights.append(softmax(energies, memory.mask))
        gates = step + (weights[-1].unsqueeze(1) @ memory.shares).squeeze(1)
        projected = nn.functional.linear(hidden, weight, bias)
        reset, update = torch.sigmoid(gates[:, : 2 * size] + projected[:, : 2 * size]).split(size, 1)
        candidate = torch.tanh(gates[:, 2 * size :] + reset * projected[:, 2 * size :])
        hidden = (1 - update) * candidate + update * hidden
        states.append(hidden)
    return torch.stack(states, 1), torch.stack(weights, 1)


def fast_attentive_gru(
    inputs: Tensor, first: Tensor, memory: ProjectedMemory, parameters: Parameters, softmax: Softmax
) -> tuple[Tensor, Tensor]:
    """The same as one autograd function, with energies from sigmoids.

    tanh x = 2 sigmoid(2 x) - 1, and torch's sigmoid is several times as fast on a CPU. The 2 is multiplied into the
    weights. All energies then lack the sum of v, which the softmax ignores. Under autocast the products
    run in bfloat16; states, energies and sums over steps stay in float32. Where Triton can run, a step is one product
    and one kernel (`nmt.kernels.gpu`).
    """
    query_weight, v, weight, bias = parameters
    recurrent = torch.cat([weight, 2 * query_weight], 0)
    device, dtype = inputs.device.type, recurrent.dtype
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else dtype
    rows, shares = inputs.transpose(0, 1).to(dtype).contiguous(), memory.shares.to(product)
    rest = (first.to(dtype), recurrent, torch.cat([bias, bias.new_zeros(len(v))]), 2 * v, memory.mask)
    with torch.autocast(device, enabled=False):
        if gpu.usable(rows) and memory.mask.shape[1] <= gpu.MOST_SLOTS:
            from nmt.kernels.gpu.attentive_gru import TritonAttentiveGRU

            states, weights = TritonAttentiveGRU.apply(rows, shares, 2 * memory.keys, *rest)  # type: ignore[no-untyped-call]
        else:
            states, weights = _AttentiveGRU.apply(  # type: ignore[no-untyped-call]
                rows, shares, 2 * memory.keys.to(dtype), *rest, product, softmax
            )
    return states.transpose(0, 1), weights.transpose(0, 1)


class _AttentiveGRU(torch.autograd.Function):
    """inputs [T, B, 3D], shares [B, S, 3D], keys [B, S, A], first [B, D], recurrent [3D + A, D], bias, v [A].

    The energies are v^T sigmoid(W s + k).
    """

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
        product: torch.dtype,
        softmax: Softmax,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, _ = inputs.shape
        size = first.shape[1]
        slots = mask.shape[1]
        states = inputs.new_empty(steps, batch, size)
        weights = inputs.new_empty(steps, batch, slots)
        # The largest tensor, T x B x S x A: only a backward pass needs it for more than one step.
        stored_steps = steps if any(ctx.needs_input_grad) else 1
        terms = inputs.new_empty(stored_steps, batch, slots, v.shape[0])
        gates = inputs.new_empty(steps, batch, 3 * size)  # r, z, n after their nonlinearities
        carried = inputs.new_empty(steps, batch, size)  # the candidate's recurrent part before r multiplies it
        recurrent_t, product_bias = recurrent.to(product).t().contiguous(), bias.to(product)
        hidden = first
        for t in range(steps):
            projected = torch.addmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
            query = projected[:, 3 * size :]
            term = torch.add(keys, query.unsqueeze(1), out=terms[t % stored_steps]).sigmoid_()
            energies = (term.view(-1, v.shape[0]) @ v).view(batch, slots)
            weight = softmax(energies, mask)
            weights[t] = weight
            gate = torch.bmm(weight.to(product).unsqueeze(1), shares).squeeze(1).add(inputs[t])
            hidden = advance(gate, projected[:, : 3 * size], hidden, gates[t], carried[t])
            states[t] = hidden
        ctx.save_for_backward(shares, keys, first, recurrent, v, states, weights, terms, gates, carried)
        return states, weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states_grad, weights_grad = gradients
        shares, keys, first, recurrent, v, states, weights, terms, gates, carried = ctx.saved_tensors
        steps, batch, size = states.shape
        product = shares.dtype
        product_recurrent = recurrent.to(product)
        inputs_grad = torch.empty_like(gates)
        projected_grad = states.new_empty(steps, batch, recurrent.shape[0])
        energies_grad = torch.empty_like(weights)
        keys_grad = torch.zeros_like(keys)
        hidden_grad = torch.zeros_like(first)
        for t in range(steps - 1, -1, -1):
            before = states[t - 1] if t else first
            gate_grad, projected = inputs_grad[t], projected_grad[t]
            through_update_gate = retreat(
                hidden_grad + states_grad[t], before, gates[t], carried[t], gate_grad, projected[:, : 3 * size]
            )
            # A row times a transposed matrix: the transposed product takes ten times as long.
            weight_grad = torch.bmm(gate_grad.to(product).unsqueeze(1), shares.transpose(1, 2)).squeeze(1)
            weight_grad = weight_grad + weights_grad[t]
            energy_grad = torch.ops.aten._softmax_backward_data(weight_grad, weights[t], 1, states.dtype)
            energies_grad[t] = energy_grad
            slots_grad = torch.ops.aten.sigmoid_backward(energy_grad.unsqueeze(2) * v, terms[t])
            keys_grad += slots_grad
            torch.sum(slots_grad, 1, out=projected[:, 3 * size :])
            hidden_grad = through_update_gate + projected.to(product) @ product_recurrent
        befores = torch.cat([first.unsqueeze(0), states[:-1]])
        flat = projected_grad.flatten(0, 1)
        shares_grad = torch.bmm(weights.permute(1, 2, 0).to(product), inputs_grad.transpose(0, 1).to(product))
        recurrent_grad = (flat.to(product).t() @ befores.flatten(0, 1).to(product)).to(flat.dtype)
        v_grad = energies_grad.flatten() @ terms.flatten(0, 2)
        return (
            inputs_grad,
            shares_grad,
            keys_grad,
            hidden_grad,
            recurrent_grad,
            flat.sum(0),
            v_grad,
            None,
            None,
            None,
        )
