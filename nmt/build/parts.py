"""Configuration -> objects. The only module that instantiates from configuration.

A yaml node names a class with `_target_` and gives its settings. This module passes the sizes and objects that depend
on other choices. Classes come only from the installed yaml files (`nmt.config.choices`), so a run from a stranger
cannot execute code.
"""

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn

from nmt.attention import Attention, AttentionSettings, Normaliser, Read, Score, Window
from nmt.config.choices import place
from nmt.config.configuration import TARGET, flattened, scalars
from nmt.data.dataset import DataSource
from nmt.model import Decoder, Encoder, Readout, Seq2Seq, Sizes, initialise
from nmt.model.context.mechanism import ContextMechanism
from nmt.model.contract import AnyDecoder, DecoderParts
from nmt.model.positions import Positions
from nmt.search import Search
from nmt.system.errors import UserError
from nmt.system.limits import Fraction, Positive, checked
from nmt.system.platform import free_memory
from nmt.text.tokenizer import PAD, Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.training.schedules import Schedule
from nmt.training.settings import TrainerSettings

Part = TypeVar("Part")


def locate(target: object, kind: type[Part], key: str) -> type[Part]:
    """The class with the dotted path `target`, which must be a subclass of `kind`; `key` is for messages.

    Raises:
        UserError: the path is not a class of this program or an optimizer of torch, or not a subclass of `kind`.
    """
    module_name, _, class_name = str(target).rpartition(".")
    place = None
    if module_name.startswith("nmt.") or module_name == "torch.optim":
        with contextlib.suppress(ImportError):
            place = getattr(importlib.import_module(module_name), class_name, None)
    if not inspect.isclass(place) or not issubclass(place, kind):
        raise UserError(f"{key}.{TARGET}={target} is not a {kind.__name__} of this program.")
    return place


#: Place of the settings -> name of the choice: {"attention.score": "dot", ...}.
Choices = Mapping[str, str]


def _choices(config: DictConfig) -> Choices:
    return {place(str(key)): str(choice) for key, choice in config.choices.items()}


def part(
    node: DictConfig | Mapping[str, Any], kind: type[Part], key: str, choices: Choices | None = None
) -> Callable[..., Part]:
    """A constructor with the settings of `node` filled in; arguments that depend on other choices are passed to it.

    With `choices`, the part gets the name of its choice as the attribute `choice`.

    Raises:
        UserError: the class is not allowed at `key`, has no such setting, or does not accept a value.
    """
    settings = _plain(node, key)
    if TARGET not in settings:
        raise UserError(f"{key} names no class. Choose one of its options.")
    class_ = locate(settings.pop(TARGET), kind, key)
    for name in settings:
        if isinstance(settings[name], dict):
            raise UserError(f"{key}.{name} is a group of settings where {class_.__name__} takes a value.")
    make = checked(class_, settings, key)
    if choices is None:
        return make

    @functools.wraps(make, updated=())
    def named(*parts: Any, **others: Any) -> Part:
        instance = make(*parts, **others)
        instance.choice = choices.get(key, "")  # type: ignore[attr-defined]
        return instance

    return named


def _plain(node: DictConfig | Mapping[str, Any], key: str) -> dict[str, Any]:
    try:
        plain = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else dict(node)
    except OmegaConfBaseException as error:
        raise UserError(f"{key} cannot be resolved: {str(error).splitlines()[0]}") from error
    if not isinstance(plain, dict):
        raise UserError(f"{key} must be a group of settings.")
    return {str(name): value for name, value in plain.items()}


@dataclass(frozen=True)
class ModelSettings:
    """The settings of the model as a whole, `model.` in the configuration.

    Attributes:
        embedding_size: size of source and target embeddings.
        tie_embeddings: which weights are shared: none, target embeddings and output layer, or source embeddings too.
        dropout: dropout of embeddings.
        output_dropout: dropout of the decoder's features before the softmax; None for `dropout`, or for 0 if the
            decoder drops its features itself.
        fast: whether fast kernels may be used.
    """

    embedding_size: Positive
    tie_embeddings: Literal["none", "target", "all"]
    dropout: Fraction
    output_dropout: Fraction | None
    fast: bool


def model_settings(config: DictConfig) -> ModelSettings:
    """The settings of the model as a whole."""
    return checked(ModelSettings, _plain(config.model, "model"), "model")()


def check_settings(config: DictConfig) -> None:
    """Check the settings of every choice against the constructor that takes them, before any work.

    Raises:
        UserError: a class does not have a setting, or does not accept its value.
    """
    model_settings(config)
    for key in map(place, config.choices):
        settings = {
            name: value
            for name, value in _plain(OmegaConf.select(config, key), key).items()
            if not isinstance(value, dict)
        }
        checked(locate(settings.pop(TARGET), object, key), settings, key)


