"""A translation beside that of a changed sentence, prefix or attention, and the difference between them."""

import difflib
import functools
import operator
from collections.abc import Mapping, Sequence, Set
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import torch

from nmt.alignment.units import units
from nmt.attention import Attention, Pin, Pins, Read
from nmt.inspection.details import Detail, documented, forced_characters
from nmt.inspection.document import ALTERNATIVES, Json, Style, number
from nmt.inspection.steps import ForcedSource, Inspected, context_of, continuations, inspect, piece_log_probs, tokens_of
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.text.spans import Span
from nmt.text.tokenizer import EOS
from nmt.translation.contexts import encoded
from nmt.translation.kept_words import beginning as beginning_of
from nmt.translation.kept_words import keep_words
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import can_look


class Edits(NamedTuple):
    """Changes of a translation; None and empty values change nothing.

    Attributes:
        text: another sentence.
        prefix: the beginning of the translation.
        pins: the source pieces that steps look at, alone or with a part of their weight. Numbers after the last source
            piece are pieces of the sentences before it, if the decoder attends to these.
        context: other sentences before it; () for none.
        keep_words: whether the words before the first pinned step stay as they are. Otherwise, and with another prefix,
            the search is free from the start, and may put another word where a pin holds.
    """

    text: str | None = None
    prefix: str = ""
    pins: Mapping[int, Sequence[int] | Pin] = {}
    context: Sequence[str] | None = None
    keep_words: bool = True

    def __bool__(self) -> bool:
        changed = self.text is not None or self.context is not None
        return changed or not shows_nothing(self.prefix) or bool(self.pins)


#: Pieces by which a word of a sweep may be longer than that of the baseline.
ROOM = 8


def what_if(
    translator: Translator,
    text: str,
    edits: Edits,
    style: Style,
    include: Set[Detail],
    sweep: int | Sequence[int] | None = None,
    context: Sequence[str] = (),
    prefix: str = "",
    temperature: tuple[int, float] | None = None,
    *,
    keeps: bool = False,
) -> Json:
    """The translation of a sentence, that with the edits, and what differs.

    Args:
        translator: translates.
        text: one line that is not blank.
        edits: the changes; without any, `variant` and `differences` are None.
        style: how the documents are written.
        include: the details of the documents.
        sweep: a step of the translation that looks at each piece in turn, or steps that look at each word; see `swept`.
        context: the sentences before the text, the nearest one last.
        prefix: how the translation begins, unless the edits have another beginning.
        temperature: a step, and what its energies are divided by; see `tempered`.
        keeps: whether the words before the translator's own pins are those without them (`keep_words`).

    Returns:
        `baseline` and `variant`, two documents. `kept`: the number of pieces that the search of the variant was made to
        begin with, because pins hold after them: of the baseline, or of what is written for the changed text.
        `differences`: `words`, the half-open ranges of words that are the same, changed, deleted or inserted; `steps`,
        the log-probability of each piece of the baseline without and with the edits, the divergence KL(baseline ||
        variant) in nats, and `best`, the most probable piece with the edits after the baseline's pieces, with its
        `best_log_prob`. `sweep`: see `swept`. `temperature`: see `tempered`.

    Raises:
        UserError: the text is blank or too long, the model has no attention to pin, it cannot write the prefix, or
            there is no such step or piece.
    """
    requests = [Request(text, prefix, context)]
    ((baseline, *_),) = translator.translate_chunk(keep_words(translator, requests) if keeps else requests)
    if not can_look(baseline):
        raise UserError(
            "text: must be one line with words that the model can translate as a whole. Give a shorter sentence."
        )
    result: Json = {
        "baseline": documented(translator, [baseline], style, include, forced=forced_characters(translator, prefix)),
        "variant": None,
        "kept": 0,
        "differences": None,
        "sweep": None if sweep is None else swept(translator, baseline, sweep),
        "temperature": None if temperature is None else tempered(translator, baseline, *_step_and_divisor(temperature)),
    }
    if edits:
        changed = text if edits.text is None else edits.text
        before = context if edits.context is None else edits.context
        beginning = edits.prefix or prefix
        pins, opening = {**translator.pins, **edits.pins}, list[int]()
        asked = Request(changed, beginning, before, pins)
        if edits.pins and edits.keep_words and shows_nothing(edits.prefix) and not shows_nothing(changed):
            free = baseline
            if changed != text:  # words of another sentence are not to be kept
                ((free, *_),) = translator.translate_chunk([Request(changed, prefix, before)])
            opening = _opening(translator, free, min(edits.pins), forced_characters(translator, prefix))
            asked = asked._replace(begins=beginning_of(opening))
        elif keeps and not edits.pins:
            (asked,) = keep_words(translator, [asked])
        ((variant, *_),) = translator.translate_chunk([asked])
        if not can_look(variant) and not shows_nothing(changed):
            raise UserError("text: the changed text is too long to be translated as a whole. Give a shorter one.")
        check_pins(edits.pins, variant)
        forced = forced_characters(translator, beginning)
        result["variant"] = documented(translator, [variant], style, include, forced=forced)
        for at, piece in enumerate(result["variant"]["hypotheses"][0]["pieces"] if opening else []):
            piece["forced"] = at < len(opening)
        result["kept"] = len(opening)
        result["differences"] = {
            "words": word_differences(baseline.text.split(), variant.text.split()),
            "steps": _step_differences(translator, baseline, variant, before, pins),
        }
    return result


