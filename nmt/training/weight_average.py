"""Averages of the weights over training. The average is validated, saved and used for translating."""

from collections import deque

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from nmt.model import Seq2Seq


class Averaging:
    """none: the current weights. ema: an exponential moving average.

    checkpoints: the mean of the weights at the last `checkpoints` validations (Sennrich et al. 2017 and others).
    """

    def __init__(self, model: Seq2Seq, kind: str, decay: float, checkpoints: int) -> None:
        self.kind, self.model, self.decay = kind, model, decay
        self.recent: deque[dict[str, Tensor]] = deque(maxlen=checkpoints)
        self.averaged: AveragedModel | None = None

        if kind != "none":
            self.averaged = AveragedModel(model)
        if self.averaged is not None:  # without this, cuDNN would make copied weights contiguous at every call
            for layer in self.averaged.module.modules():
                if isinstance(layer, nn.RNNBase):
                    layer.flatten_parameters()

    @property
    def share(self) -> float:
        """The share by which the next update moves the average towards the weights; 0 without a moving average."""
        if self._moving is None:
            return 0.0
        count = int(self._moving.n_averaged)  # on the CPU
        # Early averages follow the weights closely. Otherwise, short runs would stay near their initial weights.
        return max(1 - self.decay, 9 / (10 + count)) if count else 1.0

    def after_update(self, is_applied: bool = True) -> None:
        """Call after every update; `is_applied` is false if it was skipped."""
        if self._moving is None:
            return
        averages, current = list[Tensor](self._moving.module.parameters()), list[Tensor](self.model.parameters())
        with torch.no_grad():
            # Not by AveragedModel.update_parameters: it copies the count to the GPU, which makes the host wait.
            if is_applied and self.share == 1:
                torch._foreach_copy_(averages, current)
            elif is_applied:
                torch._foreach_lerp_(averages, current, self.share)
        self._follow_buffers()
        self.count_update()

    def move(self, share: Tensor) -> None:
        """Move the average towards the weights by a share [] on their device; call `count_update` afterwards."""
        if self._moving is None:
            return
        averages, current = list[Tensor](self._moving.module.parameters()), list[Tensor](self.model.parameters())
        with torch.no_grad():
            differences = list(torch._foreach_sub(current, averages))
            torch._foreach_mul_(differences, share)
            torch._foreach_add_(averages, differences)
        self._follow_buffers()

    def count_update(self) -> None:
        """Count an update, including skipped updates."""
        if self._moving is not None:
            self._moving.n_averaged += 1

    def tensors(self) -> list[Tensor]:
        """All tensors that `move` changes."""
        module = None if self._moving is None else self._moving.module
        return [] if module is None else [weight.detach() for weight in (*module.parameters(), *module.buffers())]

    @property
    def _moving(self) -> AveragedModel | None:
        return self.averaged if self.kind == "ema" else None

    def _follow_buffers(self) -> None:
        if self._moving is not None:
            for average, buffer in zip(self._moving.module.buffers(), self.model.buffers(), strict=True):
                average.copy_(buffer)

    def before_validation(self) -> None:
        """Call once before each validation."""
        if self.kind != "checkpoints" or self.averaged is None:
            return
        self.recent.append({name: parameter.detach().clone() for name, parameter in self.model.named_parameters()})
        with torch.no_grad():
            for name, parameter in self.averaged.module.named_parameters():
                parameter.copy_(torch.stack([weights[name] for weights in self.recent]).mean(0))

    @property
    def best_guess(self) -> Seq2Seq:
        """The model to validate and to save."""
        # Before the first validation there is no mean of checkpoints.
        if self.averaged is None or (self.kind == "checkpoints" and not self.recent):
            return self.model
        module: nn.Module = self.averaged.module
        assert isinstance(module, Seq2Seq)
        return module

    def state_dict(self) -> dict[str, object]:
        """Plain tensors and containers, for resuming."""
        return {
            "kind": self.kind,
            "averaged": None if self.averaged is None else self.averaged.state_dict(),
            "recent": list(self.recent),
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore what `state_dict` returned."""
        if self.averaged is not None:
            self.averaged.load_state_dict(state["averaged"])  # type: ignore[arg-type]
        device = next(self.model.parameters()).device
        for weights in state["recent"]:  # type: ignore[attr-defined]
            self.recent.append({name: value.to(device) for name, value in weights.items()})
