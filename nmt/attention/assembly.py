"""Build an `Attention` from its settings, with parts and projections of matching sizes."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from nmt.attention.attention import Attention, Projections
from nmt.attention.normalisers import Normaliser
from nmt.attention.reads import Read
from nmt.attention.scores import Score
from nmt.attention.windows import Causal, Window
from nmt.system.errors import SettingError
from nmt.system.limits import Fraction, Positive, Weight


@dataclass(frozen=True)
class AttentionSettings:
    """The settings of an attention beside the choice of its four parts.

    Attributes:
        size: the size over all heads of the space in which queries and keys are compared; None for the query's size.
        heads: the number of heads H.
        project: whether to project queries, keys, values and contexts; None for several heads or if the score needs it.
        bias: whether these projections have a bias.
        dropout, coverage, coverage_loss: see `Attention`.
    """

    size: Positive | None = None
    heads: Positive = 1
    project: bool | None = None
    bias: bool = False
    dropout: Fraction = 0.0
    coverage: bool = False
    coverage_loss: Weight = 0.0

    def make(
        self,
        score: Callable[..., Score],
        window: Callable[..., Window],
        normaliser: Callable[..., Normaliser],
        read: Callable[..., Read],
        *,
        query_size: int,
        value_size: int,
        context_size: int | None = None,
        is_self_attention: bool = False,
        also: Sequence[Callable[..., Window]] = (),
    ) -> Attention:
        """Make the parts for the sizes of one head, and compose them.

        Args:
            score, window, normaliser, read: functions that make these parts.
            query_size, value_size, context_size: Dq, Dv and C; `context_size` None is `value_size`.
            is_self_attention: whether queries and memory come from the same sequence.
            also: functions that make additional windows; `Causal` among them hides all slots after a query's own.

        Raises:
            SettingError: the settings do not fit the parts.
        """
        heads, size = self.heads, query_size if self.size is None else self.size
        context_size = value_size if context_size is None else context_size
        made_read = read()
        self._check_heads(size, made_read)
        wanted = heads > 1 or getattr(inspect.unwrap(score), "wants_projections", False)
        project = wanted if self.project is None else self.project
        inner = (size // heads,) * 3 if project else (query_size, value_size, size)
        made_score = score(query_size=inner[0], key_size=inner[1], size=inner[2], heads=heads)
        self._check_coverage(is_self_attention)
        if self.coverage:
            made_score.cover()
        made_window = window(query_size=inner[0], heads=heads)
        if made_window.adds_values and not (made_read.is_sum and inner[0] == inner[1]):
            rule = "needs a soft read, and values of the size of queries, which {key}.project=true gives them."
            raise SettingError("window.values", "true", f"{rule} Or give {{key}}.window.values=false.")
        if is_self_attention:
            _check_self_attention(made_read, made_window, Causal in also)
        projections = Projections(
            out=None if context_size == value_size else nn.Linear(value_size, context_size, False)
        )
        if project:
            sizes = [(query_size, size), (value_size, size), (value_size, size), (size, context_size)]
            projections = Projections(*(nn.Linear(*pair, self.bias) for pair in sizes))
            if not made_score.compares_keys:
                projections = projections._replace(key=None)
        return Attention(
            *(made_score, made_window, normaliser(heads=heads), made_read, projections),
            heads=heads,
            dropout=self.dropout,
            coverage=self.coverage,
            coverage_loss=self.coverage_loss,
            also=[more(query_size=inner[0], heads=heads) for more in also],
        )

    def _check_heads(self, size: int, read: Read) -> None:
        """Raise SettingError if the number of heads does not fit the size, the projections or the read."""
        heads = self.heads
        if size % heads:
            near = max(1, round(size / heads)) * heads
            rule = f"must be a multiple of {{key}}.heads={heads}. Give {{key}}.size={near} or another number of heads."
            raise SettingError("size", size, rule)
        if heads > 1 and self.project is False:
            rule = (
                f"must be true or null with {{key}}.heads={heads}. Give {{key}}.heads=1 or leave {{key}}.project out."
            )
            raise SettingError("project", "false", rule)
        if read.enumerates and heads > 1:
            rule = "must be 1 with {key}.read.objective=enumerate, which tries every slot of one head."
            raise SettingError("heads", heads, f"{rule} Give {{key}}.heads=1 or {{key}}.read.objective=sampled.")

    def _check_coverage(self, is_self_attention: bool) -> None:
        """Raise SettingError for coverage in self-attention, or a coverage loss without coverage."""
        if self.coverage_loss and not self.coverage:
            rule = "must be 0 without coverage. Give {key}.coverage=true."
            raise SettingError("coverage_loss", self.coverage_loss, rule)
        if self.coverage and is_self_attention:
            rule = "must be false in self-attention, which computes all steps at once. Give {key}.coverage=false."
            raise SettingError("coverage", "true", rule)


def _check_self_attention(read: Read, window: Window, causal: bool) -> None:
    """Raise SettingError for a read with loss terms, or a causal window that needs the length or later words."""
    if read.has_terms:
        rule = "must be soft: only the attention to the source can add terms to the loss."
        raise SettingError("read", "hard", f"{rule} Give attention/read@{{key}}.read=soft.")
    if causal and window.needs_length:
        rule = "must not depend on the length of the target, which search does not know."
        raise SettingError("window", "local_p", f"{rule} Give attention/window@{{key}}.window=local_m or global.")
    if causal and (step := window.first_ahead) is not None:
        rule = f"must name no word after the step's own, but step {step} does: no step sees later words."
        raise SettingError("window.slots", "...", f"{rule} Give attention/window@{{key}}.window=global.")
