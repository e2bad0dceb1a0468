"""Names of attention heads. Every room may import it.

A model with several layers names its heads "layer.head", both from 1: "2.1" is the first head of the second layer. A
model with one layer of attention numbers them from 0. A selection is a head, "2.mean" for the mean of a layer's heads,
"mean" for that of all heads, or "auto" for what aligns best as far as that is known.
"""

from collections.abc import Sequence

MEAN, AUTO, ALL = "mean", "auto", "all"


def layers_of(heads: Sequence[str]) -> list[str]:
    """The layers of these heads, the lowest first; none if their names have no layer."""
    return list(dict.fromkeys(head.partition(".")[0] for head in heads if "." in head))


def selections(heads: Sequence[str]) -> list[str]:
    """Everything that can be selected: the mean, the mean of each layer, each head. Each stands for other weights."""
    if len(heads) < 2:
        return list(heads)
    layers = layers_of(heads)
    by_layer = [
        f"{layer}.{MEAN}" for layer in layers if len(layers) > 1 and len(selected(f"{layer}.{MEAN}", heads)) > 1
    ]
    return [MEAN, *by_layer, *heads]


def selected(name: str, heads: Sequence[str]) -> list[int]:
    """The positions of the heads whose mean a selection is; none if there is no such selection."""
    if name == AUTO:
        name = default(heads)
    if name == MEAN:
        return list(range(len(heads)))
    layer, _, head = name.rpartition(".")
    if layer and head == MEAN:
        return [at for at, each in enumerate(heads) if each.partition(".")[0] == layer and "." in each]
    return [at for at, each in enumerate(heads) if each == name]


def names_all(name: str) -> bool:
    """Whether a name stands for several heads side by side: "all" or "2.all"."""
    return name.rpartition(".")[2] == ALL


def drawn(name: str, heads: Sequence[str]) -> list[str]:
    """What is drawn side by side: the selection itself, for "all" every head, for "2.all" those of layer 2.

    Nothing if there is no such selection.
    """
    if names_all(name):
        layer = name.rpartition(".")[0]
        return [heads[at] for at in selected(f"{layer}.{MEAN}" if layer else MEAN, heads)]
    return [name] if selected(name, heads) else []


def penultimate(heads: Sequence[str]) -> str | None:
    """The layer below the last, whose weights align best (Garg et al. 2019); None for a single layer."""
    layers = layers_of(heads)
    return layers[-2] if len(layers) > 1 else None


def default(heads: Sequence[str]) -> str:
    """What links are made of if nothing tells which head aligns best.

    The mean of the penultimate layer, or of all heads if there is one layer. The mean over several layers is a bad
    alignment.
    """
    layer = penultimate(heads)
    return MEAN if layer is None else f"{layer}.{MEAN}"


def guided(heads: Sequence[str]) -> str:
    """What guided alignment trains unless told otherwise: the first head of the penultimate layer, or the mean."""
    layer = penultimate(heads)
    return MEAN if layer is None else heads[selected(f"{layer}.{MEAN}", heads)[0]]


def described(name: str, heads: Sequence[str]) -> str:
    """A selection in words, such as "mean of the 4 heads of layer 2"."""
    if name == AUTO:
        name = default(heads)
    positions = selected(name, heads)
    if len(heads) == 1:
        return "one head"
    if name == MEAN:
        return f"mean of {len(heads)} heads"
    if name.endswith(f".{MEAN}"):
        if len(positions) == 1:
            return f"only head of layer {name.partition('.')[0]}"
        return f"mean of the {len(positions)} heads of layer {name.partition('.')[0]}"
    return f"head {name} (of heads {heads[0]} to {heads[-1]})"


def alternatives(heads: Sequence[str]) -> str:
    """What to give instead of a selection that does not exist, such as "mean, 2.mean or one from 1.1 to 2.4"."""
    if len(heads) < 2:
        return f"{MEAN} or {heads[0] if heads else 0}"
    by_layer = [name for name in selections(heads) if name.endswith(f".{MEAN}")]
    return f"{', '.join([MEAN, *by_layer[-1:]])} or one from {heads[0]} to {heads[-1]}"
