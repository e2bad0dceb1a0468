"""Decoders: the wirings, that is, where in the recurrence the attention is asked.

`step` serves search, `forward` serves training and scoring; both give the same numbers (but for a read that
enumerates: search makes a choice where `forward` gives the mixture). Rows are hypotheses: at one step a
memory of B sentences may be asked by N = B * K rows, K to a sentence, without being copied.

Shapes: embedded [N, E] (the previous target words), hidden [N, L, D], memory of B sentences, weights [N, H, S] at one
step and [B, H, T, S] for a sequence, features [N, F] or [B, T, F].
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, AttentionState, Choices, Memory
from nmt.attention.attention import masked_softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat
from nmt.attention.windows import Global
from nmt.errors import UserError
from nmt.kernels import attentive_gru
from nmt.kernels.gru import GRU_PARAMETERS, fast_layers, run_rnn
from nmt.model.encoders import Encoded, mean_of, summary_of
from nmt.model.readouts import FromContext, FromState, Readout


class DecoderState(NamedTuple):
    """What a step hands to the next: hidden [N, L, D], feed [N, F or 0], steps [N], attention's own [N, ...]."""

    hidden: Tensor
    feed: Tensor
    steps: Tensor
    attention: AttentionState

    def select(self, rows: Tensor) -> "DecoderState":
        """The rows `rows` [N'], in that order, repeats allowed."""
        return DecoderState(
            self.hidden[rows], self.feed[rows], self.steps[rows], tuple(part[rows] for part in self.attention)
        )


class Mixture(NamedTuple):
    """A mixture of distributions over the vocabulary: features [..., J, F] and the logs of their shares [..., J]."""

    features: Tensor
    log_weights: Tensor


class Decoded(NamedTuple):
    """Features for the softmax, attention weights (None without attention), and terms for the loss by name.

    With `mixture` the next word's distribution is that mixture, and the features are what is fed back.
    """

    features: Tensor
    weights: Tensor | None
    terms: dict[str, Tensor]
    mixture: Mixture | None = None


def stack_steps(steps: Sequence[Decoded]) -> Decoded:
    """The steps of a sequence as one: features [B, T, F], weights [B, H, T, S], terms [B, T]."""
    weights = [now.weights for now in steps if now.weights is not None]
    mixtures = [now.mixture for now in steps if now.mixture is not None]
    return Decoded(
        torch.stack([now.features for now in steps], 1),
        torch.stack(weights, 2) if weights else None,
        {name: torch.stack([now.terms[name] for now in steps], 1) for name in steps[0].terms},
        Mixture(*(torch.stack(parts, 1) for parts in zip(*mixtures, strict=True))) if mixtures else None,
    )


class Looked(NamedTuple):
    """One transition of a wiring before its readout: state [N, D], context [N, C], weights [N, H, S].

    With `choices` the context is for the recurrence, and the readout is to see the choices.
    """

    top: Tensor
    context: Tensor
    weights: Tensor | None
    terms: dict[str, Tensor]
    choices: Choices | None = None


class Sizes(NamedTuple):
    """Sizes that follow from other choices: of an embedding, of a memory slot, of the backward encoder's state."""

    embedding: int
    value: int
    backward: int


class FirstState(nn.Module):
    """Where the recurrence starts.

    backward: s_0 = tanh(W_s of the backward encoder's state at the first word). Bahdanau 2015, appendix A.2.2.
    last: the encoder's last state layer by layer, through a linear bridge where sizes differ. Luong 2015, section 3.
    mean: tanh(W of the mean of the encoder's states). Sennrich et al. 2017 (Nematus), section 2.
    zero: zeros.
    """

    KINDS = ("backward", "last", "mean", "zero")

    def __init__(self, kind: str, value_size: int, backward_size: int, layers: int, size: int) -> None:
        super().__init__()
        if kind not in self.KINDS:
            raise UserError(
                f"decoder.first_state={kind} is not known. Give decoder.first_state= one of {', '.join(self.KINDS)}."
            )
        self.kind, self.layers, self.size = kind, layers, size
        self.linear: nn.Linear | None = None
        if kind == "backward":
            self.linear = nn.Linear(backward_size, layers * size)
        elif kind == "mean":
            self.linear = nn.Linear(value_size, layers * size)
        elif kind == "last" and value_size != size:
            self.linear = nn.Linear(value_size, size)

    def forward(self, encoded: Encoded) -> Tensor:
        """hidden [B, L, D]."""
        if self.kind == "zero":
            return encoded.values.new_zeros(encoded.values.shape[0], self.layers, self.size)
        if self.kind == "last":
            # Top layer to top layer; a decoder of more layers than the encoder repeats the encoder's top layer.
            finals = encoded.finals
            most = finals.shape[1]
            chosen = [finals[:, min(layer + max(0, most - self.layers), most - 1)] for layer in range(self.layers)]
            stacked = torch.stack(chosen, 1)
            if self.linear is not None:
                stacked = self.linear(stacked)
            return stacked
        assert self.linear is not None
        vector = encoded.backward if self.kind == "backward" else mean_of(encoded)
        state: Tensor = torch.tanh(self.linear(vector)).unflatten(-1, (self.layers, self.size))
        return state