def _opening(translator: Translator, baseline: Translation, first: int, forced: int) -> list[int]:
    """The tokens of a translation before the `first` pinned step, and those of its `forced` characters.

    Raises:
        UserError: the translation has no such step.
    """
    _, target = tokens_of(translator.tokenizer, baseline)
    if first >= len(target):
        raise UserError(
            f"pins: the translation has no step {first}. Give 0 to {len(target) - 1}, or keep_words=false, which lets "
            "the search go free from the start."
        )
    given = sum(span is not None and span[0] < forced for span in baseline.spans)
    return target[: max(first, given, 0)]


def check_pins(pins: Pins, translation: Translation) -> None:
    """Raise UserError for pins of steps before the first, or to pieces that the decoder does not attend to."""
    if not can_look(translation):
        return
    before = translation.context_weights
    most = len(translation.source_pieces) + (0 if before is None else before.shape[2])
    for step, slots in pins.items():
        if step < 0:
            raise UserError(f"pins: step {step} does not exist. Count steps from 0.")
        pin = slots if isinstance(slots, Pin) else Pin(slots)
        if not 0 <= pin.weight <= 1:
            raise UserError(f"pins: the weight {pin.weight} of step {step} must be a number from 0 to 1.")
        if not all(0 <= slot < most for slot in pin.slots):
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
    translator: Translator, baseline: Translation, variant: Translation, context: Sequence[str], pins: Pins
) -> list[Json]:
    """How probable each piece of the baseline is, and if the translator reads the variant's source instead.

    It reads it after `context` with `pins`.

    `best` is what it would say then after the pieces of the baseline before the step.
    """
    source, target = tokens_of(translator.tokenizer, baseline)
    changed, _ = tokens_of(translator.tokenizer, variant)
    (seen,) = encoded(translator.tokenizer, [context], translator.context_sentences, translator.max_source_length)
    known = context_of(translator.tokenizer, baseline)
    before = inspect(translator, source, target, context=known, pins=baseline.pins)
    after = inspect(translator, changed, target, context=seen, pins=pins)
    best = [alternatives[0] for alternatives in after.alternatives(1)]
    names = translator.tokenizer.target.pieces([token for token, _ in best])
    rows = zip(before.of_pieces, after.of_pieces, divergences(before, after), names, best, strict=True)
    return [
        {"step": step, "baseline": number(one), "variant": number(two), "kl": number(kl), "best": name,
         "best_log_prob": number(likeliest)}
        for step, (one, two, kl, name, (_, likeliest)) in enumerate(rows)
    ]  # fmt: skip


def divergences(before: Inspected, after: Inspected) -> list[float]:
    """[T] KL(before || after) of the distributions of each step, in nats."""
    likely = before.log_probs.double()
    terms = likely.exp() * (likely - after.log_probs.double())
    return torch.where(torch.isinf(likely), 0.0, terms).sum(1).clamp(min=0).tolist()


def swept(translator: Translator, baseline: Translation, swept_steps: int | Sequence[int]) -> list[Json]:
    """Steps of a translation with their attention at each place of the source in turn.

    Args:
        translator: translates.
        baseline: the translation.
        swept_steps: a step, which looks at one piece after the other; or a list of steps that follow one another, such
            as those of a word, which look at one word after the other, at all its pieces.

    Returns:
        A row for each piece or word of the source, then of the sentences before, if the decoder attends to these.
        `source` is the number of the piece, as pins name it, or those of the word; `sentence`, the number of the
        sentence before, from 0, or None. `log_prob` is that of the baseline's pieces at these steps; `best`, what the
        model would say there after the pieces before, piece for piece the most probable; if the steps are those of a
        word, until a word ends, with all its pieces pinned (a search with a beam may write another); `same`, whether it
        is that of the baseline.

    Raises:
        UserError: the translation has no such steps, or the model has no attention.
    """
    whole = isinstance(swept_steps, Integral)
    steps = [operator.index(step) for step in np.atleast_1d(swept_steps).tolist()]
    source, target = tokens_of(translator.tokenizer, baseline)
    if not steps or steps != list(range(steps[0], steps[0] + len(steps))):
        raise UserError(f"sweep={swept_steps}: give steps that follow one another, such as [2,3].")
    if not 0 <= steps[0] <= steps[-1] < len(target):
        raise UserError(f"sweep={swept_steps}: the translation has no such step. Give 0 to {len(target) - 1}.")
    context, places = context_of(translator.tokenizer, baseline), _places(baseline, whole)
    rows = [ForcedSource(source, context, {**baseline.pins, **dict.fromkeys(steps, place)}) for *_, place in places]
    log_probs = piece_log_probs(translator, target[: steps[-1] + 1], rows)[:, steps[0] :].sum(1).tolist()
    vocabulary = translator.tokenizer.target
    ends_words = not whole and " " in baseline.text and _first_word(translator, target[steps[0] :]) == len(steps)
    count = len(steps) + ROOM * ends_words
    pinned = [{**baseline.pins, **dict.fromkeys(range(steps[0], steps[0] + count), place)} for *_, place in places]
    free = [ForcedSource(source, context, pins) for pins in pinned]
    continued = continuations(translator, target[: steps[0]], count, free)
    answers = []
    for (sentence, text, place), log_prob, (tokens, likely) in zip(places, log_probs, continued, strict=True):
        count = _first_word(translator, tokens) if ends_words else len(tokens)
        tokens, best_log_prob, pieces = tokens[:count], sum(likely[:count]), vocabulary.pieces(tokens)
        answers.append(
            {
                "source": place[0] if whole else place,
                "sentence": sentence,
                "text": text,
                "log_prob": number(log_prob),
                "best": pieces[0] if whole else vocabulary.decode([token for token in tokens if token != EOS]).strip(),
                "best_log_prob": number(best_log_prob),
                "same": tokens == target[steps[0] : steps[-1] + 1],
            }
        )
    return answers


