"""Computations of the model at each step of a given translation (forced decoding).

The model predicts the pieces again, one step at a time, with the step function of search. Thus all decoders and
ensembles are inspected in the same way, and the log-probabilities equal those of the search.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, Memory, Observed, Pin, Stages, Terms, View, observing
from nmt.data.batch import make_batch
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq, Source
from nmt.model.contract import Asks
from nmt.text.tokenizer import BOS, EOS, Tokenizer
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import END, ids_of


class Vectors(NamedTuple):
    """The vectors of one attention over a whole target: queries [h, T, D], keys and values [h, S, D].

    `asks` is the decoder state that makes the queries. Keys are before `Score.prepare`, as in the score's equation;
    `key_of` is the symbol of their input. merged [T, C] is the attention's output from its heads' contexts.
    """

    asks: Asks | None
    queries: Tensor
    keys: Tensor
    values: Tensor
    terms: Terms
    merged: Tensor | None = None
    key_of: str = "h_j"


class LayerStages(NamedTuple):
    """The stages from energies to weights of one attention over a whole target.

    Attributes:
        attention: the module.
        heads: [h] the names of the heads.
        stages: the stages, each [h, T, S]; the centres of windows are [h, T].
        slots: [h, T] the slots that a hard read selects; None for a weighted mean.
        vectors: the vectors from which the energies are computed; None if not requested.
    """

    attention: Attention
    heads: Sequence[str]
    stages: Stages
    slots: Tensor | None
    vectors: Vectors | None = None


#: Keys and values [1, h, S, D] of attentions, before `Score.prepare`, and the symbol of the keys' input.
Known = dict[Attention, tuple[Tensor, Tensor, str]]


class ReadoutVectors(NamedTuple):
    """The input of the vocabulary softmax at each step: features [T, F], and their equation."""

    features: Tensor
    equation: str


class Inspected(NamedTuple):
    """The predictions of the models at each of T steps.

    Attributes:
        tokens: [T] the forced tokens.
        log_probs: [T, V] natural log-probabilities, on the CPU.
        weights: [H, T, S] attention weights; None without attention.
        layers: the stages of each attention of the first model; empty if not requested.
        readout: the readout of the first model; None if vectors were not requested, or for a mixture over slots.
    """

    tokens: list[int]
    log_probs: Tensor
    weights: Tensor | None
    layers: list[LayerStages]
    readout: ReadoutVectors | None = None

    @property
    def of_pieces(self) -> list[float]:
        """The log-probability of each forced token, [T]."""
        return self.log_probs.gather(1, torch.tensor(self.tokens).unsqueeze(1)).squeeze(1).tolist()

    def alternatives(self, count: int) -> list[list[tuple[int, float]]]:
        """The `count` most probable tokens of each step, [T], with their log-probabilities, best first."""
        values, tokens = self.log_probs.topk(min(count, self.log_probs.shape[1]), 1)
        return [list(zip(*row, strict=True)) for row in zip(tokens.tolist(), values.tolist(), strict=True)]


def tokens_of(tokenizer: Tokenizer, translation: Translation) -> tuple[list[int], list[int]]:
    """The source tokens without the end of sentence, and the target tokens with it if the translation has it."""
    source, target, _ = ids_of(tokenizer, translation)
    return source, [*target, *([EOS] * (translation.pieces[-1:] == [END]))]


def context_of(tokenizer: Tokenizer, translation: Translation) -> list[list[int]]:
    """The tokens of each context sentence that the model saw, without the end of sentence."""
    return [*ids_of(tokenizer, translation)[2]]


def inspect(
    translator: Translator,
    source: Sequence[int],
    target: Sequence[int],
    *,
    stages: bool = False,
    vectors: bool = False,
    context: Sequence[Sequence[int]] = (),
    pins: Mapping[int, Sequence[int] | Pin] = {},
    temperatures: Mapping[int, float] = {},
) -> Inspected:
    """Predict `target` from `source` with the models of a translator, by forced decoding.

    Args:
        translator: a translator with one model or an ensemble, in evaluation mode.
        source: tokens without the end of sentence, at least one.
        target: tokens as search returns them, at least one.
        stages: whether to record the stages from energies to weights of the first model.
        vectors: whether to record also the vectors of the energies and the merged contexts.
        context: tokens of the sentences before the source, the nearest last.
        pins: {step: the slots that it attends to}.
        temperatures: {step: the divisor of the energies of all heads before the normaliser}.

    Raises:
        UserError: there are pins, but a model has no attention.
    """
    log_probs, weights, features = list[Tensor](), list[Tensor](), list[Tensor]()
    model, forced = translator.stepper.models[0], ForcedSource(source, context, pins)

    def tempered(_: nn.Module, given: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return given[0] / temperatures.get(len(log_probs), 1.0), given[1]

    with contextlib.ExitStack() as watching:
        watching.enter_context(torch.inference_mode())
        watching.enter_context(translator.compute.autocast())
        looks = stages or vectors or bool(temperatures)
        observed = watching.enter_context(observing(model.decoder)) if looks else {}
        for each in (each for other in translator.stepper.models for each in other.decoder.source_attentions):
            if temperatures and isinstance(each, Attention):
                watching.callback(each.normaliser.register_forward_pre_hook(tempered).remove)
        known: Known = {}
        if vectors:
            watching.enter_context(_knowing(model.decoder.source_attentions, known))
            hook = model.output.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
            watching.callback(hook.remove)
        for step_log_probs, step_weights in _steps(translator, target, [forced]):
            log_probs.append(step_log_probs[0].float().cpu())
            if step_weights is not None:
                weights.append(step_weights[0].float().cpu())
        layers = _layers(model, observed, known) if observed else []
    seen = [step[0].float().cpu() / model.decoder.logit_scale for step in features if step.ndim == 2]
    equation = getattr(getattr(model.decoder, "readout", None), "equation", "")
    readout = ReadoutVectors(torch.stack(seen), equation) if len(seen) == len(target) else None
    by_head = torch.stack(weights, 1) if weights else None
    return Inspected(list(target), torch.stack(log_probs), by_head, layers, readout)


class ForcedSource(NamedTuple):
    """A source, its context, and pins: the slots that single steps attend to."""

    source: Sequence[int]
    context: Sequence[Sequence[int]]
    pins: Mapping[int, Sequence[int] | Pin] = {}


def continuations(
    translator: Translator, target: Sequence[int], count: int, rows: Sequence[ForcedSource]
) -> list[tuple[list[int], list[float]]]:
    """For each row, the greedy continuation of `target` by `count` tokens, and their log-probabilities."""
    sequences: list[tuple[list[int], list[float]]] = []
    with torch.inference_mode(), translator.compute.autocast():
        for batch in _batches(translator, rows):
            state, written, likely = _start(translator, batch), list[Tensor](), list[Tensor]()
            previous = torch.full((len(batch),), BOS, device=translator.compute.device)
            for step in range(len(target) + count):
                log_probs, _, state = translator.stepper(previous, state)
                best, previous = log_probs.float().max(1)
                if step < len(target):
                    previous = torch.full_like(previous, target[step])
                else:
                    written.append(previous.cpu())
                    likely.append(best.cpu())
            sequences += zip(torch.stack(written, 1).tolist(), torch.stack(likely, 1).tolist(), strict=True)
    return sequences


def piece_log_probs(translator: Translator, target: Sequence[int], rows: Sequence[ForcedSource]) -> Tensor:
    """The log-probabilities [R, T] of the target tokens for each of R rows, on the CPU."""
    batches = []
    with torch.inference_mode(), translator.compute.autocast():
        for batch in _batches(translator, rows):
            steps = zip(_steps(translator, target, batch), target, strict=True)
            batches.append(torch.stack([log_probs[:, token].float().cpu() for (log_probs, _), token in steps], 1))
    return torch.cat(batches)


def _batches(translator: Translator, rows: Sequence[ForcedSource]) -> Iterator[Sequence[ForcedSource]]:
    size = translator.batch_sentences
    return (rows[first : first + size] for first in range(0, len(rows), size))


def _steps(
    translator: Translator, target: Sequence[int], rows: Sequence[ForcedSource]
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield for each target token the log-probabilities [R, V] and the weights [R, H, S] of R rows."""
    state, device = _start(translator, rows), translator.compute.device
    for previous in [BOS, *target[:-1]]:
        log_probs, weights, state = translator.stepper(torch.full((len(rows),), previous, device=device), state)
        yield log_probs, weights