class Decoder(nn.Module):
    """The contract, and what every wiring shares: a stack of GRU layers, a first state and a readout.

    A wiring defines `transition`. `fast=False` keeps to the readable step-by-step computation, in training and search.
    """

    def __init__(
        self,
        attention: Attention | None,
        readout: Readout,
        sizes: Sizes,
        *,
        context_size: int,
        fed_size: int,
        size: int,
        layers: int,
        first_state: str,
        dropout: float,
        fast: bool,
    ) -> None:
        """`fed_size` is the size of what the recurrence takes in beside the previous word."""
        super().__init__()
        if attention is not None and attention.read.enumerates and isinstance(readout, FromState):
            raise UserError(
                "attention.read.objective=enumerate lets the readout choose among slots, which decoder/readout=state "
                "does not see. Give decoder/readout=maxout, tanh or context, or attention.read.objective=sampled."
            )
        self.attention = attention
        self.readout = readout
        self.first_state = FirstState(first_state, sizes.value, sizes.backward, layers, size)
        self.rnn = nn.GRU(
            sizes.embedding + fed_size, size, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0
        )
        self.context_size = context_size
        self.fast = fast

    @property
    def feed_size(self) -> int:
        """Size of what is fed back from a step's readout to the next step's input; 0 where nothing is."""
        return 0

    @property
    def carries_contexts(self) -> bool:
        """Whether a step's context has a say in the steps after it."""
        return True

    @property
    def has_fast_path(self) -> bool:
        """Whether training computes a whole target in another way than the readable one, step by step."""
        return False

    def start(self, encoded: Encoded) -> tuple[Memory, DecoderState]:
        """Memory and first state, once a sentence."""
        batch = encoded.mask.shape[0]
        memory = self.remember(encoded)
        hidden = self.first_state(encoded)
        state = DecoderState(
            # Under autocast the first state's product is in bfloat16; a state that is carried on stays in float32.
            hidden.to(torch.promote_types(hidden.dtype, torch.float32)),
            encoded.values.new_zeros(batch, self.feed_size),
            torch.zeros(batch, dtype=torch.int64, device=encoded.mask.device),
            () if self.attention is None else tuple(part.flatten(0, 1) for part in self.attention.start(memory)),
        )
        return memory, state

    def remember(self, encoded: Encoded) -> Memory:
        """The encoder's states as this decoder will ask for them."""
        assert self.attention is not None
        return self.attention.remember(encoded.values, encoded.mask)

    def attend(self, queries: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, AttentionState]:
        """Asks the memory of B sentences with queries [N, D], N = B * K, at one step."""
        assert self.attention is not None
        sentences = memory.mask.shape[0]
        attended = self.attention(
            queries.unflatten(0, (sentences, -1)),
            memory,
            state.steps.unflatten(0, (sentences, -1)),
            tuple(part.unflatten(0, (sentences, -1)) for part in state.attention),
        )
        looked = Looked(
            queries,
            attended.context.flatten(0, 1),
            None if attended.weights is None else attended.weights.transpose(1, 2).flatten(0, 1),
            {name: term.flatten(0, 1) for name, term in attended.terms.items()},
            None if attended.choices is None else Choices(*(part.flatten(0, 1) for part in attended.choices)),
        )
        return looked, tuple(part.flatten(0, 1) for part in attended.state)

    def update(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """One step of the recurrent layers: inputs [N, I], hidden [N, L, D] -> hidden [N, L, D]."""
        _, last = run_rnn(self.rnn, inputs.unsqueeze(1), hidden.transpose(0, 1).contiguous())
        return last.transpose(0, 1)

    def sweep(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """All steps of the recurrent layers: inputs [B, T, I], hidden [B, L, D] -> the top layer's states [B, T, D]."""
        first = hidden.transpose(0, 1).contiguous()
        if self.fast and inputs.device.type == "cpu":
            return fast_layers(self.rnn, inputs, first)[0]
        outputs, _ = run_rnn(self.rnn, inputs, first)
        assert isinstance(outputs, Tensor)
        return outputs

    def transition(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, DecoderState]:
        """The wiring: one step up to, not including, the readout."""
        raise TypeError(f"{type(self).__name__} does not say how it is wired")

    def step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Decoded, DecoderState]:
        """One step for search: embedded [N, E] -> features [N, F], weights [N, H, S], the next state.

        Where the readout may choose among slots it takes the most probable one.
        """
        looked, state = self.transition(embedded, state, memory)
        features = self.readout(looked.top, embedded, looked.context)
        if self.feed_size:
            state = state._replace(feed=features)
        if looked.choices is not None:
            features = self.readout(looked.top, embedded, looked.choices.heaviest())
        return Decoded(features, looked.weights, looked.terms), state

    def forced_step(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Decoded, DecoderState]:
        """One step towards a target that is given: `step`, with the mixture where the readout may choose."""
        looked, state = self.transition(embedded, state, memory)
        decoded = self.read_out(looked, embedded)
        if self.feed_size:
            state = state._replace(feed=decoded.features)
        return decoded, state

    def read_out(self, looked: Looked, embedded: Tensor) -> Decoded:
        """The readout of one step or of all, with the mixture where it may choose."""
        features = self.readout(looked.top, embedded, looked.context)
        mixture = None
        if looked.choices is not None:
            contexts, log_weights = looked.choices
            top, word = (part.unsqueeze(-2).expand(*contexts.shape[:-1], -1) for part in (looked.top, embedded))
            mixture = Mixture(self.readout(top, word, contexts), log_weights)
        return Decoded(features, looked.weights, looked.terms, mixture)

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        """The whole target where it is given: embedded [B, T, E] -> features [B, T, F], weights [B, H, T, S]."""
        decoded = []
        for position in range(embedded.shape[1]):
            now, state = self.forced_step(embedded[:, position], state, memory)
            decoded.append(now)
        return stack_steps(decoded)


def is_attentive_gru(attention: Attention, rnn: nn.GRU) -> bool:
    """Whether `fast_attentive_gru` computes exactly what this attention and these layers would.

    That is no projections, an additive or concat score without coverage, a global window, a soft read and one layer.
    All else is computed step by step, and so are the wirings `Luong` with input feeding and `Conditional`.
    """
    return (
        attention.out is None
        and type(attention.score) in (Additive, Concat)
        and not attention.coverage
        and type(attention.window) is Global
        and type(attention.read) is Soft
        and rnn.num_layers == 1
        and not (attention.training and attention.dropout.p > 0)
    )


class Bahdanau(Decoder):
    """Attend with the previous state, then update: c_t = attend(s_{t-1}); s_t = GRU(s_{t-1}, [y_{t-1}; c_t]).

    Bahdanau, Cho, Bengio 2015, section 3.1 (readout from s_t, eq. 4) and appendix A.2. With `previous_state` the
    readout sees s_{t-1}, as in the appendix. s_{t-1} and c_t have seen no further than y_{t-2}: a readout has to see
    s_t or y_{t-1} itself, and others are refused.
    """

    def __init__(
        self,
        attention: Attention,
        readout: Readout,
        sizes: Sizes,
        *,
        size: int,
        layers: int = 1,
        first_state: str = "backward",
        previous_state: bool = False,
        dropout: float = 0.0,
        fast: bool = True,
    ) -> None:
        super().__init__(
            attention,
            readout,
            sizes,
            context_size=attention.context_size,
            fed_size=attention.context_size,
            size=size,
            layers=layers,
            first_state=first_state,
            dropout=dropout,
            fast=fast,
        )
        parts = readout.parts()
        if parts.word is None and (previous_state or parts.state is None):
            cure = "decoder=luong or conditional" if parts.state is None else "decoder.previous_state=false"
            raise UserError(
                "decoder=bahdanau attends before the previous word has come in, so that with this readout "
                f"{'and decoder.previous_state=true ' if previous_state else ''}no word would depend on the one "
                f"before it. Give {cure}, or a readout that sees the word: decoder/readout=maxout, or "
                f"decoder/readout=tanh decoder.readout.word=true."
            )
        self.previous_state = previous_state

    @property
    def has_fast_path(self) -> bool:
        assert self.attention is not None
        return self.fast and is_attentive_gru(self.attention, self.rnn)

    def transition(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, DecoderState]:
        looked, attention_state = self.attend(state.hidden[:, -1], state, memory)
        hidden = self.update(torch.cat([embedded, looked.context], -1), state.hidden)
        if not self.previous_state:
            looked = looked._replace(top=hidden[:, -1])
        return looked, DecoderState(hidden, state.feed, state.steps + 1, attention_state)

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        """The whole target; what does not depend on the previous step is computed for all steps at once."""
        assert self.attention is not None
        if not self.has_fast_path:
            return super().forward(embedded, state, memory)
        first = state.hidden[:, 0]
        score, rnn = self.attention.score, self.rnn
        assert isinstance(score, Additive | Concat)
        query_weight = score.W.weight if isinstance(score, Additive) else score.W.weight[:, : score.query_size]
        weight_ih, weight_hh, bias_ih, bias_hh = (getattr(rnn, f"{name}_l0") for name in GRU_PARAMETERS)
        word_weight, context_weight = weight_ih.split([embedded.shape[-1], self.context_size], 1)
        states, weights = attentive_gru.fast_attentive_gru(
            nn.functional.linear(embedded, word_weight, bias_ih),
            first,
            attentive_gru.Memory(
                nn.functional.linear(memory.values[:, 0], context_weight), memory.keys[:, 0], memory.mask
            ),
            attentive_gru.Parameters(query_weight, score.v, weight_hh, bias_hh),
            masked_softmax,
        )
        contexts = weights.to(memory.values.dtype) @ memory.values[:, 0]
        tops = torch.cat([first.unsqueeze(1), states[:, :-1]], 1) if self.previous_state else states
        return Decoded(self.readout(tops, embedded, contexts), weights.unsqueeze(1), {})


class Luong(Decoder):
    """Update, then attend with the current state: h_t = GRU(h_{t-1}, [y_{t-1}; htilde_{t-1}]); c_t = attend(h_t).

    Luong, Pham, Manning 2015, sections 3 and 3.3. htilde_t, the readout's features, is fed to the next step's input
    unless `input_feeding` is off.
    """

    def __init__(
        self,
        attention: Attention,
        readout: Readout,
        sizes: Sizes,
        *,
        size: int,
        layers: int = 1,
        first_state: str = "last",
        input_feeding: bool = True,
        dropout: float = 0.0,
        fast: bool = True,
    ) -> None:
        super().__init__(
            attention,
            readout,
            sizes,
            context_size=attention.context_size,
            fed_size=readout.size if input_feeding else 0,
            size=size,
            layers=layers,
            first_state=first_state,
            dropout=dropout,
            fast=fast,
        )
        if isinstance(readout, FromState):
            raise UserError(
                "decoder=luong uses its context in the readout alone, so decoder/readout=state would leave the "
                "attention unused. Give decoder/readout=tanh, maxout or context, or decoder=bahdanau."
            )
        self.input_feeding = input_feeding

    @property
    def feed_size(self) -> int:
        return self.readout.size if self.input_feeding else 0

    @property
    def carries_contexts(self) -> bool:
        return self.input_feeding

    @property
    def has_fast_path(self) -> bool:
        assert self.attention is not None
        return self.fast and not self.input_feeding and not self.attention.coverage

    def transition(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, DecoderState]:
        hidden = self.update(torch.cat([embedded, state.feed], -1), state.hidden)
        looked, attention_state = self.attend(hidden[:, -1], state, memory)
        return looked, DecoderState(hidden, state.feed, state.steps + 1, attention_state)

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        """The whole target; without input feeding the recurrence and the attention run over all steps at once."""
        assert self.attention is not None
        if not self.has_fast_path:
            return super().forward(embedded, state, memory)
        tops = self.sweep(embedded, state.hidden)
        steps = state.steps.unsqueeze(1) + torch.arange(embedded.shape[1], device=embedded.device)
        attended = self.attention(tops, memory, steps)
        looked = Looked(tops, attended.context, attended.weights, attended.terms, attended.choices)
        return self.read_out(looked, embedded)


class Conditional(Decoder):
    """Update, attend, update again: s'_t = GRU_1(s_{t-1}, y_{t-1}); c_t = attend(s'_t); s_t = GRU_2(s'_t, c_t).

    Sennrich et al. 2017 (Nematus), section 2. With several layers the first transition is the stack of them, and the
    second one moves its top layer.
    """

    def __init__(
        self,
        attention: Attention,
        readout: Readout,
        sizes: Sizes,
        *,
        size: int,
        layers: int = 1,
        first_state: str = "mean",
        dropout: float = 0.0,
        fast: bool = True,
    ) -> None:
        super().__init__(
            attention,
            readout,
            sizes,
            context_size=attention.context_size,
            fed_size=0,
            size=size,
            layers=layers,
            first_state=first_state,
            dropout=dropout,
            fast=fast,
        )
        self.second = nn.GRU(attention.context_size, size, batch_first=True)

    def transition(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, DecoderState]:
        hidden = self.update(embedded, state.hidden)
        looked, attention_state = self.attend(hidden[:, -1], state, memory)
        _, last = run_rnn(self.second, looked.context.unsqueeze(1), hidden[:, -1].unsqueeze(0).contiguous())
        hidden = torch.cat([hidden[:, :-1], last.transpose(0, 1)], 1)
        return looked._replace(top=last[0]), DecoderState(hidden, state.feed, state.steps + 1, attention_state)


class NoAttention(Decoder):
    """No attention: the baseline. The encoder's summary at the first step or at every step; it has no weights.

    `summary=first`: it is the first state only (Sutskever, Vinyals, Le 2014). `summary=every`: every step's input and
    the readout see it too (Cho et al. 2014).
    """

    def __init__(
        self,
        readout: Readout,
        sizes: Sizes,
        *,
        size: int,
        layers: int = 1,
        first_state: str = "last",
        summary: str = "every",
        dropout: float = 0.0,
        fast: bool = True,
    ) -> None:
        if summary not in ("first", "every"):
            raise UserError(f"decoder.summary={summary} is not known. Give decoder.summary=first or =every.")
        if summary == "first" and first_state == "zero":
            raise UserError(
                "decoder.summary=first shows the source to the first state alone, and decoder.first_state=zero takes "
                "nothing from it: the model would never see a source. Give decoder.first_state=last or "
                "decoder.summary=every."
            )
        context_size = context_size_without_attention(summary, sizes.value)
        super().__init__(
            None,
            readout,
            sizes,
            context_size=context_size,
            fed_size=context_size,
            size=size,
            layers=layers,
            first_state=first_state,
            dropout=dropout,
            fast=fast,
        )
        if isinstance(readout, FromContext):
            raise UserError(
                "decoder=none has the same summary at every step, so decoder/readout=context would say the same word "
                "over and over. Give decoder/readout=maxout, tanh or state."
            )

    @property
    def has_fast_path(self) -> bool:
        return self.fast

    def remember(self, encoded: Encoded) -> Memory:
        summary = summary_of(encoded)[:, : self.context_size]
        slot = summary.unsqueeze(1).unsqueeze(1)  # one head, one slot: [B, 1, 1, C]
        return Memory(slot, slot, encoded.mask)

    def transition(self, embedded: Tensor, state: DecoderState, memory: Memory) -> tuple[Looked, DecoderState]:
        hypotheses = embedded.shape[0] // memory.mask.shape[0]
        context = memory.values[:, 0, 0].repeat_interleave(hypotheses, 0)
        hidden = self.update(torch.cat([embedded, context], -1), state.hidden)
        return Looked(hidden[:, -1], context, None, {}), DecoderState(hidden, state.feed, state.steps + 1, ())

    def forward(self, embedded: Tensor, state: DecoderState, memory: Memory) -> Decoded:
        """The whole target at once: nothing is fed back."""
        if not self.has_fast_path:
            return super().forward(embedded, state, memory)
        context = memory.values[:, 0].expand(-1, embedded.shape[1], -1)
        tops = self.sweep(torch.cat([embedded, context], -1), state.hidden)
        return Decoded(self.readout(tops, embedded, context), None, {})


def context_size_without_attention(summary: str, value_size: int) -> int:
    """Size of the encoder's summary as every step sees it: nothing where only the first state does."""
    return value_size if summary == "every" else 0
