"""An encoder on top of another one, such as self-attention over the states of a recurrent encoder."""

from collections.abc import Callable

from torch import Tensor

from nmt.model.contract import Encoded, Encoder


class Stacked(Encoder):
    """Encode the source with `first`, and the values of `first` with `then`."""

    def __init__(self, first: Callable[[int], Encoder], then: Callable[[int], Encoder], embedding_size: int) -> None:
        """Make both encoders.

        Args:
            first: makes the lower encoder for inputs of a given size.
            then: makes the upper encoder for inputs of a given size.
            embedding_size: the size E of the inputs of `first`.
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
