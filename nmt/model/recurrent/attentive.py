"""What the wirings with attention share: the memory, and asking it at a step or at all steps of a target."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.attention import Attention, Choices, Memory
from nmt.errors import UserError
from nmt.model.contract import Encoded
from nmt.model.recurrent.decoder import Products, RecurrentDecoder, RecurrentState, Seen, linear
from nmt.model.recurrent.readouts import FromState


class RecurrentMemory(NamedTuple):
    """The attention's memory of B sentences; `folded` if its values [B, 1, S, R + U] are multiplied already.

    R is 3D where contexts go into the recurrence and U the number of units where the readout sees them, else 0.
    """

    products: Products
    attention: Memory
    folded: bool = False

    def select(self, rows: Tensor) -> "RecurrentMemory":
        """The sentences `rows` [B'] of the batch."""
        return self._replace(attention=self.attention.select(rows))


class AttentiveDecoder(RecurrentDecoder[RecurrentMemory]):
    """A recurrent decoder with one attention to the source."""

    def check_parts(self) -> None:
        if self.attention.read.enumerates and isinstance(self.readout, FromState):
            raise UserError(
                "attention.read.objective=enumerate lets the readout choose among slots, which decoder/readout=state "
                "does not see. Give decoder/readout=maxout, tanh or context, or attention.read.objective=sampled."
            )

    def make_attention(self, attention: Callable[..., Attention], query_size: int, value_size: int) -> None:
        self.attention = attention(query_size=query_size, value_size=value_size)
        self.heads = tuple(str(head) for head in range(self.attention.heads))
        self.max_positions = self.attention.max_positions

    def pin(self, slots: Sequence[int | Sequence[int] | None], device: torch.device) -> None:
        self.attention.pin(slots, device)

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[RecurrentMemory, RecurrentState]:
        products = self.products()
        memory = self.attention.remember(encoded.values, encoded.mask, encoded.keys)
        state = self.first(encoded, tuple(part.flatten(0, 1) for part in self.attention.start(memory)))
        # Values that several heads project are no longer what the products multiply.
        folded = searching and self.fast and self.attention.out is None
        if folded:
            shares = [share for share in self.shares(memory.values, products) if share is not None]
            memory = memory._replace(values=torch.cat(shares, -1))
        return RecurrentMemory(products, memory, folded), state

    def shares(self, contexts: Tensor, products: Products, folded: bool = False) -> tuple[Tensor | None, Tensor | None]:
        """What contexts [..., C], or [..., R + U] that are folded, add to the gates and to the readout's units."""
        context_weight, readout = products.context, products.readout.context
        if folded:
            recurrent = 0 if context_weight is None else context_weight.shape[0]
            both = contexts.split([recurrent, contexts.shape[-1] - recurrent], -1)
            return both[0] if recurrent else None, both[1] if readout is not None else None
        gates = None if context_weight is None else linear(contexts, context_weight)
        return gates, None if readout is None else readout(contexts)

    def attend(self, queries: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool) -> Seen:
        """Ask with the queries [N, D] of one step, N = B * K, or [B, T, D] of whole targets."""
        sentences, rows = memory.attention.mask.shape[0], queries.shape[:-1]
        steps = state.steps if queries.ndim == 2 else state.steps.unsqueeze(1) + _positions(queries)
        attended = self.attention(
            queries.reshape(sentences, -1, queries.shape[-1]),
            memory.attention,
            steps.reshape(sentences, -1),
            tuple(part.unflatten(0, (sentences, -1)) for part in state.attention),
            weights=weights,
        )
        gates, units = self.shares(attended.context.reshape(*rows, -1), memory.products, memory.folded)
        choices = attended.choices
        if choices is not None:
            by_slot = self.shares(choices.contexts, memory.products, memory.folded)[1]
            assert by_slot is not None
            choices = Choices(*(part.reshape(*rows, *part.shape[2:]) for part in (by_slot, choices.log_weights)))
        by_step = attended.weights
        if by_step is not None and queries.ndim == 2:
            by_step = by_step.transpose(1, 2).flatten(0, 1)
        return Seen(
            gates,
            units,
            by_step,
            {name: term.reshape(rows) for name, term in attended.terms.items()},
            tuple(part.flatten(0, 1) for part in attended.state),
            choices,
        )


def _positions(queries: Tensor) -> Tensor:
    """0, 1, ... for the steps of queries [B, T, D]."""
    return torch.arange(queries.shape[1], device=queries.device)
