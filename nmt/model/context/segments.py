"""States of previous sentences as additional memory, without gradient: Transformer-XL's recurrence over N sentences.

Shapes: B sentences, S source tokens, K previous sentences of C tokens, X context tokens, V value.
"""

import torch
from torch import Tensor

from nmt.model.context.mechanism import Before, Calls, ContextMechanism, Packed, Shares, pack, rotate
from nmt.model.contract import Encoded, Encoder
from nmt.model.layered import all_heads
from nmt.system.errors import UserError
from nmt.system.graphs import moved
from nmt.system.limits import NotNegative


class Segments(ContextMechanism):
    """The previous sentences are the segment before the source; no gradient flows into it.

    Dai et al. 2019, "Transformer-XL: attentive language models beyond a fixed-length context", section 3.2: keys and
    values of a layer come from [SG(h of the previous segment); h], queries from h. The segment is encoded again with
    each source, not kept from the last batch, so that batches may come in any order; the segment itself has no context.

    With encoders without self-attention, the segment's states are additional slots for the decoder's attention.
    """

    def __init__(self, encoder: Encoder, *, sentences: NotNegative = 0) -> None:
        """`sentences` is the largest number of previous sentences.

        Raises:
            UserError: the encoder has self-attention with absolute positions, which two segments would share.
        """
        super().__init__(sentences)
        if encoder.heads and not encoder.recalls:
            raise UserError(
                "context=segments needs self-attention that knows distances only: two segments would share absolute "
                "positions. Give encoder/positions=relative and "
                "attention/window@encoder.self_attention.window=global; or context=concat, for encoder=stacked too."
            )

    def forward(self, encoder: Encoder, embedded: Tensor, mask: Tensor, lengths: Tensor, before: Before) -> Encoded:
        of_segment = before.lengths.sum(1)
        segment = pack(before.embedded.flatten(1, 2).detach(), before.mask.flatten(1), of_segment)
        if segment.mask.shape[1] and encoder.recalls:
            # Right-align the segment, so that distances to it do not depend on the longest segment of the batch.
            words = segment.mask.sum(1)
            longest = torch.full_like(words, segment.mask.shape[1])
            past, real = (rotate(part, longest, words) for part in (segment.embedded, segment.mask))
            return encoder.recall(embedded, mask, past, real)
        encoded: Encoded = encoder(embedded, mask, lengths)
        if not segment.mask.shape[1]:
            return encoded
        with torch.no_grad():
            values, keys = _states(encoder, segment)
        slots = torch.cat((encoded.mask, segment.mask), 1)
        counts = of_segment + lengths
        joined = pack(torch.cat((encoded.values, values.to(encoded.values.dtype)), 1), slots, counts)
        if encoded.keys is not None and keys is not None:
            joined_keys = torch.cat((encoded.keys, keys.to(encoded.keys.dtype)), 1)
            encoded = encoded._replace(keys=pack(joined_keys, slots, counts).embedded)
        return encoded._replace(values=joined.embedded, mask=joined.mask)

    def shares(self, layers: Calls, attentions: Calls, mask: Tensor, before: Tensor) -> Shares:
        weights = all_heads([calls[-1] for calls in layers])  # the last call: earlier ones encode the segment
        lengths = before.sum((1, 2))
        longest = int(lengths.max())
        if weights is None or not longest:
            return weights, None
        share = weights[..., :longest].mean(1)
        return weights[..., longest:], rotate(share, torch.full_like(lengths, longest), longest - lengths, 2)


def _states(encoder: Encoder, segment: Packed) -> tuple[Tensor, Tensor | None]:
    """The values [B, X, V] of a segment, and its keys or None; zero in rows without tokens."""
    filled = segment.lengths.nonzero().squeeze(1)
    rows = moved(filled, segment.mask.device)
    encoded: Encoded = encoder(
        segment.embedded.index_select(0, rows), segment.mask.index_select(0, rows), segment.lengths[filled]
    )

    def spread(states: Tensor) -> Tensor:
        return states.new_zeros(len(segment.mask), *states.shape[1:]).index_copy(0, rows, states)

    return spread(encoded.values), None if encoded.keys is None else spread(encoded.keys)
