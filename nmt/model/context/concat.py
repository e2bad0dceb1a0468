"""Previous sentences as part of the source: the usual baseline in papers on document context."""

import torch
from torch import Tensor

from nmt.model.context.mechanism import Before, Calls, ContextMechanism, Shares, pack, rotate
from nmt.model.contract import Encoded, Encoder
from nmt.system.limits import NotNegative


class Concatenation(ContextMechanism):
    """The encoder reads previous sentences and source as one sequence; the decoder attends to the whole sequence.

    Tiedemann and Scherrer 2017, "Neural machine translation with extended context", section 2 (extended source). The
    separator is the end-of-sentence token.
    """

    only_slots = False

    def __init__(self, encoder: Encoder, *, sentences: NotNegative = 0) -> None:
        """`sentences` is the largest number of previous sentences; any `encoder` is supported."""
        del encoder
        super().__init__(sentences)

    def forward(self, encoder: Encoder, embedded: Tensor, mask: Tensor, lengths: Tensor, before: Before) -> Encoded:
        joined = pack(
            torch.cat((before.embedded.flatten(1, 2), embedded), 1),
            torch.cat((before.mask.flatten(1), mask), 1),
            before.lengths.sum(1) + lengths,
        )
        encoded: Encoded = encoder(joined.embedded, joined.mask, joined.lengths)
        # The source comes first, so that slots and columns of weights have the positions of the source.
        first, last = before.mask.sum((1, 2)), joined.mask.sum(1)
        return encoded._replace(
            values=rotate(encoded.values, last, first),
            keys=None if encoded.keys is None else rotate(encoded.keys, last, first),
        )

    def shares(self, layers: Calls, attentions: Calls, mask: Tensor, before: Tensor) -> Shares:
        weights, _ = super().shares(layers, attentions, mask, before)
        if weights is None:
            return None, None
        first, count = before.sum((1, 2)), mask.shape[1]
        lengths = first + mask.sum(1)
        return rotate(rotate(weights, lengths, first, 2), lengths, first, 3)[:, :, :count, :count], None
