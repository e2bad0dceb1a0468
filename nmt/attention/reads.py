"""Reads: what does a step take away from the slots it weighed?

Shapes: weights [B, H, T, S], values [B, H, S, Dv], context [B, H, T, Dv].
"""

from typing import Final, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from nmt.limits import Probability, Weight

#: The term that is the log-probability of what was drawn, times its weight in training. The loss multiplies it by what
#: the draw earned; every other term is added to the loss as it is.
LOG_PROB: Final = "log_prob"

Objective = Literal["sampled", "enumerate"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)


class Choices(NamedTuple):
    """Slots of one head among which the readout is left to choose: contexts [B, T, J, Dv], log_weights [B, T, J]."""

    contexts: Tensor
    log_weights: Tensor

    def heaviest(self) -> Tensor:
        """The context [B, T, Dv] of the most probable slot."""
        chosen = self.log_weights.argmax(-1, keepdim=True).unsqueeze(-1)
        return self.contexts.take_along_dim(chosen, -2).squeeze(-2)


class Reading(NamedTuple):
    """The context, the terms [B, T] for the loss by name, and the choices where the readout is to see others."""

    context: Tensor
    terms: dict[str, Tensor]
    choices: Choices | None = None


class Read(nn.Module):
    """The contract."""

    #: Whether the readout is left to choose among slots.
    enumerates = False

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        """What is taken away."""
        raise TypeError(f"{type(self).__name__} does not say what it reads")


class Soft(Read):
    """c_t = sum_j a_tj v_j. Bahdanau, Cho, Bengio 2015, section 3.1, eq. 5."""

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        return Reading(weights @ values, {})


class Hard(Read):
    """c_t = v_j of one slot j: in search the most probable one. Xu et al. 2015, section 4.1.

    What is trained is one of two objectives (in both, weights that a window's factor has shrunk are made to sum to
    one again, so that they are probabilities):

    sampled: j is drawn from the weights, each head on its own, and the bound sum_j a_tj log p(y_t | j) is raised by
        its score-function gradient (the paper's eq. 12 and 13), of which the terms are the draw's part. That part is
        so noisy that at its full weight it drowns the rest: `reward` is its weight, the paper's lambda_r, and with
        `expected` so great a share of the steps reads sum_j a_tj v_j in place of a draw, as the paper does for whole
        captions, so that the weights learn by back-propagation too. Unbiased are reward 1, entropy 0, expected 0.
    enumerate: log sum_j a_tj p(y_t | j), every slot going through the readout and the softmax (Deng et al. 2018,
        section 3), wherever the target is given: in training, validation and forced decoding. Recurrences are given
        the soft context, in search too, so that it is the marginal over all choices only where none of them goes on
        to later steps: in `luong` without input feeding. Elsewhere it is one step's, given soft contexts before it.
    """

    def __init__(
        self,
        objective: Objective = "sampled",
        entropy: Weight = 0.0,
        reward: Weight = 1.0,
        expected: Probability = 0.0,
    ) -> None:
        """`entropy` times the entropy of the weights is added to the sampled objective; the others: see the class."""
        super().__init__()
        self.enumerates = objective == "enumerate"
        self.entropy = entropy
        self.reward = reward
        self.expected = expected

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        total = weights.sum(-1, keepdim=True)
        seen = total != 0  # else there is nothing to look at: zeros
        shares = torch.where(seen, weights / total.where(seen, 1), 1 / weights.shape[-1])
        logs = shares.where(shares != 0, 1).log()  # 0 where the share is 0, so that no gradient is infinite
        if self.enumerates:
            contexts = values * seen.transpose(1, 2)  # [B, 1, S, Dv] * [B, T, 1, 1]
            return Reading(weights @ values, {}, Choices(contexts, logs.masked_fill(shares == 0, -torch.inf)[:, 0]))
        chosen = draw(shares) if self.training else shares.argmax(-1, keepdim=True)
        taken = torch.zeros_like(shares).scatter(-1, chosen, seen.to(shares.dtype))
        if not self.training:
            return Reading(taken @ values, {})
        drawn = seen
        if self.expected:  # the same for all heads of a step
            whole = torch.rand_like(shares[:, :1, :, :1]) < self.expected
            taken, drawn = torch.where(whole, shares * seen, taken), drawn & ~whole
        log_prob = (logs.gather(-1, chosen) * drawn).sum((1, 3))
        entropy = -(shares * logs * seen).sum((1, 3))
        return Reading(taken @ values, {LOG_PROB: self.reward * log_prob, "entropy": -self.entropy * entropy})


def draw(shares: Tensor) -> Tensor:
    """A slot [..., 1] for each row of probabilities [..., S].

    The shortest of exponential times, which lets probabilities that are no numbers through: the loss will tell.
    """
    return (shares / torch.empty_like(shares).exponential_()).argmax(-1, keepdim=True)
