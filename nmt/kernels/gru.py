"""GRUs over whole sentences.

A layer is one autograd function: both directions run side by side, inputs are projected before the loop over steps, and
one product after the loop computes the weight gradients. Autograd through torch's packed layers does both step by step,
and each step's slice of the inputs has a gradient as large as all inputs, mostly zeros. Measured: docs/benchmarks.md,
"bidirectional GRU of 256 over 16 steps".
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmt.kernels import is_fast
from nmt.kernels.dropout import dropout
from nmt.kernels.lstm import masked_lstm_layers
from nmt.system.graphs import moved

#: torch's names for a layer's parameters, without the suffix for layer and direction.
GRU_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
#: Added to the update gate of a padded step: its sigmoid becomes exactly 1, so the state does not change.
_STAY = 1e4


def gru_step(gates: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """One step of torch's GRU: the new state [N, D].

    r = sigmoid(g_r + h_r), z = sigmoid(g_z + h_z), n = tanh(g_n + r h_n), s = (1 - z) n + z s_before. Here g is
    `gates` [N, 3D], the inputs' products with biases, and h = W s_before + b, with weight W [3D, D] and bias b [3D].
    Under autocast the product is in bfloat16, everything else in the type of `hidden` [N, D].
    """
    size, dtype = hidden.shape[-1], hidden.dtype
    gates, projected = gates.to(dtype), nn.functional.linear(hidden, weight, bias).to(dtype)
    reset, update = (gates[:, : 2 * size] + projected[:, : 2 * size]).sigmoid_().split(size, 1)
    candidate = torch.addcmul(gates[:, 2 * size :], reset, projected[:, 2 * size :]).tanh_()
    return torch.lerp(candidate, hidden, update)


def plain_gru(gates: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Run a layer in one direction step by step; arguments and result as in `gru`."""
    hidden, states = first, []
    for step_gates in gates.unbind(1):
        hidden = gru_step(step_gates, hidden, weight, bias)
        states.append(hidden)
    return torch.stack(states, 1)


