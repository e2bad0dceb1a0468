"""What `nmt.load(...).inspect`, `.explain` and `.what_if` return: values that a notebook displays and draws."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.errors import UserError
from nmt.files import write_text
from nmt.viewer import embed

if TYPE_CHECKING:
    from nmt.drawing.heatmap import NotebookFigure

#: Pixels of a viewer in a notebook.
HEIGHT = 720


def shown(translations: Mapping[str, Mapping[str, Any]]) -> str:
    """HTML of the viewer with translations of one sentence by name: one line of text, then the viewer in a frame.

    A notebook that does not trust its outputs drops the frame; the line stays.
    """
    title, viewer = _viewer(translations)
    return f'<p dir="auto">{html.escape(title)}</p>{embed.frame(title, viewer, HEIGHT)}'


def _viewer(translations: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The title and the HTML of a viewer; `embed.page` and `embed.frame` put it into a page."""
    first = next(iter(translations.values()))
    named = [{"name": name, "translation": document} for name, document in translations.items()]
    data = {"sentences": [{"line": 1, "translations": named, "reference": None}], "corpus": None}
    return f"{first['source']['text']} → {first['hypotheses'][0]['text']}", embed.viewer("translation", data)


class Inspection:
    """A sentence, its translation, and all that is known of it. A notebook displays the viewer of `nmt.serve`.

    Attributes:
        document: the value that docs/translation-json.md describes.
    """

    def __init__(self, document: Mapping[str, Any], name: str = "translation") -> None:
        self.document = document
        self._name = name

    @property
    def text(self) -> str:
        """The best translation."""
        return str(self.document["hypotheses"][0]["text"])

    def stages(self, step: int, layer: int = 0, head: int = 0) -> "NotebookFigure":
        """How energies became the weights of one step: energy, softmax, the window's part, weight.

        Args:
            step: the piece that is predicted, from 0.
            layer, head: which attention, from 0.

        Raises:
            UserError: the model has no attention, or there is no such step, layer or head.
        """
        from nmt.drawing import documents

        return documents.stages(self.document, step, layer, head)

    def probabilities(self) -> "NotebookFigure":
        """The probability of each piece, and of the most probable other one.

        Raises:
            UserError: the line is empty or in parts.
        """
        from nmt.drawing import documents

        return documents.probabilities(self.document)

    def beam(self) -> "NotebookFigure":
        """The tree of hypotheses that beam search kept.

        Raises:
            UserError: the search has no tree, or the line is empty or in parts.
        """
        from nmt.drawing import documents

        return documents.tree(self.document)

    def save(self, path: str | Path) -> None:
        """Write the viewer as one HTML file that needs no network.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(Path(path), embed.page(*_viewer({self._name: self.document})))

    def _repr_html_(self) -> str:
        return shown({self._name: self.document})


class Explanation:
    """What each word of a translation depends on: attention, gradient times input, erasure.

    Attributes:
        measures: for each method a matrix of target words by source words; None for the weights of a model without
            attention.
        words: the words of `source` and `target`.
        correlation: Spearman's rank correlation of each pair of methods, the mean over the target words.
        context: the `sentences` before it that the model saw, and their `erasure`: a row for each target word with the
            fall of its log-probability without each of them. None without such sentences.
        caution: how to read this.
    """

    def __init__(self, explained: Mapping[str, Any]) -> None:
        self._explained = explained
        self.measures: Mapping[str, list[list[float]] | None] = explained["methods"]
        self.words: Mapping[str, list[str]] = explained["words"]
        self.correlation: dict[tuple[str, str], float | None] = {
            tuple(pair["methods"]): pair["mean"] for pair in explained["correlation"]
        }
        self.context: Mapping[str, Any] | None = explained["context"]
        self.caution: str = explained["caution"]

    def figure(self) -> "NotebookFigure":
        """The measures side by side: in each row the absolute values as shares of their sum."""
        from nmt.drawing import documents

        return documents.measures(self._explained)

    def _repr_png_(self) -> bytes:
        return self.figure()._repr_png_()


class WhatIf:
    """A translation beside that of a changed sentence, prefix or attention. A notebook displays both in the viewer.

    Attributes:
        baseline, variant: the documents of both; `variant` is None without a change.
        words: the half-open ranges of words that are the same, changed, deleted or inserted.
        steps: log-probabilities of each piece of the baseline without and with the change, and their divergence.
        sweep: for each source piece, what the pinned step would say; None without a sweep.
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.baseline: Mapping[str, Any] = result["baseline"]
        self.variant: Mapping[str, Any] | None = result["variant"]
        differences = result["differences"] or {"words": [], "steps": []}
        self.words: Sequence[Mapping[str, Any]] = differences["words"]
        self.steps: Sequence[Mapping[str, Any]] = differences["steps"]
        self.sweep: Sequence[Mapping[str, Any]] | None = result["sweep"]

    def figure(self) -> "NotebookFigure":
        """Both translations, and what the change does to each piece: log-probability, divergence.

        Raises:
            UserError: nothing was changed.
        """
        from nmt.drawing import documents

        if self.variant is None:
            raise UserError("Nothing was changed. Give what_if a text, a prefix, pins or changed_context.")
        return documents.differences(self.baseline, self.variant, {"words": self.words, "steps": self.steps})

    def sweep_figure(self) -> "NotebookFigure":
        """What the pinned step would say, for each source piece.

        Raises:
            UserError: there is no sweep.
        """
        from nmt.drawing import documents

        if self.sweep is None:
            raise UserError("There is no sweep. Give what_if the step: sweep=0.")
        return documents.sweep(self.sweep)

    @property
    def texts(self) -> tuple[str, str | None]:
        """The translation as it is, and as it would be."""
        changed = None if self.variant is None else str(self.variant["hypotheses"][0]["text"])
        return str(self.baseline["hypotheses"][0]["text"]), changed

    def _repr_html_(self) -> str:
        return shown({"as it is": self.baseline} | ({} if self.variant is None else {"changed": self.variant}))
