"""The results of `nmt.load(...).translate`, `.inspect`, `.explain` and `.what_if`, which notebooks can display."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.alignment import word_weights as alignment
from nmt.alignment.word_weights import Head
from nmt.links import Link
from nmt.system.files import write_text
from nmt.translation.named_heads import AUTO
from nmt.translation.types import Translation
from nmt.viewer import embed

if TYPE_CHECKING:
    from nmt.drawing.heatmap import Level, NotebookFigure

#: Height of a viewer in a notebook, in pixels.
HEIGHT = 720


def viewer_html(translations: Mapping[str, Mapping[str, Any]]) -> str:
    """HTML with one line of text and a frame with the viewer; `translations` has documents of one sentence by name.

    A notebook with untrusted outputs removes the frame and shows only the line.
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
    """A sentence and its translation with all details. A notebook displays the viewer of `nmt.serve`.

    Attributes:
        document: the value that docs/translation-json.md describes.
    """

    def __init__(self, document: Mapping[str, Any], name: str = "translation") -> None:
        self.document = document
        self._name = name

    @property
    def text(self) -> str:
        """The text of the best translation."""
        return str(self.document["hypotheses"][0]["text"])

    def save(self, path: str | Path) -> None:
        """Write the viewer as one HTML file that needs no network.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(Path(path), embed.page(*_viewer({self._name: self.document})))

    def _repr_html_(self) -> str:
        return viewer_html({self._name: self.document})


class Explanation:
    """The influence of source words on each word of a translation, by attention, gradient times input and erasure.

    Attributes:
        measures: for each method a matrix of target words by source words; None for the attention of a model without
            attention.
        words: the words of `source` and `target`.
        head: the head, or the mean of heads, whose attention is shown; None without attention.
        correlation: for each pair of methods, Spearman's rank correlation of absolute values, averaged over target
            words.
        strongest: `same`, whether all methods have their largest absolute value at the same source word, for each
            target word; and `count`, the number of such target words. None with fewer than two methods.
        context: the previous `sentences` that the model saw, and their `erasure`: a row for each target word with the
            decrease of its log-probability when each sentence is removed. None without previous sentences.
        caution: advice on reading the measures.
    """

    def __init__(self, explained: Mapping[str, Any]) -> None:
        self.measures: Mapping[str, list[list[float]] | None] = explained["methods"]
        self.words: Mapping[str, list[str]] = explained["words"]
        self.head: str | None = explained["head"]
        self.correlation: dict[tuple[str, str], float | None] = {
            tuple(pair["methods"]): pair["mean"] for pair in explained["correlation"]
        }
        self.strongest: Mapping[str, Any] | None = explained["strongest"]
        self.context: Mapping[str, Any] | None = explained["context"]
        self.caution: str = explained["caution"]

    def _repr_html_(self) -> str:
        from pandas import DataFrame  # type: ignore[import-untyped]

        matrices = {name: matrix for name, matrix in self.measures.items() if matrix is not None}
        rows, columns = self.words["target"], self.words["source"]
        tables = [
            f"<p>{name}</p>{DataFrame(matrix, rows, columns).to_html(float_format='{:.2f}'.format)}"
            for name, matrix in matrices.items()
        ]
        return f"{''.join(tables)}<p>{html.escape(self.caution)}</p>"


class WhatIf:
    """A translation, and the translation with a changed sentence, prefix or attention. A notebook displays both.

    Attributes:
        baseline, variant: the documents of both translations; `variant` is None without a change.
        kept: the number of pieces that the variant takes from the baseline, because they precede the first pin.
        words: half-open ranges of words that are the same, changed, deleted or inserted.
        steps: log-probabilities of each piece of the baseline without and with the change, and their divergence.
        sweep: for each source piece, the output of the pinned step; None without a sweep.
        temperature: the likely `pieces` at a step before and after the change of temperature; None without a change.
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.baseline: Mapping[str, Any] = result["baseline"]
        self.variant: Mapping[str, Any] | None = result["variant"]
        self.kept: int = result["kept"]
        differences = result["differences"] or {"words": [], "steps": []}
        self.words: Sequence[Mapping[str, Any]] = differences["words"]
        self.steps: Sequence[Mapping[str, Any]] = differences["steps"]
        self.sweep: Sequence[Mapping[str, Any]] | None = result["sweep"]
        self.temperature: Mapping[str, Any] | None = result["temperature"]

    @property
    def texts(self) -> tuple[str, str | None]:
        """The texts of the unchanged and of the changed translation; None without a change."""
        changed = None if self.variant is None else str(self.variant["hypotheses"][0]["text"])
        return str(self.baseline["hypotheses"][0]["text"]), changed

    def _repr_html_(self) -> str:
        return viewer_html({"as it is": self.baseline} | ({} if self.variant is None else {"changed": self.variant}))


class TranslatedSentence(Translation):
    """A translation with heatmap and links. A notebook displays it in the viewer, or as its heatmap."""

    __slots__ = ()

    def heatmap(self, head: Head = AUTO, shift: int = 0, level: "Level" = "word") -> "NotebookFigure":
        """Draw the attention weights as a figure; a notebook displays it, and `savefig` writes it.

        Args:
            head: the name of an attention head, such as 0 or "2.1" (layer and head); "2.mean" for the mean of a layer,
                "mean" for the mean of all heads. "auto" is the mean of the penultimate layer, or of the only layer.
                "all" draws all heads side by side, "2.all" the heads of layer 2.
            shift: 1 assigns each row to the previous word (Luong et al. 2015, footnote 14).
            level: "word" or "subword".

        Raises:
            UserError: the model has no attention, or the head, shift or level does not exist.
        """
        from nmt.drawing.heatmap import figure

        return figure(self, head=head, shift=shift, level=level)

    def links(self, head: Head = AUTO, shift: int = 0) -> list[Link]:
        """Return word links (source, target), from 0: for each target word, the source word with the largest weight.

        Args:
            head, shift: see `heatmap`.

        Raises:
            UserError: the model has no attention, or the head or shift does not exist.
        """
        return alignment.links(self, head, shift)

    def _repr_png_(self) -> bytes | None:
        return None if self.weights is None else self.heatmap()._repr_png_()

    def _repr_html_(self) -> str | None:
        from nmt.inspection.document import Details, Style, document

        if self.attends != "cross" or not self.text.strip():
            return None
        aligned = self.weights is not None
        return viewer_html(
            {
                "translation": document(
                    [self], Style(None, aligned=aligned), [Details(context=self.context_weights, cross=aligned)]
                )
            }
        )
