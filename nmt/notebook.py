"""What `nmt.load(...).translate`, `.inspect`, `.explain` and `.what_if` return: values that a notebook displays."""

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

#: Pixels of a viewer in a notebook.
HEIGHT = 720


def viewer_html(translations: Mapping[str, Mapping[str, Any]]) -> str:
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

    def save(self, path: str | Path) -> None:
        """Write the viewer as one HTML file that needs no network.

        Raises:
            UserError: the file cannot be written.
        """
        write_text(Path(path), embed.page(*_viewer({self._name: self.document})))

    def _repr_html_(self) -> str:
        return viewer_html({self._name: self.document})


class Explanation:
    """What each word of a translation depends on: attention, gradient times input, erasure.

    Attributes:
        measures: for each method a matrix of target words by source words; None for the weights of a model without
            attention.
        words: the words of `source` and `target`.
        head: the head, or the mean of heads, that the attention is of; None without attention.
        correlation: Spearman's rank correlation of the sizes, without the sign, of each pair of methods, the mean over
            the target words.
        strongest: whether all methods are largest in size at the `same` source word, for each target word, and the
            `count` of such words; None with fewer than two methods.
        context: the `sentences` before it that the model saw, and their `erasure`: a row for each target word with the
            fall of its log-probability without each of them. None without such sentences.
        caution: how to read this.
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
    """A translation beside that of a changed sentence, prefix or attention. A notebook displays both in the viewer.

    Attributes:
        baseline, variant: the documents of both; `variant` is None without a change.
        kept: the number of pieces that the variant had to begin with, because pins hold after them.
        words: the half-open ranges of words that are the same, changed, deleted or inserted.
        steps: log-probabilities of each piece of the baseline without and with the change, and their divergence.
        sweep: for each source piece, what the pinned step would say; None without a sweep.
        temperature: the `pieces` that are likely at a step with another temperature, and before; None without one.
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
        """The translation as it is, and as it would be."""
        changed = None if self.variant is None else str(self.variant["hypotheses"][0]["text"])
        return str(self.baseline["hypotheses"][0]["text"]), changed

    def _repr_html_(self) -> str:
        return viewer_html({"as it is": self.baseline} | ({} if self.variant is None else {"changed": self.variant}))


class TranslatedSentence(Translation):
    """A translation with heatmap and links. A notebook displays it in the viewer, or as its heatmap."""

    __slots__ = ()

    def heatmap(self, head: Head = AUTO, shift: int = 0, level: "Level" = "word") -> "NotebookFigure":
        """The attention weights as a figure, which a notebook displays and `savefig` writes.

        Args:
            head: the name of an attention head, such as 0 or "2.1" (layer and head); "2.mean" for the mean of a layer,
                "mean" for that of all heads. "auto" is the mean of the penultimate layer, or of the only one. "all"
                draws every head side by side, "2.all" those of layer 2.
            shift: 1 assigns each row to the previous word (Luong et al. 2015, footnote 14).
            level: "word" or "subword".

        Raises:
            UserError: the model has no attention, or no such head, shift or level.
        """
        from nmt.drawing.heatmap import figure

        return figure(self, head=head, shift=shift, level=level)

    def links(self, head: Head = AUTO, shift: int = 0) -> list[Link]:
        """Links (source, target), from 0: for each word of the translation, the source word with the most weight.

        Args:
            head, shift: see `heatmap`.

        Raises:
            UserError: the model has no attention, or no such head or shift.
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
