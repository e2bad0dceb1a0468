"""The baseline decoder without attention, which sees the source as a single vector."""

from typing import Literal, NamedTuple

from torch import Tensor

from nmt.kernels import is_fast
from nmt.model.contract import DecoderParts, Encoded
from nmt.model.recurrent.first_state import FirstStateKind
from nmt.model.recurrent.readouts import FromContext
from nmt.model.recurrent.recurrent_decoder import Products, RecurrentDecoder, RecurrentState, Seen, linear
from nmt.system.errors import UserError
from nmt.system.limits import Fraction, Layers, Positive


class Summary(NamedTuple):
    """The products of B sentences' summaries for the gates [B, 3D] and for the readout's units [B, U]."""

    products: Products
    gates: Tensor
    units: Tensor | None

    def select(self, rows: Tensor) -> "Summary":
        """The sentences `rows` [B'] of the batch."""
        return self._replace(gates=self.gates[rows], units=None if self.units is None else self.units[rows])


class NoAttention(RecurrentDecoder[Summary]):
    """A decoder that sees a summary of the source: the encoder's last state, or the mean of its values without one.

    `summary=first`: the summary is the first state only (Sutskever, Vinyals, Le 2014). `summary=every`: it is also part
    of every step's input and of the readout's input (Cho et al. 2014). There are no attention weights.
    """

    PAPER_FIRST_STATE = "last"

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 1,
        first_state: FirstStateKind = "auto",
        summary: Literal["first", "every"] = "every",
        dropout: Fraction = 0.0,
    ) -> None:
        """Settings as in `RecurrentDecoder`, and `summary`; no attention is made.

        Raises:
            UserError: the model would never see a source, or would predict the same word at every step.
        """
        if summary == "first" and first_state == "zero":
            raise UserError(
                "decoder.summary=first shows the source to the first state alone, and decoder.first_state=zero takes "
                "nothing from it: the model would never see a source. Give decoder.first_state=last or "
                "decoder.summary=every."
            )
        every = summary == "every"
        super().__init__(parts, "context", size, layers, first_state, dropout, every)

    def check_parts(self) -> None:
        if isinstance(self.readout, FromContext):
            raise UserError(
                "decoder=none has the same summary at every step, so decoder/readout=context would predict the same "
                "word at each of them. Give decoder/readout=maxout, tanh or state."
            )

    @property
    def at_once(self) -> bool:
        return is_fast()

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[Summary, RecurrentState]:
        products = self.products()
        summary = encoded.mean() if encoded.last is None else encoded.last[:, -1]
        context = summary[:, : self.context_size]
        readout = products.readout.context
        units = None if readout is None else readout(context)
        return Summary(products, linear(context, products.fed), units), self.first(encoded)

    def transition(
        self, gates: Tensor, state: RecurrentState, memory: Summary, weights: bool
    ) -> tuple[Tensor, Tensor, Seen]:
        def spread(share: Tensor) -> Tensor:
            """[B, ...] -> [N, ...] at one step, [B, 1, ...] for whole targets."""
            if gates.ndim == 3:
                return share.unsqueeze(1)
            return share.repeat_interleave(len(gates) // len(share), 0)

        top, hidden = self.update(gates + spread(memory.gates), state.hidden)
        return top, hidden, Seen(None, None if memory.units is None else spread(memory.units))
