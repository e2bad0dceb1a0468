"""Measures of each sentence of a split: quality, length, probability, properties of the attention weights.

`head` and `shift` are those of `nmt.alignment.word_weights`.
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

_REPEATED = 3  # words of a repeated sequence


def measures(translation: Translation, references: Sequence[str], head: Head, shift: int = 0) -> dict[str, Any]:
    """Measures of one translation; those of attention only with weights.

    Returns:
        `chrf` in per cent; `length` of the source in words; `log_prob`, natural, the mean of the target pieces; `cut`,
        whether the length limit cut the translation; `repetition`, the sequences of three words that repeat an earlier
        one; `entropy` of the weights in nats, the mean of the target pieces; `zero_weights`, the share in per cent of
        source pieces with a weight of exactly 0, the mean of the target pieces; `coverage`, the mean distance from 1 of
        the weights that each source word received; `unattended`, the source words that received less than
        `UNATTENDED`; `monotonicity`, the share in per cent of target words whose heaviest source word does not stand
        before that of the target word before, with two such words or more; and `end_weight`, the share in per cent of
        the weight on the end of the source, the mean of the target pieces before their end.
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
    """Yield the measures of each sentence of a split, without its text: `line` from 1, and those of `measures`.

    `context_sentences` is the number of sentences before it that the model saw, if it saw some.

    With gold links and the references under forced decoding, one for each sentence, a row also has `error_rate`, in per
    cent or None, and `gold`, the links between source and reference in Pharaoh format.
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
    """The words at white space of a source and of its translation, between which gold links are."""
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
