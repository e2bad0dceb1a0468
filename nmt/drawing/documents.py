"""What a document of a translation says -> figures: stages of a weight, the tree of a search, probabilities, measures.

Two documents, and what differs -> a figure of the difference.

docs/translation-json.md describes the documents.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from nmt.drawing import fonts
from nmt.drawing.heatmap import NotebookFigure
from nmt.drawing.layout import shorten
from nmt.drawing.matrix import matrix
from nmt.drawing.style import DPI, GREY, LINE, line, style
from nmt.errors import UserError

Document = Mapping[str, Any]
_BAR, _STRONG = "#9ecae1", line(0)["color"]
_STAGES = ("energies", "bias", "softmax", "factor", "weights")
_STAGE_TITLES = {
    "energies": "energy, {}",
    "bias": "bias of the window, added",
    "softmax": "softmax over the slots in sight",
    "factor": "factor of the window",
    "weights": "weight",
}
_LONGEST = 18  # columns of text of a label
_CELL, _LEFT, _ABOVE, _BELOW = 0.33, 1.4, 1.1, 0.5  # inches of a cell, and of the labels around a matrix


def stages(document: Document, step: int, layer: int = 0, head: int = 0) -> NotebookFigure:
    """How energies became the weights of one step, one row of bars for each stage.

    Args:
        document: has `stages` for its first hypothesis.
        step: of the translation, from 0: the piece that is predicted.
        layer, head: which attention, from 0.

    Raises:
        UserError: the document has no stages, or no such step, layer or head.
    """
    hypothesis = document["hypotheses"][0]
    known = hypothesis["stages"]
    if not known:
        raise UserError("There are no stages: the model has no attention, or the line is empty or in parts.")
    _within("layer", layer, len(known))
    own = known[layer]
    heads, steps, slots = own["shape"]
    _within("head", head, heads)
    _within("step", step, steps)
    labels = _readable([piece["text"] for piece in document["source"]["pieces"]])
    rows = {name: _row(own[name], own["shape"], head, step) for name in _STAGES if own[name] is not None}
    picture = _figure(max(4.0, 0.5 * slots + 1.4), 1.15 * len(rows) + 1.1)
    every = np.atleast_1d(np.asarray(picture.subplots(len(rows), 1, sharex=True)))
    for axes, (name, values) in zip(every, rows.items(), strict=True):
        axes.bar(range(slots), np.nan_to_num(values), color=_STRONG if name == "weights" else _BAR)
        style(axes, _STAGE_TITLES[name].format(own["score"]))
        if name in ("softmax", "factor", "weights"):
            axes.set_ylim(0, 1)
    if own["centres"] is not None:
        every[-1].axvline(np.reshape(own["centres"], (heads, steps))[head, step], color=GREY, linestyle="--")
    _name_columns(every[-1], labels)
    predicted = _readable([hypothesis["pieces"][step]["text"]])[0]
    picture.suptitle(
        f"Step {step}: “{predicted}”, head {own['heads'][head]}",
        fontproperties=_font([predicted], 11),
        parse_math=False,
    )
    return picture


def probabilities(document: Document) -> NotebookFigure:
    """The probability of each piece of the first hypothesis, and the most probable other piece.

    Raises:
        UserError: the document has no alternatives.
    """
    pieces = document["hypotheses"][0]["pieces"]
    if not pieces or pieces[0]["alternatives"] is None:
        raise UserError("There are no probabilities: the line is empty or in parts.")
    picture = _figure(max(4.0, 0.55 * len(pieces) + 1.2), 3.0)
    axes = picture.subplots()
    rivals = [next((o for o in piece["alternatives"] if o["text"] != piece["text"]), None) for piece in pieces]
    axes.bar(range(len(pieces)), [_exp(piece["log_prob"]) for piece in pieces], color=_STRONG)
    for at, rival in enumerate(rivals):
        if rival is not None:
            axes.plot(at, _exp(rival["log_prob"]), marker="_", markersize=14, color=line(3)["color"])
    style(axes, "Probability of each piece (bar), and of the best other piece (mark; named below)", y="probability")
    axes.set_ylim(0, 1)
    others = _readable(["" if rival is None else rival["text"] for rival in rivals])
    _name_columns(axes, [f"{own}\n{other}" for own, other in zip(_readable([p["text"] for p in pieces]), others)])
    return picture


def tree(document: Document) -> NotebookFigure:
    """The hypotheses that beam search kept, from left to right; those that it returned are dark.

    Raises:
        UserError: the document has no beam.
    """
    if document["beam"] is None:
        raise UserError("There is no beam: the search has no tree, or the line is empty or in parts.")
    nodes = {node["id"]: node for node in document["beam"]["nodes"]}
    kept = _with_ancestors(nodes, [node for node in nodes.values() if node["hypothesis"] is not None])
    rows: dict[int, int] = {}
    columns: dict[int, list[int]] = {}
    for node in nodes.values():  # parents come first; the best of a step is above
        columns.setdefault(node["step"], []).append(node["id"])
    for ids in columns.values():
        ordered = sorted(ids, key=lambda name: (name not in kept, -nodes[name]["total"]))
        rows.update({name: row for row, name in enumerate(ordered)})
    labels = dict(zip(nodes, _readable([node["text"] for node in nodes.values()]), strict=True))
    deepest = max(map(len, columns.values()))
    picture = _figure(1.0 * len(columns) + 0.6, 0.34 * deepest + 0.9)
    axes = picture.subplots()
    for name, node in nodes.items():
        dark = name in kept
        if node["parent"] is not None:
            before = nodes[node["parent"]]
            ends = ([before["step"] + 0.35, node["step"] - 0.35], [rows[before["id"]], rows[name]])
            axes.plot(*ends, color=_STRONG if dark else LINE, linewidth=1.4 if dark else 0.7)
        axes.text(
            *(node["step"], rows[name], labels[name]),
            ha="center",
            va="center",
            color="black" if dark else GREY,
            parse_math=False,
            fontproperties=_font([labels[name]], 9),
        )
    axes.set_xlim(-1.6, max(columns) + 0.6)
    axes.set_ylim(deepest - 0.4, -0.6)
    axes.set_axis_off()
    axes.set_title(
        f"Beam of {document['beam']['size']}", loc="left", fontproperties=fonts.properties([fonts.BASE], 10.5)
    )
    return picture


def measures(explained: Mapping[str, Any]) -> NotebookFigure:
    """Measures of what each target word depends on, side by side, each row's absolute values as shares of their sum.

    Args:
        explained: the result of `nmt.inspection.explain.explain`.
    """
    words = {side: _readable(labels) for side, labels in explained["words"].items()}
    shown = {name: np.abs(values) for name, values in explained["methods"].items() if values is not None}
    font = _font([*words["source"], *words["target"]], 9)
    width, height = (_CELL * len(words[side]) for side in ("source", "target"))
    each = width + _ABOVE  # as slanted labels stand out at the right
    picture = NotebookFigure(figsize=(_LEFT + each * len(shown), height + _ABOVE + _BELOW), dpi=DPI, facecolor="white")
    across, up = picture.get_size_inches()
    for at, (name, values) in enumerate(shown.items()):
        place = (_LEFT + each * at, _BELOW, width, height)
        axes = picture.add_axes((place[0] / across, place[1] / up, place[2] / across, place[3] / up))
        total = values.sum(1, keepdims=True)
        shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
        matrix(axes, shares, words["target"] if at == 0 else (), words["source"], font, slant=45)
        axes.set_xlabel({"gradient": "|gradient times input|"}.get(name, name))
    return picture


def differences(baseline: Document, variant: Document, differing: Mapping[str, Any]) -> NotebookFigure:
    """Two translations, and what a change does to each piece of the first one.

    Above, the words of both, those that differ in red. Then the change of each piece's log-probability, and the
    divergence of its distribution, both in nats. A change from or to probability zero is a mark without a bar.

    Args:
        baseline, variant: the documents of both.
        differing: the `differences` of `nmt.inspection.whatif.what_if`.
    """
    pieces = baseline["hypotheses"][0]["pieces"]
    columns = sum(max(_lengths(part)) for part in differing["words"])
    picture = _figure(max(6.0, 0.55 * len(pieces) + 1.4, 0.85 * columns + 1.4), 4.6)
    words, change, divergence = picture.subplots(3, 1, height_ratios=(0.6, 1.0, 1.0))
    _words_of_both(words, (baseline, variant), differing["words"])
    steps = differing["steps"]
    ends = [(step["baseline"], step["variant"]) for step in steps]
    changes = [np.nan if None in pair else pair[1] - pair[0] for pair in ends]
    change.bar(range(len(steps)), np.nan_to_num(changes), color=_STRONG)
    change.plot(range(len(steps)), np.where(np.isnan(changes), 0.0, np.nan), "x", color=line(3)["color"])
    change.axhline(0, color=GREY, linewidth=0.8)
    style(change, "Change of the log-probability of each piece of the first translation", y="nats")
    divergence.bar(range(len(steps)), [step["kl"] or 0.0 for step in steps], color=_BAR)
    style(divergence, "Divergence of the distributions of each step", y="KL, nats")
    labels = _readable([piece["text"] for piece in pieces])
    for axes in (change, divergence):
        _name_columns(axes, labels)
    return picture


def _lengths(part: Mapping[str, Any]) -> tuple[int, int]:
    """How many words a range of differences has on both sides."""
    (begin, end), (other_begin, other_end) = part["baseline"], part["variant"]
    return end - begin, other_end - other_begin


def _words_of_both(axes: Axes, both: Sequence[Document], parts: Sequence[Mapping[str, Any]]) -> None:
    """The words of two translations, one below the other in the order of the differences."""
    texts = [_readable([word["text"] for word in each["hypotheses"][0]["words"]]) for each in both]
    at = 0
    for part in parts:
        for row, side in enumerate(("baseline", "variant")):
            begin, end = part[side]
            for place, word in enumerate(texts[row][begin:end], at):
                axes.text(
                    *(place, row, word),
                    ha="center",
                    va="center",
                    color="black" if part["kind"] == "same" else line(3)["color"],
                    parse_math=False,
                    fontproperties=_font([word], 9),
                )
        at += max(_lengths(part))
    rightwards = both[0]["hypotheses"][0]["direction"] == "ltr"
    axes.set_xlim((-0.6, at - 0.4) if rightwards else (at - 0.4, -0.6))
    axes.set_ylim(1.6, -0.6)
    style(axes, "The translation as it is, and as it would be")
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([0, 1], ["as it is", "changed"], fontproperties=fonts.properties([fonts.BASE], 8.5))
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)


def sweep(bars: Sequence[Mapping[str, Any]]) -> NotebookFigure:
    """What one step would say if it looked at one source piece only, for each piece.

    Args:
        bars: the `sweep` of `nmt.inspection.whatif.what_if`.
    """
    picture = _figure(max(5.0, 0.6 * len(bars) + 1.2), 3.2)
    axes = picture.subplots()
    axes.bar(range(len(bars)), [_exp(bar["log_prob"]) for bar in bars], color=_STRONG)
    marks = [_exp(bar["best_log_prob"]) for bar in bars]
    axes.plot(range(len(bars)), marks, linestyle="", marker="_", markersize=14, color=line(3)["color"])
    below = "the only source piece in sight; below it, the best piece"
    style(axes, "The translation's piece (bar), and the best one (mark)", below, "probability")
    axes.set_ylim(0, 1)
    labels = (_readable([bar[name] for bar in bars]) for name in ("text", "best"))
    _name_columns(axes, [f"{source}\n{best}" for source, best in zip(*labels, strict=True)])
    return picture


def _with_ancestors(nodes: Mapping[int, Document], ends: Sequence[Document]) -> set[int]:
    found = set[int]()
    for node in ends:
        name = node["id"]
        while name is not None and name not in found:
            found.add(name)
            name = nodes[name]["parent"]
    return found


def _row(values: Sequence[float | None], shape: Sequence[int], head: int, step: int) -> npt.NDArray[np.float64]:
    """The numbers of one head and step; a stage that all heads share has them once. None becomes NaN."""
    numbers = np.array([np.nan if value is None else value for value in values])
    slots = shape[2]
    each = numbers.reshape(-1, shape[1], slots)
    return np.asarray(each[head if len(each) == shape[0] else 0, step])


def _within(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        raise UserError(f"{name}={value} does not exist. Give 0 to {count - 1}.")


def _exp(log_prob: float | None) -> float:
    return 0.0 if log_prob is None else float(np.exp(log_prob))


def _readable(texts: Sequence[str]) -> list[str]:
    return fonts.drawable(shorten(text, _LONGEST) for text in texts)[0]


def _font(texts: Sequence[str], size: float) -> Any:
    return fonts.properties(fonts.families_for("".join(texts))[0], size)


def _name_columns(axes: Axes, labels: Sequence[str]) -> None:
    font = _font([label.replace("\n", "") for label in labels], 8.5)
    axes.set_xticks(range(len(labels)), labels, fontproperties=font, parse_math=False, rotation=0)
    axes.tick_params(length=0)


def _figure(width: float, height: float) -> NotebookFigure:
    return NotebookFigure(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
