"""The contract of context mechanisms, which `Seq2Seq` calls in place of its encoder, and functions that they share.

A mechanism works on the source side and has no memory: it gets the previous sentences together with each sentence.

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
    """Previous sentences, nearest last: embedded [B, K, C, E], mask [B, K, C] true where tokens are real.

    lengths [B, K] are on the CPU, where the host uses them for shapes without waiting for a GPU.
    """

    embedded: Tensor
    mask: Tensor
    lengths: Tensor


class Packed(NamedTuple):
    """The real tokens of several sentences in one row, without gaps: embedded [B, N, E] and mask [B, N].

    lengths [B] are on the CPU.
    """

    embedded: Tensor
    mask: Tensor
    lengths: Tensor


#: The recorded results of several attentions, call by call.
Calls = Sequence[Sequence[Attended]]
#: See `ContextMechanism.shares`.
Shares = tuple[Tensor | None, Tensor | None]


class ContextMechanism(nn.Module):
    """Encodes a source with its previous sentences.

    The result is an `Encoded` of the source. If the decoder sees context tokens too, their slots follow those of the
    source: slot j of a sentence with s tokens is token j if j < s, else context token j - s, oldest first. A sentence
    without context is encoded as without the mechanism.

    Attributes:
        only_slots: whether the mechanism only changes the slots that a decoder attends to.
    """

    only_slots = True

    def __init__(self, sentences: NotNegative = 0) -> None:
        """`sentences` is the largest number of previous sentences that the mechanism sees.

        Subclasses take the encoder that they will call, and their settings as keyword arguments.
        """
        super().__init__()
        self.sentences = sentences

    def forward(self, encoder: Encoder, embedded: Tensor, mask: Tensor, lengths: Tensor, before: Before) -> Encoded:
        """Encode embedded [B, S, E] with mask [B, S] and lengths [B] (on the CPU)."""
        raise TypeError(f"{type(self).__name__} does not define how it encodes")

    def shares(self, layers: Calls, attentions: Calls, mask: Tensor, before: Tensor) -> Shares:
        """The weights that `forward` used, from the recorded results of the encoder's `layers` and of `attentions`.

        Returns the weights [B, H, S, S] among the source's tokens and, if context tokens were merged into the slots,
        the share [B, S, X] of each context token in each slot. mask [B, S] and before [B, K, C] mark real tokens.
        """
        del attentions, mask, before
        return all_heads([calls[0] for calls in layers]), None


def pack(embedded: Tensor, mask: Tensor, lengths: Tensor) -> Packed:
    """Move the real tokens of embedded [B, N, E] to the start of each row, in order.

    `lengths` [B], on the CPU, are the numbers of real tokens in the mask [B, N].
    """
    longest = int(lengths.max()) if len(lengths) else 0
    order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)[:, :longest]
    packed = embedded.take_along_dim(order.unsqueeze(-1), 1)
    return Packed(packed, mask.take_along_dim(order, 1), lengths)


def rotate(values: Tensor, lengths: Tensor, first: Tensor, axis: int = 1) -> Tensor:
    """Rotate the first `lengths` [B] entries of each row so that they begin with entry `first` [B]."""
    positions = torch.arange(values.shape[axis], device=values.device)
    lengths, first = lengths.unsqueeze(1), first.unsqueeze(1)
    order = torch.where(positions < lengths, (positions + first) % lengths.clamp(min=1), positions)
    shape = [1] * values.ndim
    shape[0], shape[axis] = order.shape
    return values.take_along_dim(order.reshape(shape), axis)