def _start(translator: Translator, rows: Sequence[ForcedSource]) -> Any:
    """The stepper's state before the first step, for R rows."""
    batch = make_batch([list(row.source) for row in rows], None, list(range(len(rows))))
    batch = batch._replace(context=context_tensor([row.context for row in rows])).to(translator.compute.device)
    return translator.stepper.start(Source.of(batch, [row.pins for row in rows]))


def _layers(model: Seq2Seq, observed: Observed, known: Known) -> list[LayerStages]:
    """The stages of each attention from the decoder to the source, over all steps, on the CPU."""
    layers = []
    names = list(model.decoder.heads)
    by_module = {model.decoder.get_submodule(name): calls for name, calls in observed.items()}
    for attention in model.decoder.source_attentions:
        assert isinstance(attention, Attention)
        calls = [attended for attended in by_module[attention] if attended.stages is not None]
        steps = [attended.stages for attended in calls if attended.stages is not None]
        views, shapes = [stages.view for stages in steps], [stages.weights for stages in steps]
        weights = _over_steps(shapes, shapes)
        bias, factor = (
            None if getattr(views[0], part) is None else _over_steps([getattr(view, part) for view in views], shapes)
            for part in ("bias", "factor")
        )
        centres = None
        if views[0].centres is not None:
            columns = [view.centres.unsqueeze(-1) for view in views if view.centres is not None]
            centres = _over_steps(columns, [shape[..., :1] for shape in shapes]).squeeze(-1)
        view = View(_over_steps([view.visible for view in views], shapes).bool(), bias, factor, centres)
        energies, shares = (
            _over_steps([getattr(stages, part) for stages in steps], shapes) for part in ("energies", "shares")
        )
        heads, names = names[: attention.heads], names[attention.heads :]
        slots = weights.argmax(-1) if attention.read.draws else None
        queries = torch.cat([stages.queries[0].float() for stages in steps], 1)
        vectors = None
        if attention in known:
            keys, values, key_of = known[attention]
            vectors = vectors_of(attention, queries, keys, values, model.decoder.asks)._replace(key_of=key_of)
            if attention.out is not None or attention.merge is not None:
                merged = torch.cat([attended.context[0] for attended in calls])
                vectors = vectors._replace(merged=merged.float().cpu())
        parts = Stages(energies, view, shares, weights, queries.cpu())
        layers.append(LayerStages(attention, heads, parts, slots, vectors))
    return layers


