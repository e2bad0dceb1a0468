"""What if? A translation beside that of a changed sentence, prefix or attention, and the difference between them."""

import difflib
import math
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import torch

from nmt.errors import UserError
from nmt.inspection.details import Detail, documented, forced_characters
from nmt.inspection.document import DIGITS, Json, Style
from nmt.inspection.forced import Inspected, context_of, inspect, tokens_of
from nmt.model.contract import Slots
from nmt.translation.contexts import encoded
from nmt.translation.looking import can_look
from nmt.translation.translator import Translator
from nmt.translation.types import Translation


class Edits(NamedTuple):
    """What is changed; None and empty values change nothing.

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
        return changed or bool(self.prefix.strip()) or bool(self.pins)


def slots_of(pins: Mapping[int, Sequence[int]]) -> Slots | None:
    """The slots of each step up to the last that is pinned; None without pins."""
    if not pins:
        return None
    return [list(pins[step]) if step in pins else None for step in range(max(pins) + 1)]


def pinned(translator: Translator, pins: Mapping[int, Sequence[int]]) -> Translator:
    """The translator with steps that look only at these source pieces; the parameters are shared.

    Raises:
        UserError: the model has no attention.
    """
    slots = slots_of(pins)
    if slots is None:
        return translator
    return Translator(
        translator.models,
        translator.tokenizer,
        translator.search,
        compute=translator.compute,
        batch_sentences=translator.batch_sentences,
        length_ratio=translator.length_ratio,
        extra_length=translator.extra_length,
        max_source_length=translator.max_source_length,
        long_lines=translator.long_lines,
        slots=slots,
        context_sentences=translator.context_sentences,
    )


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
    ((baseline, *_),) = translator.translate_chunk([text], prefixes=[prefix], contexts=[context])
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
        other = pinned(translator, edits.pins)
        changed = text if edits.text is None else edits.text
        before = context if edits.context is None else edits.context
        beginning = edits.prefix or prefix
        ((variant, *_),) = other.translate_chunk([changed], prefixes=[beginning], contexts=[before])
        _check_pins(edits.pins, variant)
        forced = forced_characters(other, beginning)
        result["variant"] = documented(other, [variant], style, include, forced=forced)
        result["differences"] = {
            "words": word_differences(baseline.text.split(), variant.text.split()),
            "steps": _step_differences(translator, other, baseline, changed, before),
        }
    return result


def _check_pins(pins: Mapping[int, Sequence[int]], translation: Translation) -> None:
    """Raise UserError for pins to pieces that the decoder does not attend to."""
    if not can_look(translation):
        return
    before = translation.context_weights
    most = len(translation.source_pieces) + (0 if before is None else before.shape[2])
    for step, slots in pins.items():
        if any(slot >= most for slot in slots):
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
    translator: Translator, other: Translator, baseline: Translation, text: str, context: Sequence[str]
) -> list[Json]:
    """How probable each piece of the baseline is, and for the other translator, which reads `text` after `context`.

    `best` is what that one would say after the pieces of the baseline before the step.
    """
    source, target = tokens_of(translator.tokenizer, baseline)
    changed = translator.tokenizer.source.encode([text])[0]
    (seen,) = encoded(other.tokenizer, [context], other.context_sentences, other.max_source_length)
    known = context_of(translator.tokenizer, baseline)
    before = inspect(translator.stepper, source, target, translator.compute, context=known)
    after = inspect(other.stepper, changed, target, other.compute, context=seen)
    best = [alternatives[0] for alternatives in after.alternatives(1)]
    rows = zip(before.of_pieces, after.of_pieces, divergences(before, after), best, strict=True)
    return [
        {
            "step": step,
            "baseline": _rounded(one),
            "variant": _rounded(two),
            "kl": _rounded(kl),
            "best": translator.tokenizer.target.pieces([token])[0],
            "best_log_prob": _rounded(likeliest),
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
    bars = []
    for position, (sentence, piece) in enumerate(pieces):
        other = pinned(translator, {step: [position]})
        inspected = inspect(other.stepper, source, target[: step + 1], other.compute, context=context)
        ((best, best_log_prob),) = inspected.alternatives(1)[step]
        bars.append(
            {
                "source": position,
                "sentence": sentence,
                "text": piece,
                "log_prob": _rounded(inspected.of_pieces[step]),
                "best": vocabulary.pieces([best])[0],
                "best_log_prob": _rounded(best_log_prob),
            }
        )
    return bars


def _rounded(value: float) -> float | None:
    return round(value, DIGITS) if math.isfinite(value) else None
