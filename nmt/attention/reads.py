"""Reads turn values and their weights into the context of a step.

Shapes: weights [B, H, T, S], values [B, H, S, Dv], context [B, H, T, Dv].
"""

from typing import Final, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from nmt.attention.score_forms import AttentionPart
from nmt.system.limits import Positive, Probability, Weight

#: The name of the term for the log-probability of the drawn slots, times `Hard.reward`. The loss multiplies this term
#: by the draw's advantage, and adds all other terms unchanged.
LOG_PROB: Final = "log_prob"

Objective = Literal["sampled", "enumerate"]
Baseline = Literal["average", "soft"]
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)


class Choices(NamedTuple):
    """Slots of one head for the readout to choose from: contexts [B, T, J, Dv] and log_weights [B, T, J]."""

    contexts: Tensor
    log_weights: Tensor


class Reading(NamedTuple):
    """The context, terms [B, T] for the loss by name, and choices if the readout uses them instead of the context."""

    context: Tensor
    terms: dict[str, Tensor]
    choices: Choices | None = None


class Read(AttentionPart):
    """Base class of reads."""

    claim = ("is_sum", False)
    #: Whether the context is the weighted sum of the values, and nothing else is returned.
    is_sum = False
    #: Whether training draws slots at random, and compares their rewards with `baseline`.
    draws = False
    baseline: Baseline = "average"
    #: Whether the readout chooses among slots.
    enumerates = False
    #: The number of slots over which a search step then sums, those with the largest weights; None for all.
    searched: int | None = None
    #: Whether it adds terms to the loss.
    has_terms = False
    #: Temporarily true while the loss computes the soft baseline: the read then returns the weighted mean.
    softly = False

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        """The context of each step."""
        raise TypeError(f"{type(self).__name__} does not say what it reads")


class Soft(Read):
    """c_t = sum_j a_tj v_j. Bahdanau, Cho, Bengio 2015, section 3.1, eq. 5."""

    is_sum = True

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        return Reading(weights @ values, {})


class Hard(Read):
    """c_t = v_j of one slot j: in search the most probable one. Xu et al. 2015, section 4.1.

    There are two training objectives. In both, weights that a window's factor has shrunk are normalised first.

    sampled: Each head draws j from its weights. Training raises the bound sum_j a_tj log p(y_t | j) with its
        score-function gradient (the paper's eq. 12 and 13); `LOG_PROB` contributes the gradient of the draw. At full
        weight its noise dominates the gradient, so `reward` scales it (the paper's lambda_r). A share `expected` of
        the steps reads sum_j a_tj v_j instead of a draw, as the paper does for whole captions: these steps train the
        weights by back-propagation. The gradient is unbiased with reward 1, entropy 0 and expected 0. The baseline of
        a draw's reward is the running average of rewards (the paper's b), or the reward of the same step with soft
        attention and without dropout (self-critical: Rennie et al. 2017, eq. 8), which takes a second pass.
    enumerate: The likelihood is log sum_j a_tj p(y_t | j), with a readout and a softmax for every slot, whenever the
        target is given (Deng et al. 2018, section 3). Recurrences get the soft context, in search too. The sum is
        therefore the exact marginal only if no later step depends on a context: in `luong` without input feeding.
        Otherwise it is the marginal of each step, given soft contexts before that step. Search sums over all slots,
        or over the `searched` slots with the largest weights, normalised; with 1, it reads the best slot alone.
    """

    has_terms = True

    def __init__(
        self,
        objective: Objective = "sampled",
        entropy: Weight = 0.0,
        reward: Weight = 1.0,
        expected: Probability = 0.0,
        baseline: Baseline = "average",
        searched: Positive | None = None,
    ) -> None:
        """`entropy` scales the entropy bonus of the attention weights when sampling; for the rest see the class."""
        super().__init__()
        self.baseline, self.searched = baseline, searched
        self.enumerates, self.draws = objective == "enumerate", objective == "sampled"
        self.entropy, self.reward, self.expected = entropy, reward, expected

    def forward(self, weights: Tensor, values: Tensor) -> Reading:
        total = weights.sum(-1, keepdim=True)
        visible = total != 0  # false where a step sees no slot: its context is zero
        shares = torch.where(visible, weights / total.where(visible, 1), 1 / weights.shape[-1])
        logs = shares.where(shares != 0, 1).log()  # 0 where the share is 0, so that no gradient is infinite
        if self.softly:
            return Reading((shares * visible) @ values, {})
        if self.enumerates:
            contexts = values * visible.transpose(1, 2)  # [B, 1, S, Dv] * [B, T, 1, 1]
            return Reading(weights @ values, {}, Choices(contexts, logs.masked_fill(shares == 0, -torch.inf)[:, 0]))
        slots = draw(shares) if self.training else shares.argmax(-1, keepdim=True)
        mixed = torch.zeros_like(shares).scatter(-1, slots, visible.to(shares.dtype))
        if not self.training:
            return Reading(mixed @ values, {})
        sampled = visible
        if self.expected:  # the same for all heads of a step
            soft = torch.rand_like(shares[:, :1, :, :1]) < self.expected
            mixed, sampled = torch.where(soft, shares * visible, mixed), sampled & ~soft
        log_prob = (logs.gather(-1, slots) * sampled).sum((1, 3))
        entropy = -(shares * logs * visible).sum((1, 3))
        return Reading(mixed @ values, {LOG_PROB: self.reward * log_prob, "entropy": -self.entropy * entropy})


def draw(shares: Tensor) -> Tensor:
    """Draw a slot [..., 1] from each row of probabilities [..., S], as the first of exponential arrival times.

    NaN raises no error here; the loss check reports it.
    """
    return (shares / torch.empty_like(shares).exponential_()).argmax(-1, keepdim=True)
