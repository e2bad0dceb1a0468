"""Pins: the slots that a person lets single steps look at, for each sentence of a batch; part of the memory."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.attention.windows import Pins, View


class PinnedSteps(NamedTuple):
    """The pins of B sentences, for N steps and a last one that stands for all later steps.

    named [B, N + 1, S]: true for the slots of a pinned step. free [B, N + 1]: true where a step is not pinned.
    """

    named: Tensor
    free: Tensor

    @classmethod
    def of(cls, pins: Sequence[Pins], mask: Tensor) -> "PinnedSteps":
        """The pins of each sentence of a memory whose real slots are `mask` [B, S]; others count for nothing."""
        steps = 1 + max((step for of_row in pins for step in of_row), default=-1)
        named = torch.zeros(len(pins), steps + 1, mask.shape[1], dtype=torch.bool)
        free = torch.ones(named.shape[:2], dtype=torch.bool)
        for row, of_row in enumerate(pins):
            for step, slots in of_row.items():
                free[row, step] = False
                named[row, step, [slot for slot in slots if 0 <= slot < mask.shape[1]]] = True
        return cls(named.to(mask.device) & mask.unsqueeze(1), free.to(mask.device))

    def select(self, rows: Tensor) -> "PinnedSteps":
        """The sentences `rows` [B'] of the batch."""
        return PinnedSteps(*(part.index_select(0, rows) for part in self))

    def restrict(self, view: View, steps: Tensor) -> View:
        """The view of queries [B, H, T, D] at steps [B, T]; a pinned step sees its slots, whatever the window shows."""
        columns = steps.clamp(max=self.free.shape[1] - 1)
        free = self.free.gather(1, columns)[:, None, :, None]
        named = self.named.take_along_dim(columns.unsqueeze(-1), 1).unsqueeze(1)
        return View(
            torch.where(free, view.visible, named),
            None if view.bias is None else view.bias.where(free, 0),
            None if view.factor is None else view.factor.where(free, 1),
        )
