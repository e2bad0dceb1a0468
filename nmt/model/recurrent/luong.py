"""The wiring of Luong, Pham and Manning: update, then attend with the current state."""

from torch import Tensor

from nmt.kernels import input_feeding_gru, is_fast
from nmt.model.contract import Asks, Decoded, DecoderParts
from nmt.model.recurrent.attentive import AttentiveDecoder, RecurrentMemory
from nmt.model.recurrent.first_state import FirstStateKind
from nmt.model.recurrent.readouts import FromState, Tanh
from nmt.model.recurrent.recurrent_decoder import RecurrentState, Seen, layer_parameters, linear
from nmt.system.errors import UserError
from nmt.system.limits import Fraction, Layers, Positive


class Luong(AttentiveDecoder):
    """h_t = GRU(h_{t-1}, [y_{t-1}; htilde_{t-1}]); c_t = attend(h_t).

    Luong, Pham, Manning 2015, sections 3 and 3.3. With `input_feeding`, htilde_t, the readout's features, is part of
    the next step's input. With `multi_step`, each layer attends with its state, and the next layer reads the context.
    """

    PAPER_FIRST_STATE = "last"
    asks = Asks("s_t", "the state of step t: the decoder updates first, then attends", 1)

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 1,
        first_state: FirstStateKind = "auto",
        input_feeding: bool = True,
        multi_step: bool = False,
        dropout: Fraction = 0.0,
    ) -> None:
        fed = "features" if input_feeding else "nothing"
        super().__init__(parts, fed, size, layers, first_state, dropout, multi_step)
        self.input_feeding = input_feeding
        self.carries_contexts = input_feeding or multi_step

    def check_parts(self) -> None:
        super().check_parts()
        if isinstance(self.readout, FromState):
            raise UserError(
                "decoder=luong uses its context only in the readout, so decoder/readout=state would leave the "
                "attention unused. Give decoder/readout=tanh, maxout or context, or decoder=bahdanau."
            )

    @property
    def at_once(self) -> bool:
        return not self.input_feeding and not self.attention.coverage and is_fast()

    @property
    def has_fast_path(self) -> bool:
        """Whether all steps run at once, or with input feeding in the fused recurrence, which needs a tanh readout."""
        return self.at_once or (
            self.input_feeding and isinstance(self.readout, Tanh) and self.attends_plainly and is_fast()
        )

    def context_weight(self, fed: Tensor) -> None:
        """Contexts do not go into the recurrence."""

    def transition(
        self, gates: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool
    ) -> tuple[Tensor, Tensor, Seen]:
        if self.input_feeding:
            gates = gates + linear(state.feed, memory.products.fed)
        top, hidden, lower = self.update_attending(gates, state, memory, weights)
        return top, hidden, self.attend(top, state, memory, weights, lower)

    def forward(
        self, embedded: Tensor, state: RecurrentState, memory: RecurrentMemory, *, weights: bool = True
    ) -> Decoded:
        """Decode the whole target, with the fused kernel if it supports this attention, these layers and readout."""
        if self.at_once or not self.is_fused(memory):
            return super().forward(embedded, state, memory, weights=weights)
        slots, readout = memory.attention, memory.products.readout
        assert readout.context is not None
        weight_ih, weight_hh, _, bias_hh = layer_parameters(self.rnn)
        features, steps_weights = input_feeding_gru.fast_input_feeding_gru(
            input_feeding_gru.WordShares(*self.of_words(embedded, memory.products)),
            input_feeding_gru.Start(state.hidden[:, 0], state.feed),
            self.projected(slots, readout.context(slots.values[:, 0])),
            input_feeding_gru.FeedingParameters(
                self.query(), weight_hh, bias_hh, weight_ih[:, self.input_sizes[0] :], self.readout.columns()["state"]
            ),
        )
        return Decoded(features, steps_weights.unsqueeze(1) if weights else None)
