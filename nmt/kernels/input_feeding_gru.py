"""A GRU that attends with its new state and reads the features of the previous step, for all t.

    s_t = GRU(s_{t-1}, [y_t; f_{t-1}]), c_t = attend(s_t), f_t = tanh(U s_t + C c_t + u_t)

One product after the loop computes the weight gradients of all steps; autograd would compute them step by step. The
products C v_j of the memory's values are computed before the loop. A state is multiplied once, for its features, its
query and the gates of the next step. Measured: docs/benchmarks.md, "Training the matched model".

Shapes: inputs [B, T, 3D] (the words' products for the gates, with biases), units [B, T, F] (the words' products u_t for
the features), first [B, D], feed [B, F] (f before the first step), shares [B, S, F], keys [B, S, A] or [B, S, D],
mask [B, S], weight [3D, D] and bias [3D] for the state's product, feed_weight [3D, F], state_weight [F, D].
Results: features [B, T, F] and weights [B, T, S].
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.kernels.attentive_gru import weight_grad_of
from nmt.kernels.energies import ProjectedMemory, Query, double, energies_of, masked_softmax, plain_energies, terms_of
from nmt.kernels.gru import advance, gru_step, retreat


class WordShares(NamedTuple):
    """The words' products at each step: inputs for the gates, units for the features (None for none)."""

    inputs: Tensor
    units: Tensor | None


class Start(NamedTuple):
    """The state and the features before the first step."""

    first: Tensor
    feed: Tensor


class FeedingParameters(NamedTuple):
    """Parameters of attention (query; None: dot product), GRU (weight, bias, feed_weight), features (state_weight)."""

    query: Query | None
    weight: Tensor
    bias: Tensor
    feed_weight: Tensor
    state_weight: Tensor


def plain_input_feeding_gru(
    words: WordShares, start: Start, memory: ProjectedMemory, parameters: FeedingParameters
) -> tuple[Tensor, Tensor]:
    """Run the recurrence step by step."""
    query, weight, bias, feed_weight, state_weight = parameters
    hidden, feed = start
    features, weights = [], []
    for t, step in enumerate(words.inputs.unbind(1)):
        hidden = gru_step(step + nn.functional.linear(feed, feed_weight), hidden, weight, bias)
        weights.append(masked_softmax(plain_energies(hidden, memory.keys, query), memory.mask))
        units = nn.functional.linear(hidden, state_weight) + (weights[-1].unsqueeze(1) @ memory.shares).squeeze(1)
        feed = torch.tanh(units if words.units is None else units + words.units[:, t])
        features.append(feed)
    return torch.stack(features, 1), torch.stack(weights, 1)


def fast_input_feeding_gru(
    words: WordShares, start: Start, memory: ProjectedMemory, parameters: FeedingParameters
) -> tuple[Tensor, Tensor]:
    """Run the recurrence as one autograd function.

    Under autocast the products run in bfloat16; states, energies and sums over steps stay in float32.
    """
    query, weight, bias, feed_weight, state_weight = parameters
    device, dtype = weight.device.type, weight.dtype
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else dtype
    inputs = words.inputs.transpose(0, 1).to(dtype).contiguous()
    units = None if words.units is None else words.units.transpose(0, 1).to(dtype)
    keys, query_weight, v = double(memory.keys.to(dtype), query)
    recurrent = torch.cat([weight, state_weight, *([] if query_weight is None else [query_weight])], 0)
    with torch.autocast(device, enabled=False):
        features, weights = _InputFeedingGRU.apply(  # type: ignore[no-untyped-call]
            inputs,
            units,
            *(part.to(dtype) for part in start),
            memory.shares.to(product),
            keys,
            v,
            recurrent,
            bias,
            feed_weight,
            memory.mask,
            product,
        )
    return features.transpose(0, 1), weights.transpose(0, 1)


