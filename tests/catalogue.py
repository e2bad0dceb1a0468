"""What the configuration offers, read from its folders, so that a new mechanism is tested without a new line."""

import functools
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from nmt.attention import Attention
from nmt.build.parts import assemble, build_attention
from nmt.config.composition import compose
from nmt.config.configuration import config_folder
from nmt.model import Decoded, Seq2Seq, Source
from nmt.model.recurrent.attentive import AttentiveDecoder, RecurrentMemory
from nmt.model.recurrent.recurrent_decoder import RecurrentDecoder, RecurrentState

CONFIGS = config_folder()


def options(group: str) -> list[str]:
    """The choices of a group, such as "attention/score"."""
    return sorted(path.stem for path in Path(CONFIGS, group).glob("*.yaml"))


def thinned(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases of a parameter; all but each `every`-th, from the first, are for `make test-long` alone."""
    return [case if at % every == 0 else pytest.param(case, marks=pytest.mark.long) for at, case in enumerate(cases)]


SCORES, WINDOWS, NORMALISERS, READS = (
    options(f"attention/{room}") for room in ("score", "window", "normaliser", "read")
)
#: Windows as overrides, with what they cannot do without.
WINDOWED = [
    (f"attention/window={window}", *(["attention.window.slots=[null]"] if window == "forced" else []))
    for window in WINDOWS
]
ENCODERS = options("encoder")
DECODERS, READOUTS = options("decoder"), options("decoder/readout")
ATTENTIVE = [decoder for decoder in DECODERS if decoder != "none"]
#: Recurrent decoders.
WIRINGS = [decoder for decoder in DECODERS if decoder not in ("transformer", "conv")]
WITH_ATTENTION = [wiring for wiring in WIRINGS if wiring != "none"]
#: Refused: they would not use their attention, not see the previous word, or know nothing of the sentence.
USELESS = {("luong", "state"), ("bahdanau", "context"), ("none", "context")}
WIRED_READOUTS = [pair for pair in itertools.product(WIRINGS, READOUTS) if pair not in USELESS]


@functools.cache
def _settings(room: str, choice: str) -> Any:
    return OmegaConf.to_container(OmegaConf.load(Path(CONFIGS, "attention", room, f"{choice}.yaml")))


def attention(
    score: str = "additive",
    window: str = "global",
    read: str = "soft",
    normaliser: str = "softmax",
    *,
    query_size: int = 10,
    value_size: int = 10,
    size: int = 6,
    heads: int = 1,
    coverage: bool = False,
    seed: int = 3,
    **settings: Any,
) -> Attention:
    """A mechanism as the yaml files describe it, with random parameters, in double precision.

    `settings` (radius, slots, dropout, ...) go to whichever of the files has them.
    """
    if window == "forced":
        settings.setdefault("slots", [None])
    settings |= {"heads": heads, "size": size, "coverage": coverage}
    files = (("", "default"), ("score", score), ("window", window), ("normaliser", normaliser), ("read", read))
    nodes = {
        room: {key: settings.get(key, value) for key, value in _settings(room, choice).items() if key != "defaults"}
        for room, choice in files
    }
    node = OmegaConf.create({**nodes.pop(""), **nodes})
    made = build_attention(node, query_size, value_size).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return made.eval()


#: Sizes that are all different, so that no two axes can be confused. Dot products need one size on both sides.
SMALL = [
    "model.embedding_size=7",
    "model.dropout=0.0",
    "model.tie_embeddings=none",
    "encoder.size=5",
    "decoder.size=10",
    "attention.size=6",
    "decoder.readout.size=11",
]
#: What these have in their place, or beside it, by choice.
SMALL_OF = {
    "encoder=conv": ["encoder.size=12", "encoder.layers=2"],
    "encoder=transformer": ["encoder.size=12", "encoder.self_attention.heads=3", "encoder.layers=2"],
    "encoder=stacked": [*("encoder.first.size=5", "encoder.then.size=12", "encoder.then.self_attention.heads=3")],
    "encoder/then=conv": ["encoder.then.self_attention.heads="],
    "context=hierarchical": ["context.word_attention.size=8", "context.sentence_attention.size=12"],
    "decoder=conv": ["decoder.readout.size=", "decoder.layers=2"],
    "decoder=transformer": [
        *("decoder.readout.size=", "decoder.self_attention.heads=5", "decoder.layers=2"),
        "attention.heads=2",
    ],
}


def has_setting(group: str, choice: str, name: str) -> bool:
    """Whether the yaml of a choice has a setting."""
    return name in OmegaConf.load(Path(CONFIGS, group, f"{choice}.yaml"))


def small(*overrides: str) -> list[str]:
    """`SMALL` and the overrides, with the sizes that the encoder and the decoder have."""
    values = dict(word.partition("=")[::2] for word in SMALL)
    for group in ("encoder", "encoder/then", "decoder", "context"):
        choice = next((word for word in reversed(overrides) if word.startswith(f"{group}=")), "")
        values.update(word.partition("=")[::2] for word in SMALL_OF.get(choice, []))
        if group == "encoder" and choice and not has_setting("encoder", choice.partition("=")[2], "size"):
            values["encoder.size"] = ""
    return [*(f"{key}={value}" for key, value in values.items() if value), *overrides]


@functools.cache
def _composed(*overrides: str) -> DictConfig:
    return compose("train", overrides)


def model(*overrides: str, pieces: tuple[int, int] = (23, 29), joint: bool = False, train: bool = False) -> Seq2Seq:
    """A small model composed from the real configuration, in double precision: `bahdanau` unless told otherwise.

    Its score is `additive`.
    """
    return assembled(
        _composed("decoder=bahdanau", "attention/score=additive", *small(*overrides)),
        pieces=pieces,
        joint=joint,
        train=train,
    )


def assembled(
    config: DictConfig, pieces: tuple[int, int] = (23, 29), joint: bool = False, train: bool = False
) -> Seq2Seq:
    """`model` from a configuration that is composed already."""
    made = assemble(config, *pieces, joint).double()
    with torch.no_grad():  # biases start at zero, where mistakes hide
        generator = torch.Generator().manual_seed(5)
        for parameter in made.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return made.train(train)


def recurrent(made: Seq2Seq) -> RecurrentDecoder[Any]:
    """The decoder of a recurrent model."""
    assert isinstance(made.decoder, RecurrentDecoder)
    return made.decoder


def attentive(made: Seq2Seq) -> AttentiveDecoder:
    """The decoder of a recurrent model with attention."""
    assert isinstance(made.decoder, AttentiveDecoder)
    return made.decoder


def started(made: Seq2Seq, source: Source, searching: bool = False) -> tuple[RecurrentMemory, RecurrentState]:
    """Memory and first state of a recurrent model with attention."""
    memory, state = made.encode(source, searching=searching)
    assert isinstance(memory, RecurrentMemory)
    assert isinstance(state, RecurrentState)
    return memory, state


def searched(made: Seq2Seq, decoded: Decoded) -> torch.Tensor:
    """Log-probabilities [B, T, V] of a forced target as search has them: of a mixture, those of the whole."""
    if decoded.mixture is None:
        return torch.log_softmax(made.logits(decoded.features), -1)
    shares = decoded.mixture.log_weights.exp().unsqueeze(-1)
    return (shares * torch.softmax(made.logits(decoded.mixture.features), -1)).sum(-2).log()


def sentences(lengths: list[int], pieces: int, seed: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random sentences of these lengths: tokens [B, S] without specials, mask, lengths."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    tokens = torch.randint(4, pieces, mask.shape, generator=generator)
    return tokens.masked_fill(~mask, 0), mask, torch.tensor(lengths)
