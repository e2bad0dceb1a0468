"""The JSON document of a translation and its details, in the format "nmt.translation", version 2.

The page, programs, reports and notebooks read the same format, which docs/translation-json.md describes. Positions
count from 0, characters are code points, logarithms are natural. Unknown and unrequested values are null.
"""

import base64
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nmt.alignment.units import unit_spans, units
from nmt.alignment.word_weights import links
from nmt.attention import Attention
from nmt.inspection.doubt import DoubtModel
from nmt.inspection.search_tree import Node
from nmt.inspection.steps import Inspected, LayerStages, ReadoutVectors, Vectors
from nmt.links import format_links
from nmt.text.spans import Span
from nmt.text.tokenizer import BOS, SPECIAL_PIECES, Vocabulary
from nmt.translation.named_heads import AUTO
from nmt.translation.types import Translation, Views

FORMAT, VERSION = "nmt.translation", 2
ALTERNATIVES = 5  # pieces per step
COMPONENTS = 40_000  # limit for all vectors of a hypothesis; beyond it, only first components are kept
FEWEST = 8  # components of a vector that are always kept
DIGITS = 6  # decimals of numbers

Json = dict[str, Any]


@dataclass(frozen=True)
class Details:
    """Details of a hypothesis, in addition to its text.

    Attributes:
        inspected: the probabilities of each step and the stages of the weights, or None.
        views: the weights of self-attention, or None.
        context: [H, T, X] the weights of the X pieces of the context, the sentences before the source; or None.
        cross: whether to show the weights of the attention to the source.
        forced: the number of characters at the beginning of the text that the user gave.
        alternatives: the number of most probable pieces to show at each step.
    """

    inspected: Inspected | None = None
    views: Views | None = None
    context: npt.NDArray[np.float32] | None = None
    cross: bool = False
    forced: int = 0
    alternatives: int = ALTERNATIVES


@dataclass(frozen=True)
class Style:
    """How documents are written.

    Attributes:
        vocabulary: target vocabulary, for the pieces of alternatives and the beam; None for documents without them.
        head, shift: head and shift of the word links; see `nmt.alignment.word_weights`.
        aligned: whether to include word links.
        compact: write weights as bytes in base64, for files, instead of numbers.
        model, search: descriptions of the model and of the search.
        doubts: the model that computes doubts; None to keep the doubts of the translations.
    """

    vocabulary: Vocabulary | None
    head: str = AUTO
    shift: int = 0
    aligned: bool = True
    compact: bool = False
    model: Mapping[str, Any] | None = None
    search: Mapping[str, Any] | None = None
    doubts: DoubtModel | None = None


@dataclass(frozen=True)
class Beam:
    """The tree of a search: the beam size, the nodes, and the tokens of each returned hypothesis."""

    size: int
    nodes: Sequence[Node]
    hypotheses: Sequence[Sequence[int]] = ()


def document(
    ranked: Sequence[Translation], style: Style, details: Sequence[Details] = (), beam: Beam | None = None
) -> Json:
    """The document of one sentence.

    Args:
        ranked: the translations, best first, at least one.
        style: the style of the document.
        details: the details of each translation; () for none.
        beam: the tree of the search that found the translations.

    Raises:
        UserError: the model has no such head or shift.
    """
    first = ranked[0]
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": style.model,
        "search": style.search,
        "source": _side(first.source, first.source_pieces, first.source_spans),
        "context": [_side(sentence.text, sentence.pieces, sentence.spans) for sentence in first.context] or None,
        "hypotheses": [
            _hypothesis(translation, style, details[rank] if details else Details())
            for rank, translation in enumerate(ranked)
        ],
        "beam": None if beam is None else _beam(beam, [each.score for each in ranked], style.vocabulary),
    }


def _hypothesis(translation: Translation, style: Style, details: Details) -> Json:
    side, inspected = _side(translation.text, translation.pieces, translation.spans), details.inspected
    log_probs = [None] * len(side["pieces"]) if inspected is None else inspected.of_pieces
    steps = None if inspected is None or not details.alternatives else inspected.alternatives(details.alternatives)
    for at, piece in enumerate(side["pieces"]):
        span = translation.spans[at]
        piece["log_prob"] = number(log_probs[at])
        # If the user gave the whole translation, the end of sentence is also forced.
        everything = details.forced >= len(translation.text) > 0
        piece["forced"] = everything if span is None else span[0] < details.forced
        piece["alternatives"] = None if steps is None else _alternatives(steps[at], style.vocabulary)
    aligned, head, shift = style.aligned and translation.weights is not None, style.head, style.shift
    linked = {"links": format_links(links(translation, head, shift)), "head": head, "shift": shift} if aligned else None
    return {
        **side,
        "score": number(translation.score),
        "log_prob": number(translation.log_prob),
        "complete": not translation.cut,
        "remembered": translation.remembered,
        "alignment": linked,
        "weights": _all_weights(translation, details, compact=style.compact),
        "doubt": None if translation.doubt is None else translation.doubt.as_json(),
        "stages": _layers(inspected.layers) if inspected and inspected.layers else None,
        "readout": None if inspected is None or inspected.readout is None else _readout(inspected.readout),
    }


