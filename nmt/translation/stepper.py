"""The step function of a search, for one model or an ensemble."""

import contextlib
import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.model import Seq2Seq, Source
from nmt.model.contract import Selectable
from nmt.model.seq2seq import Output
from nmt.search import SearchState
from nmt.system.compute import CPU, Compute
from nmt.translation.int8 import Int8Linear
from nmt.translation.shortlist import Candidates


class ModelState(NamedTuple):
    """The search state of one model. All hypotheses of a sentence share its memory and its part of the output layer."""

    memory: Selectable
    decoder: Selectable
    output: Output | None = None

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "ModelState":
        """The state of the hypotheses `rows`, and of `sentences` if other sentences are finished."""
        memory = self.memory if sentences is None else self.memory.select(sentences)
        output = self.output
        if sentences is not None and output is not None:
            output = output[0], output[1].index_select(0, sentences)
        return ModelState(memory, self.decoder.select(rows), output)


class EnsembleState(NamedTuple):
    """The states of all models, in order, and the ids [C] of the candidates if there is a shortlist."""

    members: tuple[ModelState, ...]
    ids: Tensor | None = None

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "EnsembleState":
        """The same selection of every member; see `ModelState.select`."""
        return EnsembleState(tuple(member.select(rows, sentences) for member in self.members), self.ids)


def no_check() -> None:
    """Never stop a search: the default for `check`."""


class Stepper:
    """The step function of one model or of an ensemble, which averages the probabilities and weights of its models."""

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        compute: Compute = CPU,
        *,
        weights: bool = True,
        check: Callable[[], None] = no_check,
    ) -> None:
        """`compute` sets the type of matrix products; with types other than float32, parameters are copied here.

        Attention weights are returned only with `weights`; `heads` has the names of their heads. `check` is called
        between the steps of a search; an error that it raises ends the search.
        """
        self.models = [cast_once(model, compute) for model in models]
        self.weights = weights
        self.heads = heads_of(models)
        self.check = check

    @property
    def key(self) -> Hashable:
        """Step functions with equal keys compute equal results from equal tokens and states, if no model changes."""
        device = self.models[0].output.weight.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        return (*self.models, dtype, self.weights)

    def start(self, source: Source, candidates: Candidates | None = None, room: int | None = None) -> EnsembleState:
        """The state before the first token.

        With `candidates`, tokens are indices among them. With `room`, caches have space for this many steps from the
        start, so that tensor shapes stay fixed.

        Raises:
            UserError: there are pins, but a model has no attention.
        """
        encoded = [model.encode(source, searching=True) for model in self.models]
        if room is not None:
            steppers = zip(self.models, encoded, strict=True)
            encoded = [(memory, model.decoder.with_room(state, room)) for model, (memory, state) in steppers]
        outputs = [None if candidates is None else candidates.output(model.output) for model in self.models]
        members = tuple(ModelState(*parts, output) for parts, output in zip(encoded, outputs, strict=True))
        return EnsembleState(members, None if candidates is None else candidates.ids)

    def __call__(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        """Previous tokens [N] -> log-probabilities [N, V or C], weights [N, H, S] or None, the next state."""
        assert isinstance(state, EnsembleState)
        self.check()
        if state.ids is not None:
            tokens = state.ids[tokens]
        log_probs: list[Tensor] = []
        weights: list[Tensor] = []
        members: list[ModelState] = []
        for model, member in zip(self.models, state.members, strict=True):
            stepped = model.step(tokens, member.decoder, member.memory, member.output, weights=self.weights)
            log_probs.append(stepped.log_probs)
            if stepped.weights is not None:
                weights.append(stepped.weights)
            members.append(ModelState(member.memory, stepped.state, member.output))
        following = EnsembleState(tuple(members), state.ids)
        if len(self.models) == 1:
            return log_probs[0], weights[0] if weights else None, following
        mixed = torch.logsumexp(torch.stack(log_probs), 0) - torch.log(torch.tensor(float(len(log_probs))))
        if not weights:
            return mixed, None, following
        slots = min(of_model.shape[-1] for of_model in weights)  # models may see different numbers of context slots
        weights = [of_model[..., :slots] for of_model in weights]
        if {of_model.shape[1] for of_model in weights} != {len(self.heads)}:  # different heads: take means
            weights = [of_model.mean(1, keepdim=True) for of_model in weights]
        return mixed, torch.stack(weights).mean(0), following


def heads_of(models: Sequence[Seq2Seq]) -> Sequence[str]:
    """The names of the heads whose weights an ensemble returns; one head, the mean, if the models' heads differ."""
    heads = {tuple(model.decoder.heads) for model in models if model.decoder.heads}
    return ("0",) if len(heads) > 1 else next(iter(heads), ())


def cast_once(model: Seq2Seq, compute: Compute) -> Seq2Seq:
    """A copy of the model with its decoder in the type of matrix products, and its output layer in int8 on request.

    Otherwise, autocast would cast each matrix at every step. This takes a tenth of the time on a CPU, and one kernel
    launch per matrix on a GPU. A model that needs no cast is returned unchanged.
    """
    dtype = compute.dtype
    if (dtype is None and not compute.int8) or not model.fast:
        return model
    cast = copy.deepcopy(model).requires_grad_(False)
    if compute.int8:
        cast.output = Int8Linear(cast.output)
    if dtype is None:
        return cast
    if not compute.int8:
        cast.output.weight = nn.Parameter(cast.output.weight.to(dtype), requires_grad=False)  # no longer tied
    for layer in cast.decoder.modules():
        if isinstance(layer, nn.Embedding):  # position embeddings: no matrix product
            continue
        for name, parameter in [*layer.named_parameters(recurse=False)]:
            if parameter.ndim == 2:
                setattr(layer, name, nn.Parameter(parameter.to(dtype), requires_grad=False))
    return cast


@contextlib.contextmanager
def evaluating(models: Sequence[Seq2Seq]) -> Iterator[None]:
    """Set models to evaluation mode inside the context, and restore their modes afterwards."""
    training = [model.training for model in models]
    try:
        for model in models:
            model.eval()
        yield
    finally:
        for model, was_training in zip(models, training, strict=True):
            model.train(was_training)
