"""Search's step with what is linear taken out of it.

A context is a weighted sum of a sentence's values, so W c_t = sum_j a_tj (W v_j): whatever multiplies contexts may
multiply the S values once, where a beam of K hypotheses would multiply K T contexts. And the hypotheses of a step
end in few different words, each of which is multiplied once. `Decoder.step` is the reference that this is tested
against.
"""

import functools

import torch
from torch import Tensor, nn

from nmt.attention import Memory
from nmt.model.decoders import Bahdanau, Conditional, Decoded, Decoder, DecoderState, Luong
from nmt.model.readouts import Parts


def can_fold(decoder: Decoder) -> bool:
    """Whether `fold` and `folded_step` compute what this decoder's `step` would.

    That is one layer, no projections, and a read that hands one context to everybody.
    """
    return (
        decoder.fast
        and isinstance(decoder, Bahdanau | Luong | Conditional)
        and decoder.rnn.num_layers == 1
        and decoder.attention is not None
        and decoder.attention.out is None
        and not decoder.attention.read.enumerates
    )


def fold(decoder: Decoder, memory: Memory) -> Memory:
    """The memory with values [B, 1, S, R + U]: their shares of the recurrence (R is 0 or 3 D) and of the readout.

    U is 0 for a readout that sees no context.
    """
    recurrent, readout = _context_weight(decoder), decoder.readout.parts().context
    shares = [] if recurrent is None else [nn.functional.linear(memory.values, recurrent)]
    if readout is not None:
        shares.append(readout(memory.values))
    return memory._replace(values=torch.cat(shares, -1))


def folded_step(
    decoder: Decoder, words: Tensor, which: Tensor, state: DecoderState, memory: Memory
) -> tuple[Decoded, DecoderState]:
    """`Decoder.step` for hypotheses [N] whose previous words are `words[which]`, with a folded memory.

    words [W, E] are the embeddings of the different words, which [N] their rows.
    """
    rnn = decoder.rnn
    input_weight, input_bias = _weights(rnn, "ih")
    word_weight, fed_weight = input_weight.split([words.shape[1], input_weight.shape[1] - words.shape[1]], 1)
    size = rnn.hidden_size
    inputs = nn.functional.linear(words, word_weight, input_bias)[which]
    hidden = state.hidden[:, 0]
    if isinstance(decoder, Bahdanau):
        looked, attention_state = decoder.attend(hidden, state, memory)
        shares, seen = looked.context[:, : 3 * size], looked.context[:, 3 * size :]
        top = hidden
        hidden = _gru(inputs + shares, hidden, rnn)
        if not decoder.previous_state:
            top = hidden
    else:
        if decoder.feed_size:
            inputs = inputs + nn.functional.linear(state.feed, fed_weight)
        hidden = _gru(inputs, hidden, rnn)
        looked, attention_state = decoder.attend(hidden, state, memory)
        seen = looked.context
        if isinstance(decoder, Conditional):
            shares, seen = seen[:, : 3 * size], seen[:, 3 * size :]
            hidden = _gru(shares + _weights(decoder.second, "ih")[1], hidden, decoder.second)
        top = hidden
    features = decoder.readout.activate(_units(decoder.readout.parts(), words, which, top, seen))
    feed = features if decoder.feed_size else state.feed
    following = DecoderState(hidden.unsqueeze(1), feed, state.steps + 1, attention_state)
    return Decoded(features, looked.weights, looked.terms), following


def _units(parts: Parts, words: Tensor, which: Tensor, top: Tensor, seen: Tensor) -> Tensor:
    """The readout's units [N, U], from different words [W, E], states [N, D] and contexts' shares seen [N, U or 0]."""
    units = []
    if parts.word is not None:
        units.append(parts.word(words)[which])
    if parts.state is not None:
        units.append(parts.state(top))
    if parts.context is not None:
        units.append(seen)
    if parts.bias is not None:
        units.append(parts.bias)
    return functools.reduce(torch.add, units)


def _context_weight(decoder: Decoder) -> Tensor | None:
    """What multiplies contexts on their way into the recurrence, [3 D, C]; None where they do not go there."""
    if isinstance(decoder, Conditional):
        return _weights(decoder.second, "ih")[0]
    if isinstance(decoder, Bahdanau):
        return _weights(decoder.rnn, "ih")[0][:, -decoder.context_size :]
    return None


def _weights(rnn: nn.GRU, kind: str) -> tuple[Tensor, Tensor]:
    """Matrix and bias of the one layer: "ih" for its inputs, "hh" for its state."""
    return getattr(rnn, f"weight_{kind}_l0"), getattr(rnn, f"bias_{kind}_l0")


def _gru(inputs: Tensor, hidden: Tensor, rnn: nn.GRU) -> Tensor:
    """One step of torch's GRU from inputs [N, 3 D] that are multiplied already, hidden [N, D].

    Under autocast the products are in bfloat16; the state keeps its own type.
    """
    recurrent = nn.functional.linear(hidden, *_weights(rnn, "hh"))
    size = rnn.hidden_size
    gates, candidate = recurrent.split([2 * size, size], 1)
    reset, update = (inputs[:, : 2 * size] + gates).sigmoid_().split(size, 1)
    new = torch.addcmul(inputs[:, 2 * size :], reset, candidate).tanh_()
    return torch.lerp(new.to(hidden.dtype), hidden, update.to(hidden.dtype))