class _InputFeedingGRU(torch.autograd.Function):
    """inputs [T, B, 3D], units [T, B, F], recurrent [3D + F + A, D]: weights of the gates, the features and the query.

    Without v [A], A is 0. Returns features [T, B, F] and weights [T, B, S].
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        units: Tensor | None,
        first: Tensor,
        feed: Tensor,
        shares: Tensor,
        keys: Tensor,
        v: Tensor | None,
        recurrent: Tensor,
        bias: Tensor,
        feed_weight: Tensor,
        mask: Tensor,
        product: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        steps, batch, width = inputs.shape
        query = width + feed.shape[1]  # the first column of the query
        states = inputs.new_empty(steps, batch, first.shape[1])
        features = inputs.new_empty(steps, batch, feed.shape[1])
        weights = inputs.new_empty(steps, batch, mask.shape[1])
        terms = terms_of(keys, v, steps if any(ctx.needs_input_grad) else 1)  # only a backward pass needs all steps
        energies = energies_of(keys, v, terms)
        gates = torch.empty_like(inputs)  # r, z, n after their nonlinearities
        carried = torch.empty_like(states)  # the candidate's recurrent part before r multiplies it
        recurrent_t, feed_t = recurrent.to(product).t().contiguous(), feed_weight.to(product).t().contiguous()
        product_bias = torch.cat([bias, bias.new_zeros(len(recurrent) - width)]).to(product)
        hidden, below = first, feed
        projected = torch.addmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
        for t in range(steps):
            gate = (below.to(product) @ feed_t).add(inputs[t])
            hidden = advance(gate, projected[:, :width], hidden, gates[t], carried[t])
            states[t] = hidden
            projected = torch.addmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
            weight = masked_softmax(energies(t, hidden, projected[:, query:]), mask)
            weights[t] = weight
            seen = torch.bmm(weight.to(product).unsqueeze(1), shares).squeeze(1).add(projected[:, width:query])
            below = torch.tanh(seen if units is None else seen.add_(units[t]), out=features[t])
        ctx.save_for_backward(
            first, feed, shares, keys, v, recurrent, feed_weight, states, features, weights, terms, gates, carried
        )
        ctx.has_units = units is not None
        return features, weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        features_grad, weights_grad = gradients
        first, feed, shares, keys, v, recurrent, feed_weight, states, features, *rest = ctx.saved_tensors
        weights, terms, gates, carried = rest
        steps, batch, width = gates.shape
        query = width + feed.shape[1]
        product, energies = shares.dtype, energies_of(keys, v, terms)
        product_recurrent, product_feed = recurrent.to(product), feed_weight.to(product)
        inputs_grad, energies_grad = torch.empty_like(gates), torch.empty_like(weights)
        # Entry t is for the product of state t - 1. The first state has no features, and the last has no next step.
        projected_grad = gates.new_empty(steps + 1, batch, recurrent.shape[0])
        projected_grad[0, :, width:], projected_grad[steps, :, :width] = 0, 0
        feed_grad, through_update_gate = torch.zeros_like(feed), torch.zeros_like(first)
        for t in range(steps - 1, -1, -1):
            before, unit_grad = states[t - 1] if t else first, projected_grad[t + 1, :, width:query]
            total = features_grad[t] + feed_grad
            torch.ops.aten.tanh_backward.grad_input(total, features[t], grad_input=unit_grad)
            # Keep the order row times transposed matrix: matrix times column takes ten times as long.
            weight_grad = torch.bmm(unit_grad.to(product).unsqueeze(1), shares.transpose(1, 2)).squeeze(1)
            energy_grad = torch.ops.aten._softmax_backward_data(
                weight_grad + weights_grad[t], weights[t], 1, states.dtype
            )
            energies_grad[t] = energy_grad
            direct = energies.retreat(t, energy_grad, projected_grad[t + 1, :, query:])
            hidden_grad = (projected_grad[t + 1].to(product) @ product_recurrent).add(through_update_gate)
            if direct is not None:
                hidden_grad += direct
            through_update_gate = retreat(
                hidden_grad, before, gates[t], carried[t], inputs_grad[t], projected_grad[t, :, :width]
            )
            feed_grad = (inputs_grad[t].to(product) @ product_feed).to(feed.dtype)
        first_grad = (projected_grad[0].to(product) @ product_recurrent).add(through_update_gate)
        units_grad, fed = projected_grad[1:, :, width:query], torch.cat([feed.unsqueeze(0), features[:-1]])
        shares_grad = torch.bmm(weights.permute(1, 2, 0).to(product), units_grad.transpose(0, 1).to(product))
        keys_grad, v_grad = energies.gradients(energies_grad, states)
        return (
            inputs_grad,
            units_grad if ctx.has_units else None,
            first_grad,
            feed_grad,
            shares_grad,
            keys_grad,
            v_grad,
            weight_grad_of(projected_grad, torch.cat([first.unsqueeze(0), states]), product),
            projected_grad[..., :width].sum((0, 1)),
            weight_grad_of(inputs_grad, fed, product),
            None,
            None,
        )
