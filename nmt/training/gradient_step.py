"""The end of an update: clipping, and on a GPU the decision to skip, the optimizer's step and the average."""

import contextlib
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from nmt.attention import Read
from nmt.model import Seq2Seq
from nmt.system.graphs import send
from nmt.training.weight_average import Averaging


class GradientStep:
    """Clips gradients; if the device decides whether they are finite, also makes the optimizer's step.

    All values that change between updates are read from tensors on the device, so that a CUDA graph can capture this.
    """

    def __init__(
        self, model: Seq2Seq, optimizer: torch.optim.Optimizer, averaging: Averaging, clip_norm: float
    ) -> None:
        """`clip_norm` is the largest norm of the gradient; 0 turns clipping off."""
        self.model, self.optimizer, self.averaging = model, optimizer, averaging
        self.clip_norm = clip_norm or math.inf
        device = next(model.parameters()).device
        # The learning rate of each group, the share of the current weights in the average, and `tokens`.
        self._controls = torch.zeros(len(optimizer.param_groups) + 2, device=device)
        #: the moving average of log p(y_t), for mechanisms that sample (Xu et al. 2015, section 4.1)
        self.baseline = torch.zeros((), dtype=torch.float64, device=device)
        self.samples = any(isinstance(module, Read) and module.draws for module in model.modules())

    @property
    def tokens(self) -> Tensor:
        """The number of target tokens of the update, on the device."""
        return self._controls[-1]

    def prepare(self, tokens: int) -> None:
        """Copy the learning rates and other values of the next update, with `tokens` target tokens, to the device."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        send(torch.tensor([*rates, self.averaging.share, tokens]), self._controls)

    def follow(self, likelihood: Tensor, skips: Tensor) -> None:
        """Move the baseline towards the mean per token of -`likelihood` [], an update's sum, unless it `skips`."""
        moved = self.baseline.lerp(-likelihood.double() / self.tokens, 0.1)
        self.baseline.copy_(torch.where(skips > 0, self.baseline, moved))

    def __call__(self, losses: Sequence[Tensor], likelihood: Tensor, decides: bool) -> Tensor:
        """Clip; if the device `decides`, make the step that `prepare` has set up, provided all numbers are finite.

        Args:
            losses: the losses of the update's batches, in tensors of any shape.
            likelihood: the negative log-likelihood [] of all batches.
            decides: whether the device decides and makes the step, which needs a fused optimizer.

        Returns:
            [N] on the device: the losses, then the norm before clipping.
        """
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        numbers = torch.cat([each.view(-1) for each in (*losses, norm)])
        if decides:
            skips = (numbers.sum() * 0).isnan().float()  # 0 times infinity is NaN
            # As gradient scalers do: fused optimizers do not change weights and states if `found_inf` is 1.
            self.optimizer.grad_scale, self.optimizer.found_inf = None, skips  # type: ignore[attr-defined]
            with self._rates_on_device():
                self.optimizer.step()
            self.averaging.move(self._controls[-2] * (1 - skips))
            if self.samples:
                self.follow(likelihood, skips)
        return numbers

    def tensors(self) -> list[Tensor]:
        """All tensors that a step changes beside gradients: weights, averages, baseline, and the optimizer's state."""
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        return [
            *(parameter.detach() for parameter in self.model.parameters()),
            *self.averaging.tensors(),
            self.baseline,
            *(value for value in states if isinstance(value, Tensor)),
        ]

    @contextlib.contextmanager
    def _rates_on_device(self) -> Iterator[None]:
        """Give the optimizer learning rates on the device, then restore the plain numbers, which are saved."""
        groups = self.optimizer.param_groups
        plain = [dict(group) for group in groups]
        capturing = self._controls.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        for group, rate in zip(groups, self._controls[:-2].unbind(), strict=True):
            group |= {"lr": rate, "capturable": capturing}  # torch warns about `capturable` if nothing is captured
        try:
            yield
        finally:
            for group, before in zip(groups, plain, strict=True):
                group.clear()
                group.update(before)
