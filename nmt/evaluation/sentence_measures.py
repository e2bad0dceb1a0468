"""Measures of each sentence of a split: quality, length, probability, properties of the attention weights.

For `head` and `shift` see `nmt.alignment.word_weights`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nmt.alignment.error_rate import against_gold
from nmt.alignment.units import Units, spelled
from nmt.alignment.word_weights import UNATTENDED, Head, best_links, links, piece_weights, word_weights
from nmt.evaluation import metrics
from nmt.links import GoldLinks, format_links, parse_file
from nmt.translation.types import Translation

_REPEATED = 3  # length of a repeated sequence in words


def measures(translation: Translation, references: Sequence[str], head: Head, shift: int = 0) -> dict[str, Any]:
    """The measures of one translation.

    Returns:
        `chrf`, from 0 to 100; `length`, of the source in words; `log_prob`, the mean natural log-probability of the
        target pieces; `cut`, whether the length limit cut the translation; `repetition`, the number of three-word
        sequences that occurred earlier in the translation. With weights also: `entropy`, of the weights in nats, mean
        over target pieces; `zero_weights`, the percentage of weights that are exactly 0; `coverage`, the mean distance
        from 1 of the total weight of each source word; `unattended`, the number of source words with a total weight
        below `UNATTENDED`; `monotonicity`, the percentage of target words whose linked source word is not before the
        previous target word's, if two target words or more have links; `end_weight`, the percentage of weight on the
        end of the source, mean over target pieces without the end of sentence.
    """
    words = translation.text.split()
    sequences = [tuple(words[at : at + _REPEATED]) for at in range(len(words) - _REPEATED + 1)]
    figures: dict[str, Any] = {
        "chrf": metrics.sentence_chrf(translation.text, *references),
        "length": len(translation.source.split()),
        "log_prob": translation.log_prob / max(1, len(translation.pieces)),
        "cut": translation.cut,
        "repetition": len(sequences) - len(set(sequences)),
    }
    if translation.weights is None or not translation.weights.size:
        return figures
    rows = piece_weights(translation, head).astype(np.float64)
    shares = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    by_word = word_weights(translation, head, shift)
    received = by_word.sum(axis=0)
    figures["entropy"] = abs(float(-(shares * logs).sum(axis=1).mean()))
    figures["zero_weights"] = float(100 * (rows == 0).mean())
    if received.size:
        figures["coverage"] = float(np.abs(received - 1).mean())
        figures["unattended"] = int((received < UNATTENDED).sum())
    followed = [source for source, _ in best_links(by_word)]
    if len(followed) > 1:
        figures["monotonicity"] = float(100 * (np.diff(followed) >= 0).mean())
    written = [span is not None for span in translation.spans]
    if any(written):
        ends = [span is None for span in translation.source_spans]
        figures["end_weight"] = float(100 * shares[written][:, ends].sum(axis=1).mean())
    return figures


def rows(
    translations: Sequence[Translation],
    references: Sequence[str],
    head: Head,
    shift: int = 0,
    *,
    others: Sequence[Sequence[str]] = (),
    gold: Sequence[str] = (),
    forced: Sequence[Translation] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the measures of each sentence of a split, without text: `line`, from 1, and the values of `measures`.

    If the model saw context, `context_sentences` is the number of these sentences. With gold links, and the references
    of all sentences under forced decoding, a row also has `error_rate`, in per cent or None, and `gold`, the gold links
    between source and reference in Pharaoh format.
    """
    known = parse_file(gold, "The gold", pairs=len(forced)) if gold and len(forced) == len(translations) else []
    rates = error_rates(known, forced, head, shift) if known else []
    for row, (translation, *of_line) in enumerate(zip(translations, references, *others, strict=True)):
        measured = {"line": row + 1, **measures(translation, of_line, head, shift)}
        if translation.context:
            measured["context_sentences"] = len(translation.context)
        if known:
            links_of = format_links(known[row].sure, known[row].possible)
            measured |= {"error_rate": rates[row], "gold": links_of}
        yield measured


def whole_words(translation: Translation) -> tuple[Units, Units]:
    """The whitespace-separated words of a source and of its translation, to which gold links refer."""
    return (
        spelled(translation.source, translation.source_spans, translation.source.split()),
        spelled(translation.text, translation.spans, translation.text.split()),
    )


def error_rates(
    gold: Sequence[GoldLinks], forced: Sequence[Translation], head: Head, shift: int = 0
) -> list[float | None]:
    """The alignment error rate of each sentence pair under forced decoding, in per cent; None without sure links."""
    return [
        100 * against_gold([links(translation, head, shift, whole_words(translation))], [known]).aer
        if known.sure and translation.weights is not None
        else None
        for known, translation in zip(gold, forced, strict=True)
    ]