def build_source(config: DictConfig) -> DataSource:
    """The data set."""
    return part(config.data, DataSource, "data")()  # type: ignore[type-abstract]


def build_tokenizer_trainer(config: DictConfig) -> TokenizerTrainer:
    """The trainer of the tokenizer."""
    return part(config.tokenizer, TokenizerTrainer, "tokenizer")()


def build_trainer(config: DictConfig) -> TrainerSettings:
    """The settings of the training loop."""
    return part(config.trainer, TrainerSettings, "trainer")()


def build_schedule(config: DictConfig) -> Schedule:
    """The learning-rate schedule."""
    return part(config.schedule, Schedule, "schedule")()


def build_search(node: Mapping[str, Any]) -> Search:
    """The search: greedy, beam or sampling."""
    return part(node, Search, "search")()


def build_optimizer(config: DictConfig, model: Seq2Seq) -> torch.optim.Optimizer:
    """The optimiser; weight decay acts on matrices, not on embeddings and vectors."""
    embeddings = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in model.parameters():
        (matrices if parameter.ndim > 1 and id(parameter) not in embeddings else others).append(parameter)
    settings = _plain(config.optimizer, "optimizer")

    def make(settings: Mapping[str, Any]) -> torch.optim.Optimizer:
        groups = [{"params": matrices}, {"params": others, "weight_decay": 0.0}]
        return part(settings, torch.optim.Optimizer, "optimizer")(groups)

    try:
        return make(settings)
    except (ValueError, TypeError, RuntimeError) as error:
        for name, value in settings.items():  # torch does not name the invalid setting: the others work without it
            if name == TARGET:
                continue
            try:
                make({other: settings[other] for other in settings if other != name})
            except (ValueError, TypeError, RuntimeError):
                continue
            raise UserError(f"optimizer.{name}={value}: torch refuses it ({error}).") from error
        raise UserError(f"The optimizer's settings do not fit together: {error}") from error


def build_attention(
    node: DictConfig | Mapping[str, Any],
    query_size: int,
    value_size: int,
    key: str = "attention",
    choices: Choices | None = None,
    **use: Any,
) -> Attention:
    """An attention for these sizes, composed of a score, a window, a normaliser and a read.

    `key` is the node's place in the configuration; `choices` names its parts; `use` are arguments of its owner.
    """
    settings = _plain(node, key)
    nodes = {name: settings.pop(name, {}) for name in ("score", "window", "normaliser", "read")}
    make = checked(part(settings, AttentionSettings, key)().make, {}, key)
    return make(
        part(nodes["score"], Score, f"{key}.score", choices),
        part(nodes["window"], Window, f"{key}.window", choices),
        part(nodes["normaliser"], Normaliser, f"{key}.normaliser", choices),
        part(nodes["read"], Read, f"{key}.read", choices),
        query_size=query_size,
        value_size=value_size,
        **use,
    )


def _makers(settings: dict[str, Any], key: str, choices: Choices) -> dict[str, Callable[..., Any]]:
    """Constructors of the parts of an encoder or a decoder, whose nodes are removed from its settings."""
    makers: dict[str, Callable[..., Any]] = {}
    for name, kind in (("readout", Readout), ("positions", Positions)):
        if name in settings:
            makers[name] = part(settings.pop(name), kind, f"{key}.{name}")
    if "self_attention" in settings:
        node = settings.pop("self_attention")
        makers["self_attention"] = functools.partial(
            build_attention, node, key=f"{key}.self_attention", choices=choices
        )
    return makers


def _encoder(settings: dict[str, Any], key: str, choices: Choices, embedding_size: int) -> Encoder:
    """The encoder; its constructor makes the parts of its layers."""
    makers = _makers(settings, key, choices)
    for name in ("first", "then"):  # the parts of an encoder that combines two encoders
        if name in settings:
            makers[name] = functools.partial(_encoder, settings.pop(name), f"{key}.{name}", choices)
    return part(settings, Encoder, key)(embedding_size=embedding_size, **makers)


def build_decoder(config: DictConfig, encoder: Encoder, embedding_size: int) -> AnyDecoder:
    """The decoder; its constructor makes the attention and other parts, for sizes that it knows."""
    settings = _plain(config.decoder, "decoder")
    choices = _choices(config)
    attention = functools.partial(build_attention, config.attention, choices=choices)
    sizes = Sizes(embedding_size, encoder.size, encoder.directions)
    parts = DecoderParts(attention, sizes, **_makers(settings, "decoder", choices))
    return part(settings, Decoder, "decoder")(parts)


