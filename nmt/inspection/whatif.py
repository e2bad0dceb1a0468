"""A translation beside that of a changed sentence, prefix or attention, and the difference between them."""

import difflib
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import torch

from nmt.attention import Pins
from nmt.inspection.details import Detail, documented, forced_characters
from nmt.inspection.document import Json, Style, number
from nmt.inspection.steps import ForcedSource, Inspected, context_of, inspect, last_step, tokens_of
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.contexts import encoded
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import can_look


class Edits(NamedTuple):
    """Changes of a translation; None and empty values change nothing.

    Attributes:
        text: another sentence.
        prefix: the beginning of the translation.
        pins: the source pieces that steps may look at. Numbers after the last source piece are pieces of the sentences
            before it, if the decoder attends to these.
        context: other sentences before it; () for none.
    """

    text: str | None = None
    prefix: str = ""
    pins: Mapping[int, Sequence[int]] = {}
    context: Sequence[str] | None = None

    def __bool__(self) -> bool:
        changed = self.text is not None or self.context is not None
        return changed or not shows_nothing(self.prefix) or bool(self.pins)


def what_if(
    translator: Translator,
    text: str,
    edits: Edits,
    style: Style,
    include: Set[Detail],
    sweep: int | None = None,
    context: Sequence[str] = (),
    prefix: str = "",
) -> Json:
    """The translation of a sentence, that with the edits, and what differs.

    Args:
        translator: translates.
        text: one line that is not blank.
        edits: the changes; without any, `variant` and `differences` are None.
        style: how the documents are written.
        include: the details of the documents.
        sweep: a step of the translation that is pinned to each piece in turn that the decoder can attend to.
        context: the sentences before the text, the nearest one last.
        prefix: how the translation begins, unless the edits have another beginning.

    Returns:
        `baseline` and `variant`, two documents. `differences`: `words`, the half-open ranges of words that are the
        same, changed, deleted or inserted; `steps`, the log-probability of each piece of the baseline without and with
        the edits, the divergence KL(baseline || variant) in nats, and `best`, the most probable piece with the edits
        after the baseline's pieces, with its `best_log_prob`. `sweep`: for each piece the log-probability of
        the baseline's piece, and the piece that would be the best; see `swept`.

    Raises:
        UserError: the text is blank or too long, the model has no attention to pin, it cannot write the prefix, or
            there is no such step or piece.
    """
    ((baseline, *_),) = translator.translate_chunk([Request(text, prefix, context)])
    if not can_look(baseline):
        raise UserError(
            "text: must be one line with words that the model can translate as a whole. Give a shorter sentence."
        )
    result: Json = {
        "baseline": documented(translator, [baseline], style, include, forced=forced_characters(translator, prefix)),
        "variant": None,
        "differences": None,
        "sweep": None if sweep is None else swept(translator, baseline, sweep),
    }
    if edits:
        changed = text if edits.text is None else edits.text
        before = context if edits.context is None else edits.context
        beginning = edits.prefix or prefix
        pins = {**translator.pins, **edits.pins}
        ((variant, *_),) = translator.translate_chunk([Request(changed, beginning, before, pins)])
        check_pins(edits.pins, variant)
        forced = forced_characters(translator, beginning)
        result["variant"] = documented(translator, [variant], style, include, forced=forced)
        result["differences"] = {
            "words": word_differences(baseline.text.split(), variant.text.split()),
            "steps": _step_differences(translator, baseline, changed, before, pins),
        }
    return result


def check_pins(pins: Pins, translation: Translation) -> None:
    """Raise UserError for pins of steps before the first, or to pieces that the decoder does not attend to."""
    if not can_look(translation):
        return
    before = translation.context_weights
    most = len(translation.source_pieces) + (0 if before is None else before.shape[2])
    for step, slots in pins.items():
        if step < 0:
            raise UserError(f"pins: step {step} does not exist. Count steps from 0.")
        if not all(0 <= slot < most for slot in slots):
            raise UserError(f"pins: step {step} names a source piece that is not there. Give 0 to {most - 1}.")


