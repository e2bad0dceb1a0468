"""An encoder on top of another one, such as self-attention over the states of a recurrent encoder."""

from collections.abc import Callable

from torch import Tensor

from nmt.model.contract import Encoded, Encoder


class Stacked(Encoder):
    """Reads the source with `first`, and the values that it leaves with `then`, which leaves the memory."""

    def __init__(self, first: Callable[[int], Encoder], then: Callable[[int], Encoder], embedding_size: int) -> None:
        """Makes both encoders.

        Args:
            first: makes an encoder for embeddings of a size.
            then: makes one for the values of `first`.
            embedding_size: E.
        """
        super().__init__()
        self.first = first(embedding_size)
        self.then = then(self.first.size)
        self.size, self.directions = self.then.size, self.then.directions
        below = max((int(name.split(".")[0]) for name in self.first.heads), default=0)
        above = (name.split(".") for name in self.then.heads)
        self.heads = (*self.first.heads, *(f"{int(layer) + below}.{head}" for layer, head in above))
        known = [part.learned_positions for part in (self.first, self.then) if part.learned_positions is not None]
        self.learned_positions = min(known, default=None)

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        states: Encoded = self.first(embedded, mask, lengths)
        encoded: Encoded = self.then(states.values, mask, lengths)
        return encoded
