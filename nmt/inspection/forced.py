"""One sentence and the pieces of its translation -> what the model computed at each step.

The model predicts the pieces again, one step at a time, by the step function of search. So every kind of decoder and an
ensemble are looked at in the same way, and the log-probabilities are those of the search.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Attention, Hard, Pins, Stages
from nmt.compute import Compute
from nmt.data.batch import make_batch
from nmt.data.document_lines import context_tensor
from nmt.text.tokenizer import BOS, EOS, Tokenizer
from nmt.translation.looking import END
from nmt.translation.stepping import Stepper
from nmt.translation.types import Translation


class LayerStages(NamedTuple):
    """How the energies of one attention became weights over a whole target.

    Attributes:
        attention: the module.
        heads: [h] the names of its heads.
        stages: each part [h, T, S].
        centres: [h, T] of the windows, in source pieces; None without.
        slots: [h, T] that a hard read reads; None for a weighted mean.
    """

    attention: Attention
    heads: Sequence[str]
    stages: Stages
    centres: Tensor | None
    slots: Tensor | None


class Inspected(NamedTuple):
    """What the models predicted at each of T steps.

    Attributes:
        tokens: [T] the pieces that they were made to write.
        log_probs: [T, V] natural logs, on the CPU.
        weights: [H, T, S] attention weights; None without attention.
        layers: the stages of each attention of the first model; empty if they were not asked for.
    """

    tokens: list[int]
    log_probs: Tensor
    weights: Tensor | None
    layers: list[LayerStages]

    @property
    def of_pieces(self) -> list[float]:
        """[T] the log-probability of each piece."""
        return self.log_probs.gather(1, torch.tensor(self.tokens).unsqueeze(1)).squeeze(1).tolist()

    def alternatives(self, count: int) -> list[list[tuple[int, float]]]:
        """[T] the `count` most probable tokens of each step with their log-probabilities, best first."""
        values, tokens = self.log_probs.topk(min(count, self.log_probs.shape[1]), 1)
        return [list(zip(*row, strict=True)) for row in zip(tokens.tolist(), values.tolist(), strict=True)]


def tokens_of(tokenizer: Tokenizer, translation: Translation) -> tuple[list[int], list[int]]:
    """The source tokens without the end of sentence, and the target tokens of a translation."""
    pieces = translation.pieces
    target = tokenizer.target.ids(pieces[:-1] if pieces[-1:] == [END] else pieces)
    return tokenizer.source.ids(translation.source_pieces[:-1]), [*target, *([EOS] * (pieces[-1:] == [END]))]


def context_of(tokenizer: Tokenizer, translation: Translation) -> list[list[int]]:
    """The tokens of each sentence before the source that the model saw, without the end of sentence."""
    return [tokenizer.source.ids(sentence.pieces[:-1]) for sentence in translation.context]


def inspect(
    stepper: Stepper,
    source: Sequence[int],
    target: Sequence[int],
    compute: Compute,
    *,
    stages: bool = False,
    context: Sequence[Sequence[int]] = (),
    pins: Mapping[int, Sequence[int]] = {},
) -> Inspected:
    """Let the models of `stepper`, in evaluation mode, predict `target` from `source`.

    Args:
        stepper: of one model or an ensemble.
        source: tokens without the end of sentence, at least one.
        target: tokens as search returns them, at least one.
        compute: device and type of matrix products.
        stages: whether to record how the first model's energies become weights.
        context: tokens of the sentences before the source, the nearest one last.
        pins: the slots that single steps look at.

    Raises:
        UserError: there are pins, but a model has no attention.
    """
    log_probs: list[Tensor] = []
    weights: list[Tensor] = []
    with torch.inference_mode(), compute.autocast(), _recording(stepper, stages) as records:
        for step_log_probs, step_weights in _steps(stepper, [source], target, compute, [context], [pins]):
            log_probs.append(step_log_probs[0].float().cpu())
            if step_weights is not None:
                weights.append(step_weights[0].float().cpu())
        return Inspected(
            list(target),
            torch.stack(log_probs),
            torch.stack(weights, 1) if weights else None,
            _layers(stepper, records),
        )


def last_step(
    stepper: Stepper,
    source: Sequence[int],
    target: Sequence[int],
    compute: Compute,
    context: Sequence[Sequence[int]],
    pins: Sequence[Pins],
) -> Tensor:
    """[R, V] the log-probabilities of the last target token with each of R pins, on the CPU; see `inspect`."""
    with torch.inference_mode(), compute.autocast():
        *_, (log_probs, _) = _steps(stepper, [source] * len(pins), target, compute, [context] * len(pins), pins)
        return log_probs.float().cpu()


def piece_log_probs(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    target: Sequence[int],
    compute: Compute,
    contexts: Sequence[Sequence[Sequence[int]]],
    pins: Pins,
) -> Tensor:
    """[R, T] the log-probabilities of the target tokens after each of R sources with its context, on the CPU."""
    with torch.inference_mode(), compute.autocast():
        steps = _steps(stepper, sources, target, compute, contexts, [pins] * len(sources))
        columns = [log_probs[:, token].float().cpu() for (log_probs, _), token in zip(steps, target, strict=True)]
        return torch.stack(columns, 1)


def _steps(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    target: Sequence[int],
    compute: Compute,
    contexts: Sequence[Sequence[Sequence[int]]],
    pins: Sequence[Pins],
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """At each target token the log-probabilities [R, V] and weights [R, H, S] of each of R sources with its pins."""
    count = len(sources)
    batch = make_batch([list(source) for source in sources], None, list(range(count)))
    batch = batch._replace(context=context_tensor(contexts)).to(compute.device)
    state: Any = stepper.start(batch.source, batch.source_mask, batch.source_lengths, None, batch.context, pins)
    for previous in [BOS, *target[:-1]]:
        log_probs, weights, state = stepper(torch.full((count,), previous, device=compute.device), state)
        yield log_probs, weights


_Records = dict[nn.Module, list[tuple[Stages, Tensor | None]]]


@contextlib.contextmanager
def _recording(stepper: Stepper, wanted: bool) -> Iterator[_Records]:
    """The stages of each call of the first model's attentions in this context, by module."""
    records: _Records = {}
    handles = []

    def record(module: nn.Module, arguments: Any, keywords: Any, output: Any) -> None:
        assert isinstance(module, Attention)
        keywords = {name: value for name, value in keywords.items() if name != "weights"}
        records[module].append(module.stages(*arguments, **keywords))

    try:
        for attention in stepper.models[0].decoder.source_attentions if wanted else ():
            records[attention] = []
            handles.append(attention.register_forward_hook(record, with_kwargs=True))
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _layers(stepper: Stepper, records: _Records) -> list[LayerStages]:
    """The records of each module over all steps."""
    layers = []
    names = list(stepper.models[0].decoder.heads)
    for attention, steps in records.items():
        assert isinstance(attention, Attention)
        parts = [[_whole(part, each[0].weights) for part in _stage_parts(each[0])] for each in steps]
        energies, visible, bias, factor, shares, weights = (
            None if of_steps[0] is None else torch.cat([part for part in of_steps if part is not None], 1)
            for of_steps in zip(*parts, strict=True)
        )
        assert energies is not None
        assert visible is not None
        assert shares is not None
        assert weights is not None
        view = steps[0][0].view._replace(visible=visible.bool(), bias=bias, factor=factor)
        centres = [centre[0].float().cpu() for _, centre in steps if centre is not None]
        hard = isinstance(attention.read, Hard) and not attention.read.enumerates
        heads, names = names[: attention.heads], names[attention.heads :]
        layers.append(
            LayerStages(
                attention,
                heads,
                Stages(energies, view, shares, weights),
                torch.cat(centres, 1) if centres else None,
                weights.argmax(-1) if hard else None,
            )
        )
    return layers


def _stage_parts(stages: Stages) -> tuple[Tensor | None, ...]:
    view = stages.view
    return stages.energies, view.visible, view.bias, view.factor, stages.shares, stages.weights


def _whole(part: Tensor | None, like: Tensor) -> Tensor | None:
    """A part of one sentence [h, 1, S] on the CPU; it may only broadcast to the shape of `like`."""
    return None if part is None else part.expand_as(like)[0].float().cpu()