@contextlib.contextmanager
def _knowing(attentions: Iterable[nn.Module], known: Known) -> Iterator[None]:
    """Record in `known` the keys and values of attentions, split into heads."""

    def remembering(attention: Attention) -> Callable[..., Memory]:
        def remember(values: Tensor, mask: Tensor, keys: Tensor | None = None, *pins: Any) -> Memory:
            raw = attention.split(attention.key, values if keys is None else keys)
            known[attention] = raw, attention.split(attention.value, values), "h_j" if keys is None else "z_j"
            return Attention.remember(attention, values, mask, keys, *pins)

        return remember

    of_source = [attention for attention in attentions if isinstance(attention, Attention)]
    for attention in of_source:
        vars(attention)["remember"] = remembering(attention)
    try:
        yield
    finally:
        for attention in of_source:
            del vars(attention)["remember"]


def vectors_of(attention: Attention, queries: Tensor, keys: Tensor, values: Tensor, asks: Asks | None) -> Vectors:
    """The vectors of an attention for its queries [h, T, D], keys and values [1, h, S, D]."""
    terms = attention.score.terms(queries.unsqueeze(0), attention.score.prepare(keys))
    return Vectors(asks, queries, keys[0], values[0], terms)


def _over_steps(parts: Sequence[Tensor | None], shapes: Sequence[Tensor]) -> Tensor:
    """Concatenate one part of each step, broadcast to `shapes` [1, h, 1, S], to [h, T, S]."""
    whole = [part.expand_as(shape)[0].float().cpu() for part, shape in zip(parts, shapes) if part is not None]
    return torch.cat(whole, 1)
