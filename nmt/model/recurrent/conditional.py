"""The conditional GRU of Nematus: two transitions with the attention between them."""

import torch
from torch import Tensor, nn

from nmt.kernels.attentive_gru import Inner
from nmt.kernels.gru import gru
from nmt.model.contract import Asks, Decoded, DecoderParts
from nmt.model.recurrent.attentive import AttentiveDecoder, RecurrentMemory
from nmt.model.recurrent.first_state import FirstStateKind
from nmt.model.recurrent.readouts import product_type
from nmt.model.recurrent.recurrent_decoder import RecurrentState, Seen, layer_parameters
from nmt.system.limits import Fraction, Layers, Positive


class Conditional(AttentiveDecoder):
    """s'_t = GRU_1(s_{t-1}, y_{t-1}); c_t = attend(s'_t); s_t = GRU_2(s'_t, c_t).

    Sennrich et al. 2017 (Nematus), section 2. With several layers, the first transition is the stack of layers, and
    the second transition updates the top layer's state. With `multi_step`, each layer of the stack attends with its
    state, and the next layer reads the context.
    """

    PAPER_FIRST_STATE = "mean"
    asks = Asks("s'_t", "the state between the two transitions of step t", 1)

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 1,
        first_state: FirstStateKind = "auto",
        multi_step: bool = False,
        dropout: Fraction = 0.0,
    ) -> None:
        super().__init__(parts, "nothing", size, layers, first_state, dropout, multi_step)
        self.second = nn.GRU(self.context_size, size, batch_first=True)

    def context_weight(self, fed: Tensor) -> Tensor:
        """Contexts go into the second transition."""
        return product_type(layer_parameters(self.second)[0])

    def transition(
        self, gates: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool
    ) -> tuple[Tensor, Tensor, Seen]:
        between, hidden, lower = self.update_attending(gates, state, memory, weights)
        seen = self.attend(between, state, memory, weights, lower)
        assert seen.gates is not None
        _, weight_hh, bias_ih, bias_hh = layer_parameters(self.second)
        top = gru(seen.gates + bias_ih, between, weight_hh, bias_hh)
        return top, torch.cat([hidden[:, :-1], top.unsqueeze(1)], 1), seen

    def forward(
        self, embedded: Tensor, state: RecurrentState, memory: RecurrentMemory, *, weights: bool = True
    ) -> Decoded:
        """Decode the whole target, with the fused kernel if it supports this attention and these layers."""
        if not self.is_fused(memory):
            return super().forward(embedded, state, memory, weights=weights)
        _, weight_hh, _, bias_hh = layer_parameters(self.rnn)
        _, second_hh, input_bias, second_bias = layer_parameters(self.second)
        inner = Inner(weight_hh, bias_hh, input_bias)
        states, contexts, steps_weights = self.recur(
            embedded, state.hidden[:, 0], memory, (second_hh, second_bias), inner
        )
        return Decoded(self.readout(states, embedded, contexts), steps_weights.unsqueeze(1) if weights else None)