def build_context(config: DictConfig, encoder: Encoder) -> ContextMechanism | None:
    """The mechanism that gives previous sentences to the model; None for a model of single sentences."""
    settings = _plain(config.context, "context")
    if not settings["sentences"]:
        return None
    choices = _choices(config)
    makers = {
        name: functools.partial(build_attention, settings.pop(name), key=f"context.{name}", choices=choices)
        for name in ("word_attention", "sentence_attention")
        if name in settings
    }
    return part(settings, ContextMechanism, "context")(encoder, **makers)


def build_model(config: DictConfig, tokenizer: Tokenizer, *, initial: bool = True) -> Seq2Seq:
    """The whole model for a tokenizer's vocabularies (arguments and errors as `assemble`)."""
    model = assemble(config, tokenizer.source.size, tokenizer.target.size, tokenizer.joint, initial=initial)
    settings = flattened(cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True)))
    model.identity = {"tokenizer": tokenizer.fingerprint} | {
        key: str(value)
        for key, value in sorted(settings.items())
        if place(key).split(".")[0] in _OF_WEIGHTS and not key.endswith(_NOT_OF_WEIGHTS)
    }
    return model


#: Settings that determine weights, by the first part of their key; and endings of keys that do not matter for weights.
_OF_WEIGHTS = ("encoder", "decoder", "attention", "context", "model", "seed")
_NOT_OF_WEIGHTS = ("dropout", "fast", "searched")


#: With a size above this, the weights of a model are counted before memory is allocated for them.
_LARGE = 8192


def _may_be_absurd(config: DictConfig) -> bool:
    """Whether a size of the model is so large that its weights should be counted before they are allocated."""
    parts = [config[part] for part in ("model", "encoder", "decoder", "attention", "context") if part in config]
    return any(isinstance(value, int) and value > _LARGE for value in scalars(parts))


def _check_memory(parameters: int) -> None:
    """Raise UserError if the weights of a model alone need more than the free memory."""
    needed, free = 4 * parameters, free_memory()
    if needed > free:
        raise UserError(
            f"The model would have {parameters:,} parameters, which need {needed / 1e9:,.0f} GB, and {free / 1e9:,.0f} "
            "GB of memory are free. Give smaller sizes: model.embedding_size, encoder.size, decoder.size, layers."
        )


def assemble(
    config: DictConfig, source_pieces: int, target_pieces: int, joint: bool, *, initial: bool = True
) -> Seq2Seq:
    """The whole model for vocabularies of these sizes.

    Its parameters are initialised with `seed`, unless `initial` is false, since trained ones replace them at once.

    Raises:
        UserError: sizes do not fit together; the message gives an override that fixes it.
    """
    settings = model_settings(config)
    if torch.get_default_device().type != "meta" and _may_be_absurd(config):
        with torch.device("meta"):  # allocates no memory for weights
            counted = assemble(config, source_pieces, target_pieces, joint, initial=False)
        _check_memory(sum(parameter.numel() for parameter in counted.parameters()))
    embedding_size, tie = settings.embedding_size, settings.tie_embeddings
    if tie == "all" and not joint:
        raise UserError(
            "model.tie_embeddings=all needs one vocabulary for both languages, but there are two. Give "
            "model.tie_embeddings=target, or tokenizer.joint=true and at most one tokenizer.model."
        )
    encoder = _encoder(_plain(config.encoder, "encoder"), "encoder", _choices(config), embedding_size)
    decoder = build_decoder(config, encoder, embedding_size)
    features = decoder.features
    if tie != "none" and features != embedding_size:
        key = "decoder.readout.size" if "readout" in config.decoder else "decoder.size"
        raise UserError(
            f"Tied embeddings need {key} to be model.embedding_size, but they are {features} and {embedding_size}. "
            f"Give {key}={embedding_size} or model.tie_embeddings=none."
        )
    source = nn.Embedding(source_pieces, embedding_size, padding_idx=PAD)
    target = source if tie == "all" else nn.Embedding(target_pieces, embedding_size, padding_idx=PAD)
    output = nn.Linear(features, target_pieces)
    if tie != "none":
        output.weight = target.weight
    before_softmax = settings.output_dropout
    if before_softmax is None:
        before_softmax = 0.0 if decoder.drops_features else settings.dropout
    context = build_context(config, encoder)
    if context is not None and context.only_slots and not decoder.heads:
        raise UserError(
            f"context={config.choices['context']} changes what the decoder attends to, and decoder=none attends to "
            "nothing. Give context=concat, or a decoder with attention."
        )
    model = Seq2Seq(source, target, encoder, decoder, output, settings.dropout, before_softmax, settings.fast, context)
    if initial:
        initialise(model, int(config.seed))
    return model
