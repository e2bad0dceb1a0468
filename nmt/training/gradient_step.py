"""What follows the gradients of an update: clipping, and on a GPU the decision to skip, optimizer and average."""

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
    """Clips gradients; where the device decides by itself whether they are finite, it steps as well.

    What changes from update to update is read from tensors on the device. So all of this can be a CUDA graph.
    """

    def __init__(
        self, model: Seq2Seq, optimizer: torch.optim.Optimizer, averaging: Averaging, clip_norm: float
    ) -> None:
        """`clip_norm` 0 does not clip."""
        self.model, self.optimizer, self.averaging = model, optimizer, averaging
        self.clip_norm = clip_norm or math.inf
        device = next(model.parameters()).device
        # The learning rate of each group, the share of the current weights in the average, and `tokens`.
        self._controls = torch.zeros(len(optimizer.param_groups) + 2, device=device)
        #: moving average of log p(y_t), for mechanisms that sample (Xu et al. 2015, section 4.1)
        self.baseline = torch.zeros((), dtype=torch.float64, device=device)
        self.samples = any(isinstance(module, Read) and module.draws for module in model.modules())

    @property
    def tokens(self) -> Tensor:
        """The number of target tokens of the update, on the device."""
        return self._controls[-1]

    def prepare(self, tokens: int) -> None:
        """Copy what the next update of so many target tokens needs to the device."""
        rates = [group["lr"] for group in self.optimizer.param_groups]
        send(torch.tensor([*rates, self.averaging.share, tokens]), self._controls)

    def follow(self, likelihood: Tensor, skips: Tensor) -> None:
        """Move the baseline towards -`likelihood` [], a sum over the update's tokens; where it `skips`, it stays."""
        moved = self.baseline.lerp(-likelihood.double() / self.tokens, 0.1)
        self.baseline.copy_(torch.where(skips > 0, self.baseline, moved))

    def __call__(self, losses: Sequence[Tensor], likelihood: Tensor, decides: bool) -> Tensor:
        """Clip; if the device `decides`, step where all numbers are finite, as `prepare` has said.

        Args:
            losses: numbers of the update's batches, in tensors of any shape.
            likelihood: the negative log-likelihood of all of them [].
            decides: whether the step is the device's. This needs a fused optimizer.

        Returns:
            [N] on the device: these numbers, and last the norm before clipping.
        """
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        numbers = torch.cat([each.view(-1) for each in (*losses, norm)])
        if decides:
            skips = (numbers.sum() * 0).isnan().float()  # 0 times infinity is no number
            # As gradient scalers do; fused optimizers leave weights and states as they are where it is 1.
            self.optimizer.grad_scale, self.optimizer.found_inf = None, skips  # type: ignore[attr-defined]
            with self._rates_on_device():
                self.optimizer.step()
            self.averaging.move(self._controls[-2] * (1 - skips))
            if self.samples:
                self.follow(likelihood, skips)
        return numbers

    def tensors(self) -> list[Tensor]:
        """All tensors that a step changes beside gradients: weights, averages, and the optimizer's state."""
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        return [
            *(parameter.detach() for parameter in self.model.parameters()),
            *self.averaging.tensors(),
            self.baseline,
            *(value for value in states if isinstance(value, Tensor)),
        ]

    @contextlib.contextmanager
    def _rates_on_device(self) -> Iterator[None]:
        """The optimizer with learning rates that the device reads. Its groups, which are saved, keep plain numbers."""
        groups = self.optimizer.param_groups
        plain = [dict(group) for group in groups]
        capturing = self._controls.device.type == "cuda" and torch.cuda.is_current_stream_capturing()
        for group, rate in zip(groups, self._controls[:-2].unbind(), strict=True):
            group |= {"lr": rate, "capturable": capturing}  # torch warns of `capturable` where nothing is captured
        try:
            yield
        finally:
            for group, before in zip(groups, plain, strict=True):
                group.clear()
                group.update(before)