def _first_word(translator: Translator, tokens: Sequence[int]) -> int:
    """How many of these tokens are the first word, or the end of sentence."""
    for count in range(2, len(tokens) + 1):
        ends = EOS in tokens[:count]
        if ends or " " in translator.tokenizer.target.decode(tokens[:count]).strip():
            return count - 1
    return len(tokens)


def tempered(translator: Translator, baseline: Translation, step: int, temperature: float) -> Json:
    """What a translation's next piece would be if all heads of a step attended at another temperature.

    Returns:
        `step` and `temperature` as given; `pieces`, the most probable ones then and that of the baseline, each with its
        `text`, its log-probability `before`, and that `after` the change.

    Raises:
        UserError: there is no such step, the temperature is not from 0.01 to 100, or it would change nothing: the model
            has no attention to the source, or reads a single piece.
    """
    attentions = [each for model in translator.stepper.models for each in model.decoder.source_attentions]
    if not attentions:
        raise UserError("temperature: this model has no attention to the source.")
    if all(isinstance(each, Attention) and _reads_one(each.read) for each in attentions):
        raise UserError("temperature: this model reads a single piece, whose choice no temperature changes.")
    source, target = tokens_of(translator.tokenizer, baseline)
    if not 0 <= step < len(target):
        raise UserError(f"temperature: the translation has no step {step}. Give 0 to {len(target) - 1}.")
    if not 0.01 <= temperature <= 100:
        raise UserError(f"temperature: {temperature} must be a number from 0.01 to 100.")
    context = context_of(translator.tokenizer, baseline)
    ask = functools.partial(inspect, translator, source, target[: step + 1], context=context, pins=baseline.pins)
    before, after = ask(), ask(temperatures={step: temperature})
    best = dict.fromkeys([token for token, _ in after.alternatives(ALTERNATIVES)[step]] + [target[step]])
    names = translator.tokenizer.target.pieces([*best])
    pieces = [
        {"text": name, "before": number(float(before.log_probs[step, token])),
         "after": number(float(after.log_probs[step, token]))}
        for name, token in zip(names, best, strict=True)
    ]  # fmt: skip
    return {"step": step, "temperature": temperature, "pieces": pieces}


def _reads_one(read: Read) -> bool:
    """Whether a step reads the heaviest piece alone."""
    return not read.is_sum and not (read.enumerates and read.searched != 1)


def _step_and_divisor(temperature: object) -> tuple[int, float]:
    """The step and the divisor of a temperature (UserError for values of another kind)."""
    match temperature:
        case [Integral() as step, Real() as divisor] if not {type(step), type(divisor)} & {bool, np.bool_}:
            return int(step), float(divisor)
    raise UserError(f"temperature={temperature!r}: must be a step and a number, such as (0, 0.5).")


def _places(baseline: Translation, of_pieces: bool) -> list[tuple[int | None, str, list[int]]]:
    """What steps can look at: the sentence before that it is in, its text, and the numbers of its pieces."""
    sides: list[tuple[int | None, str, Sequence[str], Sequence[Span | None]]]
    sides = [(None, baseline.source, baseline.source_pieces, baseline.source_spans)]
    if baseline.context_weights is not None:
        sides += [(at, each.text, each.pieces, each.spans) for at, each in enumerate(baseline.context)]
    places: list[tuple[int | None, str, list[int]]] = []
    first = 0
    for sentence, text, pieces, spans in sides:
        if of_pieces:
            places += [(sentence, piece, [first + at]) for at, piece in enumerate(pieces)]
        else:
            of_text = units(text, spans)
            words = [(label, np.flatnonzero(of_text.members[:, at])) for at, label in enumerate(of_text.labels)]
            places += [(sentence, label, (first + members).tolist()) for label, members in words if len(members)]
            places += [(sentence, piece, [first + at]) for at, piece in enumerate(pieces) if spans[at] is None]
        first += len(pieces)
    return places
