"""Batches: padded tensors of sentence pairs, the input of a model.

Shapes: B pairs, S source tokens with EOS, T target tokens with one special, K previous sentences of C tokens.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.system.graphs import moved
from nmt.text.tokenizer import BOS, EOS, PAD

Integers = npt.NDArray[np.int64]

_NO_CONTEXT = torch.zeros(0, 0, 0, dtype=torch.int64)
_NO_PLACES = torch.zeros(0, dtype=torch.int64)


class Batch(NamedTuple):
    """Padded pairs. Masks are true where a token is real.

    Attributes:
        source: [B, S] int64, every sentence ends in EOS.
        source_mask: [B, S] bool.
        source_lengths: [B] int64 on the CPU, EOS included.
        target_in: [B, T] int64: BOS y1 y2 ...
        target_out: [B, T] int64: y1 y2 ... EOS.
        target_mask: [B, T] bool; T is 0 without targets.
        rows: [B] int64 on the CPU, row numbers in the split.
        links: [B, T, S] float32, the share of each source token in the links of a target token, for a training that
            is guided by word links (see `nmt.data.guide`); otherwise [B, 0, 0].
        context: [B, K, C] int64 on the CPU, the sentences before the source in its document (see `context_tensor`);
            without any, a tensor without elements.
        target_places: [N] int64, on a GPU the positions of the N real target tokens in the flat target [B * T], which
            saves counting them there; elsewhere, a tensor without elements. In batches of a fixed shape and from
            `with_every_place`, all positions: the loss ignores padding by `target_mask`.
    """

    source: Tensor
    source_mask: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    rows: Tensor
    links: Tensor
    context: Tensor = _NO_CONTEXT
    target_places: Tensor = _NO_PLACES

    @property
    def real_targets(self) -> Tensor:
        """The real target tokens, for `nmt.model.real_steps`: `target_places` unless empty, otherwise the mask."""
        return self.target_places if len(self.target_places) else self.target_mask

    @property
    def has_every_place(self) -> bool:
        """Whether `target_places` are all positions of the target, padding included."""
        return len(self.target_places) == self.target_mask.numel() > 0

    def with_every_place(self) -> "Batch":
        """A copy with all target positions: products with padding have fewer shapes, and the loss ignores padding."""
        return self._replace(target_places=torch.arange(self.target_mask.numel(), device=self.target_mask.device))

    def padded(self, values: Tensor) -> Tensor:
        """The values [N] of `real_targets` as [B, T], 0 at padding."""
        if self.has_every_place:
            return values.view(self.target_mask.shape).masked_fill(~self.target_mask, 0)
        return values.new_zeros(self.target_mask.shape).masked_scatter(self.target_mask, values)

    def halves(self) -> "tuple[Batch, Batch]":
        """Two batches of half of the pairs each, padded as before; if odd, the first is smaller. For CPU batches."""
        middle = len(self.rows) // 2

        def part(rows: slice) -> "Batch":
            return Batch(*(tensor[rows] if len(tensor) else tensor for tensor in self))

        return part(slice(None, middle)), part(slice(middle, None))

    def twice(self) -> "Batch":
        """A batch of all pairs, followed by all pairs again."""
        places = torch.cat([self.target_places, self.target_places + self.target_mask.numel()])
        return Batch(*(torch.cat([tensor, tensor]) for tensor in self))._replace(target_places=places)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`; lengths, contexts and row numbers stay on the CPU, where packing needs them."""
        device = torch.device(device)
        places = self.target_places
        if device.type == "cuda" and self.target_mask.device.type == "cpu":
            places = self.target_mask.flatten().nonzero().squeeze(1)
        names = ("source", "source_mask", "target_in", "target_out", "target_mask", "links")
        return self._replace(
            **{name: moved(getattr(self, name), device) for name in names},
            target_places=moved(places, device) if device.type == "cuda" else _NO_PLACES,
        )


def make_batch(
    source_tokens: Sequence[Sequence[int]],
    target_tokens: Sequence[Sequence[int]] | None = None,
    rows: Sequence[int] | Integers | None = None,
) -> Batch:
    """Pad lists of token ids (without specials) and append EOS to the sources.

    `rows` defaults to 0, 1, 2 ...; without targets the target side is [B, 0].
    """
    source, source_lengths = flatten(source_tokens)
    target, target_lengths = (None, None) if target_tokens is None else flatten(target_tokens)
    numbers = np.arange(len(source_tokens)) if rows is None else np.asarray(rows, dtype=np.int64)
    return pad(source, source_lengths, target, target_lengths, numbers)


def flatten(lists: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int32], Integers]:
    """Concatenate the lists; returns all ids, and the length of each list."""
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    values = np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int32, count=int(lengths.sum()))
    return values, lengths


def pad(
    source: npt.NDArray[np.int32],
    source_lengths: Integers,
    target: npt.NDArray[np.int32] | None,
    target_lengths: Integers | None,
    rows: Integers,
) -> Batch:
    """A batch from flat ids and lengths."""
    padded, source_mask = _grid(source, source_lengths)
    padded[np.arange(len(rows)), source_lengths] = EOS
    if target is None or target_lengths is None:
        target_in = target_out = np.zeros((len(rows), 0), dtype=np.int64)
        target_mask = np.zeros((len(rows), 0), dtype=bool)
    else:
        target_out, target_mask = _grid(target, target_lengths)
        target_in = np.empty_like(target_out)
        target_in[:, 0] = BOS
        target_in[:, 1:] = target_out[:, :-1]
        target_out[np.arange(len(rows)), target_lengths] = EOS
    return Batch(
        source=torch.from_numpy(padded),
        source_mask=torch.from_numpy(source_mask),
        source_lengths=torch.from_numpy(source_lengths + 1),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out),
        target_mask=torch.from_numpy(target_mask),
        rows=torch.from_numpy(np.ascontiguousarray(rows, dtype=np.int64)),
        links=torch.zeros(len(rows), 0, 0),
    )


def _grid(values: npt.NDArray[np.int32], lengths: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Ids as [B, longest + 1], padded with PAD, and their mask, which leaves room for EOS in each row."""
    positions = np.arange(int(lengths.max(initial=0)) + 1)
    padded = np.full((len(lengths), len(positions)), PAD, dtype=np.int64)
    padded[positions < lengths[:, None]] = values
    return padded, positions <= lengths[:, None]
