"""Forced decoding of pairs of tokens in batches of similar lengths: the prediction of each target piece."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.attention import Pins
from nmt.data.batch import Batch, make_batch
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq
from nmt.translation import forced_passes
from nmt.translation.contexts import Tokens
from nmt.translation.stepper import evaluating
from nmt.translation.types import Translation
from nmt.translation.views import can_look, ids_of

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

FORCED_PLACES = 100_000  # limit on sentences x (longest length)^2 in a batch of forced decoding
Look = Callable[[Seq2Seq, Batch, Sequence[Pins]], forced_passes.Forced]


class Pair(NamedTuple):
    """Source and target tokens without the end of sentence, the tokens of previous sentences, and the pins of steps."""

    source: list[int]
    target: list[int]
    context: Tokens
    pins: Pins


class Predicted(NamedTuple):
    """The log-probability of a target, of each of its T pieces and of the best other pieces, and weights [H, T, S].

    Logarithms are natural. The end of sentence is the last piece.
    """

    log_prob: float
    log_probs: list[float]
    others: list[float]
    weights: npt.NDArray[np.float32] | None


def predictions(translator: "Translator", pairs: Sequence[Pair], look: Look) -> Iterator[tuple[int, Predicted]]:
    """Yield the number of each pair and how the first model predicts its target, the longest pairs first."""
    model, device = translator.models[0], translator.compute.device
    lengths = [1 + max(len(pair.source), len(pair.target)) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda row: -lengths[row])
    start = 0
    with evaluating(translator.models):
        while start < len(order):
            size = max(1, min(translator.batch_sentences, FORCED_PLACES // lengths[order[start]] ** 2))
            rows = order[start : start + size]
            start += size
            batch = make_batch([pairs[row].source for row in rows], [pairs[row].target for row in rows], rows)
            batch = batch._replace(context=context_tensor([pairs[row].context for row in rows]))
            forced = look(model, batch.to(device), [pairs[row].pins for row in rows])
            totals = forced.log_probs.sum(1).tolist()
            log_probs, others = forced.log_probs.tolist(), forced.others.tolist()
            weights = None if forced.weights is None else forced.weights.float().cpu().numpy()
            for at, row in enumerate(rows):
                count = len(pairs[row].target) + 1
                # A copy, so that a short line does not keep the whole batch in memory.
                seen = None if weights is None else weights[at, :, :count].copy()
                yield row, Predicted(totals[at], log_probs[at][:count], others[at][:count], seen)


def predict_again(translator: "Translator", translations: Sequence[Translation]) -> list[Translation]:
    """Return each translation with the probabilities and weights by which the first model predicts its pieces.

    Predictions are in float32 for any precision of the search, so that a text always has the same probability. The
    translations of an empty line and of a line in parts are returned unchanged.
    """
    results = [*translations]
    rows = [row for row, each in enumerate(translations) if can_look(each)]
    pairs = [Pair(*ids_of(translator.tokenizer, each), each.pins) for each in (translations[row] for row in rows)]
    for at, predicted in predictions(translator, pairs, forced_passes.attention):
        each = results[rows[at]]
        count = len(each.pieces)  # without the end if the length limit cut the translation
        weights = None if predicted.weights is None else predicted.weights[:, :count, : len(each.source_pieces)]
        results[rows[at]] = each._replace(
            weights=weights,
            heads=translator.models[0].decoder.heads,
            log_probs=predicted.log_probs[:count],
            other_log_probs=predicted.others[:count],
        )
    return results
