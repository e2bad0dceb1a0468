"""A GRU that attends with its previous state: c_t = attend(s_{t-1}), s_t = GRU(s_{t-1}, [y_t; c_t]) for all t.

Or with a first transition that reads the word: s'_t = GRU_1(s_{t-1}, y_t), c_t = attend(s'_t), s_t = GRU(s'_t, c_t).

One product after the loop computes the weight gradients of all steps; autograd would compute them step by step. The
memory's values are multiplied by the gates' matrix before the loop. A step then sums the resulting rows [S, 3D] with
its weights instead of multiplying its context. Measured: docs/benchmarks.md, "Training the matched model".

Shapes: inputs [B, T, 3D] (the words' products for the gates, with biases), first [B, D], shares [B, S, 3D] (the
values' products for the gates), keys [B, S, A] or [B, S, D], mask [B, S], weight [3D, D] and bias [3D] for the
state's product. Results: states [B, T, D] and weights [B, T, S].
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.kernels import gpu
from nmt.kernels.energies import ProjectedMemory, Query, double, energies_of, masked_softmax, plain_energies, terms_of
from nmt.kernels.gru import advance, gru_step, retreat


class Inner(NamedTuple):
    """GRU_1: weight [3D, D] and bias [3D] for the state's product; input_bias [3D] for the inputs of the other GRU."""

    weight: Tensor
    bias: Tensor
    input_bias: Tensor


class Parameters(NamedTuple):
    """Parameters of attention (query; None: dot product), GRU (weight, bias) and GRU_1 (inner; None without GRU_1)."""

    query: Query | None
    weight: Tensor
    bias: Tensor
    inner: Inner | None = None