def word_differences(baseline: Sequence[str], variant: Sequence[str]) -> list[Json]:
    """Ranges of words, in order: their kind, and where they stand on both sides."""
    kinds = {"equal": "same", "replace": "changed", "delete": "deleted", "insert": "inserted"}
    matcher = difflib.SequenceMatcher(None, baseline, variant, autojunk=False)
    return [
        {"kind": kinds[kind], "baseline": [begin, end], "variant": [other_begin, other_end]}
        for kind, begin, end, other_begin, other_end in matcher.get_opcodes()
    ]


def _step_differences(
    translator: Translator, baseline: Translation, text: str, context: Sequence[str], pins: Pins
) -> list[Json]:
    """How probable each piece of the baseline is, and if the translator reads `text` after `context` with `pins`.

    `best` is what it would say then after the pieces of the baseline before the step.
    """
    source, target = tokens_of(translator.tokenizer, baseline)
    changed = translator.tokenizer.source.encode([text])[0]
    (seen,) = encoded(translator.tokenizer, [context], translator.context_sentences, translator.max_source_length)
    known = context_of(translator.tokenizer, baseline)
    before = inspect(translator, source, target, context=known, pins=baseline.pins)
    after = inspect(translator, changed, target, context=seen, pins=pins)
    best = [alternatives[0] for alternatives in after.alternatives(1)]
    rows = zip(before.of_pieces, after.of_pieces, divergences(before, after), best, strict=True)
    return [
        {
            "step": step,
            "baseline": number(one),
            "variant": number(two),
            "kl": number(kl),
            "best": translator.tokenizer.target.pieces([token])[0],
            "best_log_prob": number(likeliest),
        }
        for step, (one, two, kl, (token, likeliest)) in enumerate(rows)
    ]


def divergences(before: Inspected, after: Inspected) -> list[float]:
    """[T] KL(before || after) of the distributions of each step, in nats."""
    likely = before.log_probs.double()
    terms = likely.exp() * (likely - after.log_probs.double())
    return torch.where(torch.isinf(likely), 0.0, terms).sum(1).clamp(min=0).tolist()


def swept(translator: Translator, baseline: Translation, step: int) -> list[Json]:
    """One step of a translation with its attention at each piece in turn.

    Returns:
        A value for each source piece, then for each piece of the sentences before, if the decoder attends to these.
        `source` is the piece's number, as pins name it; `sentence`, the number of the sentence before, from 0, or None.

    Raises:
        UserError: the translation has no such step, or the model has no attention.
    """
    source, target = tokens_of(translator.tokenizer, baseline)
    if not 0 <= step < len(target):
        raise UserError(f"sweep={step}: the translation has no such step. Give 0 to {len(target) - 1}.")
    vocabulary = translator.tokenizer.target
    context = context_of(translator.tokenizer, baseline)
    pieces: list[tuple[int | None, str]] = [(None, piece) for piece in baseline.source_pieces]
    if baseline.context_weights is not None:
        pieces += [(at, piece) for at, sentence in enumerate(baseline.context) for piece in sentence.pieces]
    rows = [ForcedSource(source, context, {**baseline.pins, step: [position]}) for position in range(len(pieces))]
    log_probs = last_step(translator, target[: step + 1], rows)
    best_log_probs, best = log_probs.max(1)
    bars = zip(pieces, log_probs[:, target[step]].tolist(), best.tolist(), best_log_probs.tolist(), strict=True)
    return [
        {
            "source": position,
            "sentence": sentence,
            "text": piece,
            "log_prob": number(log_prob),
            "best": vocabulary.pieces([best_piece])[0],
            "best_log_prob": number(best_log_prob),
        }
        for position, ((sentence, piece), log_prob, best_piece, best_log_prob) in enumerate(bars)
    ]
