"""Pins of a batch: the slots to which the user restricts single steps, sentence by sentence; part of the memory."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.attention.windows import Pin, Pins, View


class PinnedSteps(NamedTuple):
    """The pins of B sentences, for N steps and a last entry for all later steps.

    named [B, N + 1, S]: true for the slots of a pinned step. free [B, N + 1]: true where a step is not pinned.
    weight [B, N + 1]: the total weight of the slots of a pinned step; 1 where a step is not pinned.
    """

    named: Tensor
    free: Tensor
    weight: Tensor

    @classmethod
    def of(cls, pins: Sequence[Pins], mask: Tensor) -> "PinnedSteps":
        """Collect the pins of each sentence; `mask` [B, S] is true for real slots, and other slots are ignored."""
        steps = 1 + max((step for of_row in pins for step in of_row), default=-1)
        named = torch.zeros(len(pins), steps + 1, mask.shape[1], dtype=torch.bool)
        free, weight = torch.ones(named.shape[:2], dtype=torch.bool), torch.ones(named.shape[:2])
        for row, of_row in enumerate(pins):
            for step, given in of_row.items():
                slots, weight[row, step] = given if isinstance(given, Pin) else Pin(given)
                free[row, step] = False
                named[row, step, [slot for slot in slots if 0 <= slot < mask.shape[1]]] = True
        return cls(named.to(mask.device) & mask.unsqueeze(1), free.to(mask.device), weight.to(mask.device))

    @property
    def are_whole(self) -> bool:
        """Whether pinned slots get all of the weight at every pinned step."""
        return bool((self.weight == 1).all())

    def select(self, rows: Tensor) -> "PinnedSteps":
        """The sentences `rows` [B'] of the batch."""
        return PinnedSteps(*(part.index_select(0, rows) for part in self))

    def restrict(self, view: View, steps: Tensor) -> View:
        """Restrict the view at steps [B, T]: a pinned step sees exactly its slots, whatever the window shows."""
        free, named = self._at(self.free, steps), self._named(steps)
        return View(
            torch.where(free, view.visible, named),
            None if view.bias is None else view.bias.where(free, 0),
            None if view.factor is None else view.factor.where(free, 1),
        )

    def shared(self, pinned: Tensor, usual: Tensor, steps: Tensor) -> Tensor:
        """The shares [B, H, T, S] at steps [B, T] if pinned slots get the weight m and all other slots 1 - m.

        The weight m is divided as in `pinned`, the shares of the restricted view, and 1 - m as in `usual`, the weights
        without pins. If `usual` is zero for all other slots, the pinned slots get all of the weight.
        """
        weight = self._at(self.weight, steps)
        others = usual.masked_fill(self._named(steps), 0)
        total = others.sum(-1, keepdim=True)
        rest = torch.where(total > 0, others / total.where(total > 0, 1), pinned)
        return torch.where(weight < 1, weight * pinned + (1 - weight) * rest, pinned)

    def _at(self, part: Tensor, steps: Tensor) -> Tensor:
        """The entries of `part` [B, N + 1] at steps [B, T], as [B, 1, T, 1]."""
        return part.gather(1, self._columns(steps))[:, None, :, None]

    def _named(self, steps: Tensor) -> Tensor:
        """The mask of pinned slots at steps [B, T], as [B, 1, T, S]."""
        return self.named.take_along_dim(self._columns(steps).unsqueeze(-1), 1).unsqueeze(1)

    def _columns(self, steps: Tensor) -> Tensor:
        return steps.clamp(max=self.free.shape[1] - 1)