def plain_attentive_gru(
    inputs: Tensor, first: Tensor, memory: ProjectedMemory, parameters: Parameters
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step: the energies of the state, then a step of the GRU."""
    query, weight, bias, inner = parameters
    hidden, states, weights = first, [], []
    for gates in inputs.unbind(1):
        if inner is not None:
            hidden, gates = gru_step(gates, hidden, inner.weight, inner.bias), inner.input_bias
        weights.append(masked_softmax(plain_energies(hidden, memory.keys, query), memory.mask))
        hidden = gru_step(gates + (weights[-1].unsqueeze(1) @ memory.shares).squeeze(1), hidden, weight, bias)
        states.append(hidden)
    return torch.stack(states, 1), torch.stack(weights, 1)


def fast_attentive_gru(
    inputs: Tensor, first: Tensor, memory: ProjectedMemory, parameters: Parameters
) -> tuple[Tensor, Tensor]:
    """Run the recurrence as one autograd function.

    Under autocast the products run in bfloat16; states, energies and sums over steps stay in float32. If Triton can
    run, a step with an additive score takes one product and one kernel (`nmt.kernels.gpu`).
    """
    query, weight, bias, inner = parameters
    device, dtype = inputs.device.type, weight.dtype
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else dtype
    keys, query_weight, v = double(memory.keys.to(dtype), query)
    recurrent = weight if query_weight is None else torch.cat([weight, query_weight], 0)
    bias = torch.cat([bias, bias.new_zeros(len(recurrent) - len(bias))])
    rows, shares = inputs.transpose(0, 1).to(dtype).contiguous(), memory.shares.to(product)
    rest = (keys, first.to(dtype), recurrent, bias, v, memory.mask)
    with torch.autocast(device, enabled=False):
        if inner is None and v is not None and gpu.usable(rows) and memory.mask.shape[1] <= gpu.MOST_SLOTS:
            from nmt.kernels.gpu.triton_attentive_gru import TritonAttentiveGRU

            states, weights = TritonAttentiveGRU.apply(rows, shares, *rest)  # type: ignore[no-untyped-call]
        else:
            states, weights = _AttentiveGRU.apply(  # type: ignore[no-untyped-call]
                rows, shares, *rest, product, *(inner or (None,) * 3)
            )
    return states.transpose(0, 1), weights.transpose(0, 1)


class _InnerSteps:
    """The steps of GRU_1, forward and backward, with the weight [3D, D] and buffers for gates [T, B, 3D] and states."""

    def __init__(self, weight: Tensor, gates: Tensor, carried: Tensor, states: Tensor) -> None:
        self.weight, self.gates, self.carried, self.states = weight, gates, carried, states
        self.weight_t = weight.t().contiguous()

    @classmethod
    def room(cls, weight: Tensor, inputs: Tensor) -> "_InnerSteps":
        """Allocate the buffers for the steps of inputs [T, B, 3D]."""
        states = inputs.new_empty(*inputs.shape[:2], weight.shape[1])
        return cls(weight, torch.empty_like(inputs), torch.empty_like(states), states)

    def advance(self, t: int, inputs: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Compute s'_t from s_{t-1}."""
        projected = torch.addmm(bias, hidden.to(bias.dtype), self.weight_t).to(hidden.dtype)
        self.states[t] = advance(inputs[t], projected, hidden, self.gates[t], self.carried[t])
        return self.states[t]

    def start_retreat(self) -> None:
        """Allocate the buffers for the gradients."""
        self.inputs_grad, self.projected_grad = (torch.empty_like(self.gates) for _ in range(2))

    def retreat(self, t: int, total: Tensor, before: Tensor) -> Tensor:
        """The gradient of s_{t-1}, from the gradient of s'_t."""
        projected = self.projected_grad[t]
        through_update_gate = retreat(total, before, self.gates[t], self.carried[t], self.inputs_grad[t], projected)
        return through_update_gate + projected.to(self.weight.dtype) @ self.weight


class _AttentiveGRU(torch.autograd.Function):
    """inputs [T, B, 3D], shares [B, S, 3D], keys [B, S, A], first [B, D], recurrent [3D + A, D], bias [3D + A], v [A].

    Without v, A is 0, and keys are [B, S, D]. For the weight [3D, D], bias [3D] and input bias [3D] see `Inner`.
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
        v: Tensor | None,
        mask: Tensor,
        product: torch.dtype,
        inner_weight: Tensor | None,
        inner_bias: Tensor | None,
        input_bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, width = inputs.shape
        states = inputs.new_empty(steps, batch, first.shape[1])
        weights = inputs.new_empty(steps, batch, mask.shape[1])
        terms = terms_of(keys, v, steps if any(ctx.needs_input_grad) else 1)  # only a backward pass needs all steps
        energies = energies_of(keys, v, terms)
        gates = torch.empty_like(inputs)  # r, z, n after their nonlinearities
        carried = torch.empty_like(states)  # the candidate's recurrent part before r multiplies it
        recurrent_t, product_bias = recurrent.to(product).t().contiguous(), bias.to(product)
        inner = None if inner_weight is None else _InnerSteps.room(inner_weight.to(product), inputs)
        inner_bias = None if inner_bias is None else inner_bias.to(product)
        hidden = first
        for t in range(steps):
            if inner is not None and inner_bias is not None:
                hidden = inner.advance(t, inputs, inner_bias, hidden)
            projected = torch.addmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
            weight = masked_softmax(energies(t, hidden, projected[:, width:]), mask)
            weights[t] = weight
            gate = torch.bmm(weight.to(product).unsqueeze(1), shares).squeeze(1)
            gate = gate.add(inputs[t] if input_bias is None else input_bias)
            hidden = advance(gate, projected[:, :width], hidden, gates[t], carried[t])
            states[t] = hidden
        of_inner = (None,) * 4 if inner is None else (inner.weight, inner.gates, inner.carried, inner.states)
        ctx.save_for_backward(shares, keys, first, recurrent, v, states, weights, terms, gates, carried, *of_inner)
        return states, weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states_grad, weights_grad = gradients
        shares, keys, first, recurrent, v, states, weights, terms, gates, carried, *of_inner = ctx.saved_tensors
        steps, batch, width = gates.shape
        product = shares.dtype
        product_recurrent = recurrent.to(product)
        gates_grad, energies_grad = torch.empty_like(gates), torch.empty_like(weights)
        projected_grad = states.new_empty(steps, batch, len(recurrent))
        energies = energies_of(keys, v, terms)
        inner = None if of_inner[0] is None else _InnerSteps(*of_inner)
        befores = torch.cat([first.unsqueeze(0), states[:-1]])
        asking = befores  # the states that attend
        if inner is not None:
            inner.start_retreat()
            asking = inner.states
        hidden_grad = torch.zeros_like(first)
        for t in range(steps - 1, -1, -1):
            gate_grad, projected = gates_grad[t], projected_grad[t]
            total = retreat(
                hidden_grad + states_grad[t], asking[t], gates[t], carried[t], gate_grad, projected[:, :width]
            )
            # Keep the order row times transposed matrix: matrix times column takes ten times as long.
            weight_grad = torch.bmm(gate_grad.to(product).unsqueeze(1), shares.transpose(1, 2)).squeeze(1)
            weight_grad = weight_grad + weights_grad[t]
            energy_grad = torch.ops.aten._softmax_backward_data(weight_grad, weights[t], 1, states.dtype)
            energies_grad[t] = energy_grad
            direct = energies.retreat(t, energy_grad, projected[:, width:])
            total = total if direct is None else total.add_(direct)
            hidden_grad = total + projected.to(product) @ product_recurrent
            if inner is not None:
                hidden_grad = inner.retreat(t, hidden_grad, befores[t])
        shares_grad = torch.bmm(weights.permute(1, 2, 0).to(product), gates_grad.transpose(0, 1).to(product))
        keys_grad, v_grad = energies.gradients(energies_grad, asking)
        of_weights = (weight_grad_of(projected_grad, asking, product), projected_grad.sum((0, 1)))
        rest = (v_grad, None, None)
        if inner is None:
            return gates_grad, shares_grad, keys_grad, hidden_grad, *of_weights, *rest, None, None, None
        of_first = (weight_grad_of(inner.projected_grad, befores, product), inner.projected_grad.sum((0, 1)))
        input_bias_grad = gates_grad.sum((0, 1))
        return inner.inputs_grad, shares_grad, keys_grad, hidden_grad, *of_weights, *rest, *of_first, input_bias_grad


def weight_grad_of(outputs_grad: Tensor, inputs: Tensor, product: torch.dtype) -> Tensor:
    """The gradient [O, I] of a matrix, from the gradients of its outputs [T, B, O] and from its inputs [T, B, I]."""
    rows, columns = (part.flatten(0, 1).to(product) for part in (outputs_grad, inputs))
    return (rows.t() @ columns).to(inputs.dtype)