def fast_gru(gates: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Run a layer in one direction as one autograd function; arguments and result as in `gru`."""
    inputs = gates.transpose(0, 1).unsqueeze(0)
    return _run(inputs, first.unsqueeze(0), weight.unsqueeze(0), bias.unsqueeze(0))[0].transpose(0, 1)


def gru(gates: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The states [B, T, D] of a layer, from its inputs' products, gates [B, T, 3D], and the state `first` [B, D].

    For gates [N, 3D] of a single step, returns the new state [N, D]. See `gru_step`.
    """
    if gates.ndim == 2:
        return gru_step(gates, first, weight, bias)
    return (fast_gru if gates.device.type == "cpu" and is_fast() else plain_gru)(gates, first, weight, bias)


def plain_layers(rnn: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """torch's packed GRU or LSTM layers; results as in `rnn_layers`.

    On CUDA, autocast is off: it would run cuDNN's layers in float16, whatever the autocast type. Without loss scaling,
    float16 underflows, and it does not mix with bfloat16. On other devices the products may run in bfloat16.
    """
    on_gpu = inputs.device.type == "cuda"
    autocast = torch.is_autocast_enabled(inputs.device.type) and not on_gpu
    with torch.autocast(inputs.device.type, enabled=autocast):
        if on_gpu:
            return _layers_on_gpu(rnn, inputs.float(), lengths)
        outputs, last = rnn(pack_padded_sequence(inputs, lengths, True, enforce_sorted=False))
    values, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    return values, last[0] if isinstance(last, tuple) else last


def _layers_on_gpu(rnn: nn.RNNBase, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """`plain_layers` with sequences sorted on the CPU; torch's own sorting makes the host wait for the GPU twice."""
    lengths, order = lengths.sort(descending=True, stable=True)
    sorted_rows, rows = (moved(indices, inputs.device) for indices in (order, order.argsort()))
    outputs, last = rnn(pack_padded_sequence(inputs.index_select(0, sorted_rows), lengths, True))
    values, _ = pad_packed_sequence(outputs, batch_first=True, total_length=inputs.shape[1])
    last = last[0] if isinstance(last, tuple) else last
    return values.index_select(0, rows), last.index_select(1, rows)


def rnn_layers(rnn: nn.RNNBase, inputs: Tensor, mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run GRU or LSTM layers over inputs [B, T, I] with mask [B, T] and lengths [B] (at least 1).

    Packing needs the lengths on the CPU. With lengths on a GPU, the layers use the mask only: the host does not need
    the lengths then, so that the layers can be part of a CUDA graph.

    Returns the top layer's states [B, T, R * D] for R directions, zero at padding, and each layer's hidden states
    [L * R, B, D] after the last real step.
    """
    if isinstance(rnn, nn.LSTM) and lengths.device.type == "cuda":
        return masked_lstm_layers(rnn, inputs, mask)
    if isinstance(rnn, nn.GRU) and is_fast() and (inputs.device.type == "cpu" or lengths.device.type == "cuda"):
        return fast_layers(rnn, inputs, mask=mask)
    return plain_layers(rnn, inputs, lengths)


def fast_layers(
    rnn: nn.GRU, inputs: Tensor, first: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run `rnn` with R directions over inputs [B, T, I] from the states `first` [L * R, B, D]; None for zeros.

    mask [B, T] is true where a step is real; padding comes last. Returns the top layer's states [B, T, R * D], zero
    at padding, and each layer's states [L * R, B, D] after the last real step.
    """
    directions = 2 if rnn.bidirectional else 1
    padding = None if mask is None or (mask.device.type == "cpu" and mask.all()) else ~mask.t()
    lasts = []
    for layer in range(rnn.num_layers):
        if layer:
            inputs = dropout(inputs, rnn.dropout, rnn.training)
        start = None if first is None else first[layer * directions : (layer + 1) * directions]
        states = _layer(rnn, layer, inputs, start, padding)
        lasts.append(states[:, -1])
        onward = states[:1] if directions == 1 else torch.stack([states[0], states[1].flip(0)])
        inputs = onward.permute(2, 1, 0, 3).flatten(2)
    return inputs if padding is None else inputs.masked_fill(padding.t().unsqueeze(-1), 0), torch.cat(lasts)


def _layer(rnn: nn.GRU, layer: int, inputs: Tensor, first: Tensor | None, padding: Tensor | None) -> Tensor:
    """One layer's states [R, T, B, D]; each direction's states are in its reading order."""
    names = [f"l{layer}", f"l{layer}_reverse"][: 2 if rnn.bidirectional else 1]
    weight_ih, weight_hh, bias_ih, bias_hh = (
        torch.stack([getattr(rnn, f"{kind}_{name}") for name in names]) for kind in GRU_PARAMETERS
    )
    steps = inputs.transpose(0, 1)
    read = steps.unsqueeze(0) if len(names) == 1 else torch.stack([steps, steps.flip(0)])
    gates = torch.bmm(read.flatten(1, 2), weight_ih.transpose(1, 2)).to(weight_hh.dtype) + bias_ih.unsqueeze(1)
    gates = gates.unflatten(1, read.shape[1:3])
    if padding is not None:
        stay = padding.unsqueeze(0) if len(names) == 1 else torch.stack([padding, padding.flip(0)])
        gates[..., rnn.hidden_size : 2 * rnn.hidden_size] += _STAY * stay.unsqueeze(-1)
    if first is None:
        first = gates.new_zeros(len(names), read.shape[2], rnn.hidden_size)
    return _run(gates, first, weight_hh, bias_hh)


def _run(gates: Tensor, first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`_GRULayer` with autocast disabled; if it was enabled, the products run in bfloat16."""
    device, dtype = gates.device.type, weight.dtype
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else dtype
    with torch.autocast(device, enabled=False):
        states: Tensor = _GRULayer.apply(  # type: ignore[no-untyped-call]
            gates.to(dtype), first.to(dtype), weight, bias, product
        )
    return states


class _GRULayer(torch.autograd.Function):
    """inputs [R, T, B, 3D], first [R, B, D], recurrent [R, 3D, D], bias [R, 3D] -> states [R, T, B, D]."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, first: Tensor, recurrent: Tensor, bias: Tensor, product: torch.dtype
    ) -> Tensor:
        directions, steps, batch, _ = inputs.shape
        size = first.shape[2]
        states = inputs.new_empty(directions, steps, batch, size)
        gates = torch.empty_like(inputs)  # r, z, n after their nonlinearities
        carried = torch.empty_like(states)  # the candidate's recurrent part before r multiplies it
        recurrent_t, product_bias = recurrent.to(product).transpose(1, 2), bias.to(product).unsqueeze(1)
        hidden = first
        for t in range(steps):
            projected = torch.baddbmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
            hidden = advance(inputs[:, t], projected, hidden, gates[:, t], carried[:, t])
            states[:, t] = hidden
        ctx.save_for_backward(first, recurrent, states, gates, carried)
        ctx.product = product
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (states_grad,) = gradients
        first, recurrent, states, gates, carried = ctx.saved_tensors
        product = ctx.product
        product_recurrent = recurrent.to(product)
        inputs_grad, projected_grad = torch.empty_like(gates), torch.empty_like(gates)
        hidden_grad = torch.zeros_like(first)
        for t in range(states.shape[1] - 1, -1, -1):
            before = states[:, t - 1] if t else first
            total = hidden_grad + states_grad[:, t]
            through_update_gate = retreat(
                total, before, gates[:, t], carried[:, t], inputs_grad[:, t], projected_grad[:, t]
            )
            hidden_grad = through_update_gate + torch.bmm(projected_grad[:, t].to(product), product_recurrent)
        befores = torch.cat([first.unsqueeze(1), states[:, :-1]], 1).flatten(1, 2)
        flat = projected_grad.flatten(1, 2)
        recurrent_grad = torch.bmm(flat.to(product).transpose(1, 2), befores.to(product)).to(flat.dtype)
        return inputs_grad, hidden_grad, recurrent_grad, flat.sum(1), None


def advance(inputs: Tensor, projected: Tensor, hidden: Tensor, gates: Tensor, carried: Tensor) -> Tensor:
    """One step of a GRU from both projections [..., 3D] and the state [..., D]; stores what `retreat` needs."""
    size = hidden.shape[-1]
    torch.add(inputs[..., : 2 * size], projected[..., : 2 * size], out=gates[..., : 2 * size]).sigmoid_()
    reset, update, new = gates.split(size, -1)
    carried.copy_(projected[..., 2 * size :])
    torch.addcmul(inputs[..., 2 * size :], reset, carried, out=new).tanh_()
    return torch.lerp(new, hidden, update)


def retreat(
    total: Tensor, before: Tensor, gates: Tensor, carried: Tensor, inputs_grad: Tensor, projected_grad: Tensor
) -> Tensor:
    """Write the gradients of both projections of a step, from the gradient `total` of its state.

    Returns the gradient that reaches the previous state through the update gate alone.
    """
    size = total.shape[-1]
    reset, update, new = gates.split(size, -1)
    reset_grad, update_grad, new_grad = inputs_grad.split(size, -1)
    sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
    torch.ops.aten.tanh_backward.grad_input(total * (1 - update), new, grad_input=new_grad)
    sigmoid_backward(new_grad * carried, reset, grad_input=reset_grad)
    sigmoid_backward(total * (before - new), update, grad_input=update_grad)
    projected_grad[..., : 2 * size] = inputs_grad[..., : 2 * size]
    torch.mul(new_grad, reset, out=projected_grad[..., 2 * size :])
    return torch.mul(total, update)
