"""Names of attention heads, and the selection of heads for links and heatmaps.

A model with several layers names its heads "layer.head", both from 1: "2.1" is the first head of the second layer. A
model with one layer of attention numbers its heads from 0. A selection is a head, "2.mean" for the mean of a layer's
heads, "mean" for the mean of all heads, or "auto" for the heads that align best, as far as this is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nmt.system.errors import UserError

MEAN, AUTO, ALL = "mean", "auto", "all"
#: The reason for a selection: the user set it, it is best on validation links, or it is the default.
Reason = Literal["set", "validation", "default"]


def names_all(name: str) -> bool:
    """Whether a name stands for several heads side by side: "all" or "2.all"."""
    return name.rpartition(".")[2] == ALL


@dataclass(frozen=True)
class Heads:
    """The heads of a model.

    Attributes:
        names: names of the heads in the order of the weights; empty for a model without attention.
        trained: the selection that guided alignment has trained; None without guided alignment.
    """

    names: Sequence[str]
    trained: str | None = None

    @property
    def layers(self) -> list[str]:
        """The names of the layers, the lowest first; empty if head names have no layer."""
        return list(dict.fromkeys(head.partition(".")[0] for head in self.names if "." in head))

    @property
    def selections(self) -> list[str]:
        """All selections with different weights: the mean, the mean of each layer, each head."""
        if len(self.names) < 2:
            return list(self.names)
        layers = [f"{layer}.{MEAN}" for layer in self.layers if len(self.layers) > 1]
        return [MEAN, *(name for name in layers if len(self.select(name)) > 1), *self.names]

    @property
    def default(self) -> str:
        """The selection for links without validation links.

        The trained heads, else the mean of the penultimate layer (Garg et al. 2019), or of all heads if there is one
        layer. The mean over several layers aligns badly.
        """
        if self.trained is not None:
            return self.trained
        return f"{self.layers[-2]}.{MEAN}" if len(self.layers) > 1 else MEAN

    @property
    def guided(self) -> str:
        """The selection that guided alignment trains by default: a head of the penultimate layer, or the mean."""
        return self.names[self.select(f"{self.layers[-2]}.{MEAN}")[0]] if len(self.layers) > 1 else MEAN

    def select(self, name: str) -> list[int]:
        """The indices of the heads whose mean is the selection `name`; empty if there is no such selection."""
        name = self.default if name == AUTO else name
        if name == MEAN:
            return list(range(len(self.names)))
        layer, _, head = name.rpartition(".")
        if layer and head == MEAN:
            return [at for at, each in enumerate(self.names) if each.startswith(f"{layer}.")]
        return [at for at, each in enumerate(self.names) if each == name]

    def side_by_side(self, name: str) -> list[str]:
        """The selections to draw: for "all" every head, for "2.all" the heads of layer 2, else the selection itself.

        The list is empty if there is no such selection.
        """
        if names_all(name):
            layer = name.rpartition(".")[0]
            return [self.names[at] for at in self.select(f"{layer}.{MEAN}" if layer else MEAN)]
        return [name] if self.select(name) else []

    def describe(self, name: str) -> str:
        """A description of a selection, such as "mean of the 4 heads of layer 2"."""
        name = self.default if name == AUTO else name
        count, layer = len(self.select(name)), name.partition(".")[0]
        if len(self.names) == 1:
            return "one head"
        if name == MEAN:
            return f"mean of {len(self.names)} heads"
        if name.endswith(f".{MEAN}"):
            return f"only head of layer {layer}" if count == 1 else f"mean of the {count} heads of layer {layer}"
        return f"head {name}"

    @property
    def alternatives(self) -> str:
        """The valid selections for an error message, such as "mean, 2.mean or one from 1.1 to 2.4"."""
        if len(self.names) < 2:
            return f"{MEAN} or {self.names[0] if self.names else 0}"
        by_layer = [name for name in self.selections if name.endswith(f".{MEAN}")]
        return f"{', '.join([MEAN, *by_layer[-1:]])} or one from {self.names[0]} to {self.names[-1]}"


def choose_head(heads: Heads, wanted: str, rates: Mapping[str, float] | None = None) -> tuple[str, Reason]:
    """Return the selection of heads for links, and the reason for it.

    Args:
        heads: the heads of the model; without attention, "0" is the only valid name.
        wanted: a selection, or "auto".
        rates: the error rate of each selection on validation links; None without links.

    Raises:
        UserError: there is no such selection.
    """
    if wanted != AUTO:
        if not Heads(heads.names or ("0",)).select(wanted):
            raise UserError(f"head={wanted} does not exist. Give head={AUTO}, {heads.alternatives}.")
        return wanted, "set"
    if rates:
        return min(rates, key=lambda name: rates[name]), "validation"  # of equal rates the first, which is the mean
    return heads.default, "default"
