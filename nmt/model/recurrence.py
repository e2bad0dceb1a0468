"""The attentive recurrence of the `Bahdanau` wiring as one autograd function: the training path that is fast.

What autograd would do a step at a time is done for all steps at once: input projections before the loop, weight
gradients after it, each as one product. The memory's share of the gates is projected before the loop too, so that a
step mixes [S, 3D] rows with its weights instead of multiplying its context by a matrix. The step-by-step path of
`nmt.model.decoders` is the reference that this one is tested against.
"""

from typing import Any

import torch
from torch import Tensor, nn

from nmt.attention import Attention, Memory
from nmt.attention.attention import masked_softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat
from nmt.attention.windows import Global
from nmt.model.gru import GRU_PARAMETERS, advance, retreat


def is_attentive_gru(attention: Attention, rnn: nn.GRU) -> bool:
    """Whether `attentive_gru` computes exactly what this attention and these layers would.

    One head, an additive or concat score without coverage, a global window, a soft read and one layer: all else is
    computed step by step. So are the wirings `Luong` with input feeding and `Conditional`, whatever their attention.
    """
    return (
        attention.heads == 1
        and type(attention.score()) in (Additive, Concat)
        and not attention.coverage
        and type(attention.windows[0]) is Global
        and type(attention.read) is Soft
        and rnn.num_layers == 1
        and not (attention.training and attention.dropout.p > 0)
    )


def attentive_gru(
    embedded: Tensor, first: Tensor, memory: Memory, attention: Attention, rnn: nn.GRU
) -> tuple[Tensor, Tensor]:
    """s_t = GRU(s_{t-1}, [y_{t-1}; c_t]), c_t = attend(s_{t-1}), for embedded [B, T, E] from first [B, D].

    Returns states [B, T, D] and weights [B, T, S].
    """
    score = attention.score()
    assert isinstance(score, Additive | Concat)
    embedding_size = embedded.shape[-1]
    query_weight = score.W.weight if isinstance(score, Additive) else score.W.weight[:, : score.query_size]
    weight_ih, weight_hh, bias_ih, bias_hh = (getattr(rnn, f"{name}_l0") for name in GRU_PARAMETERS)
    word_weight, context_weight = weight_ih.split([embedding_size, attention.context_size], 1)
    inputs = nn.functional.linear(embedded, word_weight, bias_ih).transpose(0, 1)
    shares = nn.functional.linear(memory.values[:, 0], context_weight)
    # tanh x = 2 sigmoid(2 x) - 1, and torch has the sigmoid several times as fast on a CPU (docs/benchmarks.md). The 2
    # goes into the weights; that the sum of v is then missing in every energy makes no difference to the softmax.
    recurrent = torch.cat([weight_hh, 2 * query_weight], 0)
    bias = torch.cat([bias_hh, bias_hh.new_zeros(score.size)])
    # Under autocast the products run in bfloat16; states, energies and sums over steps stay in float32.
    device = embedded.device.type
    product = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else recurrent.dtype
    kind = recurrent.dtype
    with torch.autocast(device, enabled=False):
        states, weights = _AttentiveGRU.apply(  # type: ignore[no-untyped-call]
            inputs.to(kind).contiguous(),
            shares.to(product),
            2 * memory.keys[:, 0].to(kind),
            first.to(kind),
            recurrent,
            bias,
            2 * score.v,
            memory.mask,
            product,
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
    ) -> tuple[Tensor, Tensor]:
        steps, batch, _ = inputs.shape
        size = first.shape[1]
        slots = mask.shape[1]
        states = inputs.new_empty(steps, batch, size)
        weights = inputs.new_empty(steps, batch, slots)
        # Only a backward pass needs the largest of these, T x B x S x A, for more than the step at hand.
        kept = steps if any(ctx.needs_input_grad) else 1
        terms = inputs.new_empty(kept, batch, slots, v.shape[0])
        gates = inputs.new_empty(steps, batch, 3 * size)  # r, z, n after their nonlinearities
        carried = inputs.new_empty(steps, batch, size)  # the candidate's recurrent part before r multiplies it
        recurrent_t, product_bias = recurrent.to(product).t().contiguous(), bias.to(product)
        hidden = first
        for t in range(steps):
            projected = torch.addmm(product_bias, hidden.to(product), recurrent_t).to(hidden.dtype)
            query = projected[:, 3 * size :]
            term = torch.add(keys, query.unsqueeze(1), out=terms[t % kept]).sigmoid_()
            energies = (term.view(-1, v.shape[0]) @ v).view(batch, slots)
            weight = masked_softmax(energies, mask)
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
            kept = retreat(
                hidden_grad + states_grad[t], before, gates[t], carried[t], gate_grad, projected[:, : 3 * size]
            )
            # A row times a transposed matrix: the other way round it takes ten times as long.
            weight_grad = torch.bmm(gate_grad.to(product).unsqueeze(1), shares.transpose(1, 2)).squeeze(1)
            weight_grad = weight_grad + weights_grad[t]
            energy_grad = torch.ops.aten._softmax_backward_data(weight_grad, weights[t], 1, states.dtype)
            energies_grad[t] = energy_grad
            slots_grad = torch.ops.aten.sigmoid_backward(energy_grad.unsqueeze(2) * v, terms[t])
            keys_grad += slots_grad
            torch.sum(slots_grad, 1, out=projected[:, 3 * size :])
            hidden_grad = kept + projected.to(product) @ product_recurrent
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
        )
