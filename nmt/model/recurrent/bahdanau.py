"""The wiring of Bahdanau, Cho and Bengio: attend with the previous state, then update."""

import torch
from torch import Tensor

from nmt.model.contract import Asks, Decoded, DecoderParts
from nmt.model.recurrent.attentive import AttentiveDecoder, RecurrentMemory
from nmt.model.recurrent.first_state import FirstStateKind
from nmt.model.recurrent.readouts import product_type
from nmt.model.recurrent.recurrent_decoder import RecurrentState, Seen, layer_parameters, linear
from nmt.system.errors import UserError
from nmt.system.limits import Fraction, Layers, Positive


class Bahdanau(AttentiveDecoder):
    """c_t = attend(s_{t-1}); s_t = GRU(s_{t-1}, [y_{t-1}; c_t]).

    Bahdanau, Cho, Bengio 2015, section 3.1 (readout from s_t, eq. 4) and appendix A.2. With `previous_state`, the
    readout sees s_{t-1}, as in the appendix. s_{t-1} and c_t depend on words up to y_{t-2} only, so the readout must
    see s_t or y_{t-1} itself; any other readout is an error.

    With several layers, s_{t-1} is the top layer's state, and c_t goes into the first layer. With `multi_step`, each
    layer attends with its previous state and reads its own context; the readout sees the top layer's context.
    """

    PAPER_FIRST_STATE = "backward"
    asks = Asks("s_(t-1)", "the state before step t: the decoder attends first, then updates to s_t", 2)

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 1,
        first_state: FirstStateKind = "auto",
        previous_state: bool = False,
        multi_step: bool = False,
        dropout: Fraction = 0.0,
    ) -> None:
        """Settings as in `AttentiveDecoder`, and `previous_state`.

        Raises:
            UserError: no word would depend on the one before it.
        """
        super().__init__(parts, "context", size, layers, first_state, dropout, multi_step)
        sees = self.readout.parts()
        if sees.word is None and (previous_state or sees.state is None):
            cure = "decoder=luong or conditional" if sees.state is None else "decoder.previous_state=false"
            raise UserError(
                "decoder=bahdanau attends before it reads the previous word. With this readout "
                f"{'and decoder.previous_state=true ' if previous_state else ''}no word would depend on the one "
                f"before it. Give {cure}, or a readout that sees the word: decoder/readout=maxout, or "
                f"decoder/readout=tanh decoder.readout.word=true."
            )
        self.previous_state = previous_state
        if previous_state:
            self.readout.equation = self.readout.equation.replace("s_t", "s_(t-1)")

    def context_weight(self, fed: Tensor) -> Tensor:
        """The top layer's context goes into the first layer, or with multi-step attention into the top layer."""
        return product_type(self.upper[-1].weight) if self.multi_step else fed

    def transition(
        self, gates: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool
    ) -> tuple[Tensor, Tensor, Seen]:
        before, count = state.hidden[:, -1], len(self.lower)
        lower = [self.ask(layer, state.hidden[:, layer], state, memory, weights) for layer in range(count)]
        seen = self.attend(before, state, memory, weights, lower)
        assert seen.gates is not None
        # One entry per layer from the first; without multi-step attention only one context, for the first layer.
        matrices = (memory.products.fed, *memory.products.upper)[:count]
        into = [linear(attended.context[:, 0], matrix) for attended, matrix in zip(lower, matrices, strict=True)]
        into.append(seen.gates)
        above = (lambda layer, _: into[layer + 1]) if lower else None
        top, hidden = self.update(gates + into[0], state.hidden, above)
        return before if self.previous_state else top, hidden, seen

    def forward(
        self, embedded: Tensor, state: RecurrentState, memory: RecurrentMemory, *, weights: bool = True
    ) -> Decoded:
        """Decode the whole target, with the fused kernel if it supports this attention and these layers."""
        if not self.is_fused(memory):
            return super().forward(embedded, state, memory, weights=weights)
        first, (_, weight_hh, _, bias_hh) = state.hidden[:, 0], layer_parameters(self.rnn)
        states, contexts, steps_weights = self.recur(embedded, first, memory, (weight_hh, bias_hh))
        tops = torch.cat([first.unsqueeze(1), states[:, :-1]], 1) if self.previous_state else states
        return Decoded(self.readout(tops, embedded, contexts), steps_weights.unsqueeze(1) if weights else None)
