"""The state of a recurrent decoder before the first step."""

from typing import Annotated

import torch
from torch import Tensor, nn

from nmt.model.contract import Encoded, Sizes
from nmt.system.errors import SettingError
from nmt.system.limits import one_of

FIRST_STATES = ("auto", "backward", "last", "mean", "zero")
FirstStateKind = Annotated[str, one_of(*FIRST_STATES)]


class FirstState(nn.Module):
    """Encoded -> the state before the first step.

    backward: s_0 = tanh(W_s h), with the backward encoder's state h at the first word. Bahdanau 2015, appendix A.2.2.
        With a unidirectional encoder, h is its state at the last word.
    last: the encoder's last state of each layer, through a linear layer if sizes differ. Luong 2015, section 3.
    mean: tanh(W h), with the mean h of the encoder's states. Sennrich et al. 2017 (Nematus), section 2.
    zero: zeros.
    auto: the kind in the decoder's paper; mean if that kind needs a last state and the encoder has none.
    """

    KINDS = FIRST_STATES
    NEED_LAST = ("backward", "last")

    def __init__(self, kind: FirstStateKind, paper: FirstStateKind, sizes: Sizes, layers: int, size: int) -> None:
        """`paper` is the kind that auto stands for.

        Raises:
            SettingError: the kind needs a last state that the encoder does not have.
        """
        super().__init__()
        if kind in self.NEED_LAST and not sizes.directions:
            raise SettingError(
                "first_state",
                kind,
                "takes the last state of a recurrent encoder, and this encoder has none. Give auto, mean or zero, or "
                "encoder=gru.",
            )
        if kind == "auto":
            kind = paper if sizes.directions or paper not in self.NEED_LAST else "mean"
        self.kind, self.layers, self.size = kind, layers, size
        self.direction_size = sizes.value // max(sizes.directions, 1)
        self.linear: nn.Linear | None = None
        if kind == "backward":
            self.linear = nn.Linear(self.direction_size, layers * size)
        elif kind == "mean":
            self.linear = nn.Linear(sizes.value, layers * size)
        elif kind == "last" and sizes.value != size:
            self.linear = nn.Linear(sizes.value, size)

    def forward(self, encoded: Encoded) -> Tensor:
        """The state [B, L, D], in float32 at least: recurrent states are never in bfloat16."""
        hidden = self._hidden(encoded)
        return hidden.to(torch.promote_types(hidden.dtype, torch.float32))

    def _hidden(self, encoded: Encoded) -> Tensor:
        if self.kind == "zero":
            return encoded.values.new_zeros(encoded.values.shape[0], self.layers, self.size)
        if self.kind == "last":
            return self._last(encoded.last)
        assert self.linear is not None
        vector = encoded.mean()
        if self.kind == "backward":
            assert encoded.last is not None
            vector = encoded.last[:, -1, -self.direction_size :]
        state: Tensor = torch.tanh(self.linear(vector)).unflatten(-1, (self.layers, self.size))
        return state

    def _last(self, last: Tensor | None) -> Tensor:
        """Top layer to top layer; a decoder of more layers than the encoder repeats the encoder's top layer."""
        assert last is not None
        count = last.shape[1]
        layers = [min(layer + max(0, count - self.layers), count - 1) for layer in range(self.layers)]
        stacked = torch.stack([last[:, layer] for layer in layers], 1)  # a list as index would be copied to the device
        if self.linear is not None:
            stacked = self.linear(stacked)
        return stacked
