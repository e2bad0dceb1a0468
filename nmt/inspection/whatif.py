"""Comparison of a translation with the translation after changes of the sentence, the prefix or the attention."""

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
    """Changes to the input of a translation; None and empty values change nothing.

    Attributes:
        text: a new sentence.
        prefix: a new beginning of the translation.
        pins: {step: the source pieces that it attends to, with all or a part of its weight}. Numbers after the last
            source piece are pieces of the context sentences, if the decoder attends to them.
        context: new context sentences; () for no context.
        keep_words: whether to keep the words before the first pinned step. Otherwise, and with a new prefix, the search
            is free from the start and may write another word at a pinned step.
    """

    text: str | None = None
    prefix: str = ""
    pins: Mapping[int, Sequence[int] | Pin] = {}
    context: Sequence[str] | None = None
    keep_words: bool = True

    def __bool__(self) -> bool:
        changed = self.text is not None or self.context is not None
        return changed or not shows_nothing(self.prefix) or bool(self.pins)


#: Number of pieces by which a word of a sweep may be longer than the baseline's word.
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
    """Translate a sentence without and with edits, and compare the translations.

    Args:
        translator: the translator.
        text: one line that is not blank.
        edits: the changes; without changes, `variant` and `differences` are None.
        style: the style of the documents.
        include: the details of the documents.
        sweep: a step that attends to each source piece in turn, or a list of steps for each source word; see `swept`.
        context: the sentences before the text, the nearest last.
        prefix: the beginning of the translation, unless the edits have another.
        temperature: a step and the divisor of its energies; see `tempered`.
        keeps: keep the words before the translator's first pin as they are without pins (`keep_words`).

    Returns:
        `baseline` and `variant`: two documents. `kept`: the number of pieces with which the variant had to begin,
        because later steps are pinned; they are from the baseline, or from the changed text's translation without pins.
        `differences`: `words`, the half-open ranges of words that are the same, changed, deleted or inserted; `steps`,
        the log-probability of each baseline piece without and with the edits, the divergence KL(baseline || variant) in
        nats, and `best`, the most probable piece with the edits after the baseline's earlier pieces, with its
        `best_log_prob`. `sweep`: see `swept`. `temperature`: see `tempered`.

    Raises:
        UserError: the text is blank or too long, the model has no attention to pin or cannot write the prefix, or a
            step or piece does not exist.
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
            if changed != text:  # keep words of this sentence's own translation
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
    """The tokens of a translation before the `first` pinned step, at least the tokens of its `forced` characters.

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
    """Raise UserError for a pin with a negative step, an invalid weight, or a piece that the decoder does not see."""
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
    """The differences of two word lists, in order: the kind, and the half-open range of words on both sides."""
    kinds = {"equal": "same", "replace": "changed", "delete": "deleted", "insert": "inserted"}
    matcher = difflib.SequenceMatcher(None, baseline, variant, autojunk=False)
    return [
        {"kind": kinds[kind], "baseline": [begin, end], "variant": [other_begin, other_end]}
        for kind, begin, end, other_begin, other_end in matcher.get_opcodes()
    ]


def _step_differences(
    translator: Translator, baseline: Translation, variant: Translation, context: Sequence[str], pins: Pins
) -> list[Json]:
    """The log-probabilities of the baseline's pieces without the edits and with them.

    The edits are the variant's source, `context` and `pins`.
    `best` is the most probable piece with the edits after the baseline's pieces before the step.
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
    """The divergence KL(before || after) of the distributions at each step, [T], in nats."""
    likely = before.log_probs.double()
    terms = likely.exp() * (likely - after.log_probs.double())
    return torch.where(torch.isinf(likely), 0.0, terms).sum(1).clamp(min=0).tolist()


def swept(translator: Translator, baseline: Translation, swept_steps: int | Sequence[int]) -> list[Json]:
    """Pin steps of a translation to each place of the source in turn.

    Args:
        translator: the translator.
        baseline: the translation.
        swept_steps: a step, which is pinned to each source piece in turn; or a list of consecutive steps, such as the
            steps of a word, which are pinned to all pieces of each source word in turn.

    Returns:
        A row for each piece or word of the source, then of the context sentences, if the decoder attends to them.
        `source`: the number of the piece as in pins, or the numbers of the word's pieces. `sentence`: the number of the
        context sentence, from 0, or None. `log_prob`: the log-probability of the baseline's pieces at these steps.
        `best`: the greedy continuation at these steps, with log-probability `best_log_prob`; if the steps are a word,
        it continues with pins until a word ends (a beam search may write another word). `same`: whether `best` equals
        the baseline.

    Raises:
        UserError: the translation does not have these steps, or the model has no attention.
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
    """The number of tokens in the first word; the end of sentence is a word of its own."""
    for count in range(2, len(tokens) + 1):
        ends = EOS in tokens[:count]
        if ends or " " in translator.tokenizer.target.decode(tokens[:count]).strip():
            return count - 1
    return len(tokens)


def tempered(translator: Translator, baseline: Translation, step: int, temperature: float) -> Json:
    """Predict the piece at a step with the energies of all heads divided by a temperature.

    Returns:
        `step` and `temperature` as given; `pieces`, the most probable pieces after the change and the baseline's piece,
        each with its `text` and its log-probabilities `before` and `after` the change.

    Raises:
        UserError: the step does not exist, the temperature is not from 0.01 to 100, or it has no effect: the model has
            no attention to the source, or reads a single piece.
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
    """Whether a step reads only the piece with the largest weight."""
    return not read.is_sum and not (read.enumerates and read.searched != 1)


def _step_and_divisor(temperature: object) -> tuple[int, float]:
    """Check and unpack the temperature into step and divisor (UserError for values of other types)."""
    match temperature:
        case [Integral() as step, Real() as divisor] if not {type(step), type(divisor)} & {bool, np.bool_}:
            return int(step), float(divisor)
    raise UserError(f"temperature={temperature!r}: must be a step and a number, such as (0, 0.5).")


def _places(baseline: Translation, of_pieces: bool) -> list[tuple[int | None, str, list[int]]]:
    """The places that steps can attend to: (number of the context sentence or None, text, numbers of the pieces)."""
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
