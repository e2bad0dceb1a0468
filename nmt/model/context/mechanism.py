"""The contract of context mechanisms, which stand between `Seq2Seq` and its encoder, and what several of them share.

A mechanism is of the source side and keeps nothing: it gets the previous sentences with each sentence.

Shapes: B sentences, S source tokens, K previous sentences of C tokens, X context tokens in all, E embedding, V value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attended
from nmt.model.contract import Encoded, Encoder
from nmt.model.layered import all_heads
from nmt.system.limits import NotNegative


class Before(NamedTuple):
    """Previous sentences, the nearest one last: embedded [B, K, C, E], mask [B, K, C] true where tokens are real.

    lengths [B, K] are on the CPU: the host chooses shapes by them, and need not wait for a GPU.
    """

    embedded: Tensor
    mask: Tensor
    lengths: Tensor


class Packed(NamedTuple):
    """The real tokens of several stretches in one row, without gaps: embedded [B, N, E] and mask [B, N].

    lengths [B] are on the CPU.
    """

    embedded: Tensor
    mask: Tensor
    lengths: Tensor


#: What was observed of several attentions, call by call.
Calls = Sequence[Sequence[Attended]]
#: See `ContextMechanism.shares`.
Shares = tuple[Tensor | None, Tensor | None]


class ContextMechanism(nn.Module):
    """Encodes a source with its previous sentences.

    What it leaves behind is an `Encoded` of the source. Where the decoder sees context tokens too, they are slots after
    the source's own: slot j of a sentence with s tokens is its token j if j < s, else context token j - s, the oldest
    first. A sentence without context is encoded as without the mechanism.

    Attributes:
        only_slots: whether it changes nothing but the slots that a decoder attends to.
    """

    only_slots = True

    def __init__(self, sentences: NotNegative = 0) -> None:
        """`sentences` is the largest number of previous sentences that it sees.

        A mechanism is made with the encoder that it will call, and its own settings by name.
        """
        super().__init__()
        self.sentences = sentences

    def forward(self, encoder: Encoder, embedded: Tensor, mask: Tensor, lengths: Tensor, before: Before) -> Encoded:
        """Encode embedded [B, S, E] with mask [B, S] and lengths [B] (on the CPU)."""
        raise TypeError(f"{type(self).__name__} does not define how it encodes")

    def shares(self, layers: Calls, attentions: Calls, mask: Tensor, before: Tensor) -> Shares:
        """What `forward` weighed, from what was observed of the encoder's self-attentions and of its `attentions`.

        Returns the weights among the source's own tokens [B, H, S, S] and, where the context tokens were merged into
        the slots, the share of each in each slot [B, S, X]. mask [B, S] and before [B, K, C] are those of the tokens.
        """
        del attentions, mask, before
        return all_heads([calls[0] for calls in layers]), None


def pack(embedded: Tensor, mask: Tensor, lengths: Tensor) -> Packed:
    """The real tokens of embedded [B, N, E], in their order, from the start of each row.

    `lengths` [B], on the CPU, are those of the mask [B, N].
    """
    longest = int(lengths.max()) if len(lengths) else 0
    order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)[:, :longest]
    packed = embedded.take_along_dim(order.unsqueeze(-1), 1)
    return Packed(packed, mask.take_along_dim(order, 1), lengths)


def rotate(values: Tensor, lengths: Tensor, first: Tensor, axis: int = 1) -> Tensor:
    """Rows whose first `lengths` [B] entries begin with entry `first` [B] and end with the one before it."""
    positions = torch.arange(values.shape[axis], device=values.device)
    lengths, first = lengths.unsqueeze(1), first.unsqueeze(1)
    order = torch.where(positions < lengths, (positions + first) % lengths.clamp(min=1), positions)
    shape = [1] * values.ndim
    shape[0], shape[axis] = order.shape
    return values.take_along_dim(order.reshape(shape), axis)