def _side(text: str, pieces: Sequence[str], spans: Sequence[Span | None]) -> Json:
    """A text with its words and its subword pieces."""
    of_text = units(text, spans)
    places = [int(row.argmax()) if row.any() else None for row in of_text.members]
    begins, ends = ([None if span is None else span[end] for span in spans] for end in (0, 1))
    return {
        "text": text,
        "direction": direction(text),
        "spaced": of_text.are_words,
        "words": [{"text": text[begin:end], "start": begin, "end": end} for begin, end in unit_spans(text, spans)],
        "pieces": [
            {"text": piece, "start": begin, "end": end, "word": place}
            for piece, begin, end, place in zip(pieces, begins, ends, places, strict=True)
        ],
    }


def direction(text: str) -> str:
    """The direction of a text by its first letter: "rtl" for a right-to-left script, else "ltr"."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return "ltr"


def _alternatives(step: Sequence[tuple[int, float]], vocabulary: Vocabulary | None) -> list[Json]:
    assert vocabulary is not None
    names = vocabulary.pieces([token for token, _ in step])
    return [
        {"text": name, "log_prob": number(log_prob), "rank": rank}
        for rank, (name, (_, log_prob)) in enumerate(zip(names, step, strict=True), 1)
    ]


def _all_weights(translation: Translation, details: Details, *, compact: bool) -> Json | None:
    """The weights by use ("context", "cross", "encoder", "decoder"); None if no weights were requested."""
    views = details.views
    if not details.cross and views is None:
        return None
    cross = translation if details.cross else None
    before = None if cross is None or details.context is None else cross._replace(weights=details.context)
    self_views = (None, None) if views is None else (views.encoder, views.decoder)
    uses = zip(("context", "cross", "encoder", "decoder"), (before, cross, *self_views), strict=True)
    return {use: _weights(view, compact=compact) for use, view in uses}


def _weights(view: Translation | None, *, compact: bool) -> Json | None:
    if view is None or view.weights is None:
        return None
    # Keep small weights above 0 when they are rounded: 0 in the document means an exact zero.
    weights = np.where(view.weights > 0, np.maximum(view.weights, 1 / 255 if compact else 10.0**-DIGITS), view.weights)
    names = view.heads if len(view.heads) == len(weights) else [str(head) for head in range(len(weights))]
    stored = base64.b64encode((weights.clip(0, 1) * 255).round().astype(np.uint8).tobytes()) if compact else b""
    return {
        "heads": list(names),
        "shape": list(weights.shape),
        "data": None if compact else _flat(weights),
        "bytes": stored.decode("ascii") if compact else None,  # in steps of 1 / 255
    }


def _layers(layers: Sequence[LayerStages]) -> list[Json]:
    heads, steps, slots = sum(len(layer.heads) for layer in layers), *layers[0].stages.weights.shape[1:]
    most = max(FEWEST, COMPONENTS // (heads * (2 * steps + 3 * slots)))
    return [_stages(layer) | {"vectors": None if layer.vectors is None
                              else _vectors(layer.vectors, most) | {"made": _formulas(layer.attention, layer.vectors)}}
            for layer in layers]  # fmt: skip


def _formulas(attention: Attention, vectors: Vectors) -> dict[str, str | None]:
    """The formulas of queries, keys, values, context and output; `out` is None if the context is not projected."""

    def of(projection: nn.Linear | None, name: str, vector: str) -> str:
        if projection is None:
            return vector
        return f"W^{name} {vector}" + ("" if projection.bias is None else f" + b^{name}")

    heads = [f"c_t^{head}" for head in range(1, attention.heads + 1)]
    contexts = "; ".join(heads if len(heads) < 4 else (heads[0], "…", heads[-1]))
    contexts = contexts if len(heads) == 1 else f"[{contexts}]"
    out = None if attention.out is None else of(attention.out, "O", contexts)
    if attention.merge is not None:
        out = f"the weighted branches of {contexts}"
    return {
        "query": of(attention.query, "Q", "x_t" if vectors.asks is None else vectors.asks.symbol),
        "key": of(attention.key, "K", vectors.key_of),
        "value": of(attention.value, "V", "h_j"),
        "context": "Σ_j a(t,j) (v_j + r_tj), with what the window adds" if attention.adds_values else "Σ_j a(t,j) v_j",
        "out": out,
    }


def _vectors(vectors: Vectors, most: int) -> Json:
    """The first `most` components of an attention's vectors; the score's terms include their names."""
    terms, heads = vectors.terms, len(vectors.queries)

    def block(name: str, part: Tensor) -> Json:  # part: [N, D] or [..., N, D], expanded to [h, N, D]
        return {"name": name, **_components(part.reshape(-1, *part.shape[-2:]).expand(heads, -1, -1), most)}

    def by_head(part: Tensor | None) -> Json | None:
        return None if part is None else block("", part.reshape(-1, 1, part.shape[-1]))

    scale = terms.scale if isinstance(terms.scale, Tensor) else torch.tensor(terms.scale)
    return {
        "asks": None if vectors.asks is None else vectors.asks._asdict(),
        "queries": block("q_t", vectors.queries),
        "keys": block("k_j", vectors.keys),
        "values": block("v_j", vectors.values),
        "kind": terms.kind,
        "left": block(terms.left_name, terms.left),
        "right": block(terms.right_name, terms.right),
        "scale": _flat(scale.cpu().expand(heads)),
        "out": None if vectors.merged is None else {"name": "c_t", **_components(vectors.merged[None], most)},
        "v": by_head(terms.v),
        "w": by_head(terms.w),
    }


def _components(vectors: Tensor, most: int) -> Json:
    """The shape of vectors [..., D], and the first `most` components of each."""
    count = min(most, vectors.shape[-1])
    return {"shape": list(vectors.shape), "shown": count, "data": _flat(vectors[..., :most].cpu(), 4)}


def _readout(readout: ReadoutVectors) -> Json:
    most = max(FEWEST, COMPONENTS // (4 * len(readout.features)))
    return {"equation": readout.equation, **_components(readout.features, most)}


def _stages(layer: LayerStages) -> Json:
    stages, attention = layer.stages, layer.attention
    radius = getattr(attention.window, "radius", None)
    gaussian = stages.view.factor is not None and radius is not None
    return {
        "heads": list(layer.heads),
        "shape": list(stages.weights.shape),
        "score": attention.score.choice,
        "equation": attention.score.equation,
        "window": attention.window.choice,
        "normaliser": attention.normaliser.choice,
        "normalisation": attention.normaliser.equation,
        "is_softmax": attention.normaliser.is_softmax,
        "symbols": {
            name: _flat(value.detach().cpu().expand(len(layer.heads)))
            for name, value in attention.normaliser.symbols().items()
        },
        "read": attention.read.choice,
        "energies": _flat(stages.energies),
        "visible": stages.view.visible.flatten().int().tolist(),
        "bias": None if stages.view.bias is None else _flat(stages.view.bias),
        "shares": _flat(stages.shares),
        "factor": None if stages.view.factor is None else _flat(stages.view.factor),
        "weights": _flat(stages.weights),
        "centres": None if stages.view.centres is None else _flat(stages.view.centres),
        "radius": radius,
        "sigma": radius / 2 if gaussian and radius is not None else None,
        "slots": None if layer.slots is None else layer.slots.flatten().tolist(),
    }


def _beam(beam: Beam, scores: Sequence[float], vocabulary: Vocabulary | None) -> Json:
    assert vocabulary is not None
    ranks = {tuple(tokens): rank for rank, tokens in reversed(list(enumerate(beam.hypotheses)))}
    paths: list[tuple[int, ...]] = []
    nodes = []
    for at, node in enumerate(beam.nodes):
        token = BOS if node.token is None else node.token
        paths.append(() if node.parent is None else (*paths[node.parent], token))
        rank = ranks.get(paths[-1]) if node.state == "ended" else None
        nodes.append(
            {
                "id": at,
                "parent": node.parent,
                "step": node.step,
                "text": SPECIAL_PIECES[BOS] if node.token is None else vocabulary.pieces([token])[0],
                "log_prob": number(node.log_prob),
                "total": number(node.total),
                "state": node.state,
                "score": None if rank is None else number(scores[rank]),
                "hypothesis": rank,
            }
        )
    return {"size": beam.size, "nodes": nodes}


def _flat(values: npt.NDArray[np.float32] | Tensor, digits: int = DIGITS) -> list[float | None]:
    """All numbers in row-major order, rounded; None for numbers that are not finite."""
    array = values.detach().double().numpy() if isinstance(values, torch.Tensor) else values.astype(np.float64)
    rounded = array.round(digits).ravel()
    if np.isfinite(rounded).all():
        plain: list[float | None] = rounded.tolist()
        return plain
    return [value if math.isfinite(value) else None for value in rounded.tolist()]


def number(value: float | None) -> float | None:
    """Round a number for a document; None for a number that is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)
