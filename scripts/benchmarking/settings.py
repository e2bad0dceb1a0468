"""What is measured: the model, its wirings, the amounts of work. Read by both sides, so it loads nothing heavy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]
#: A case calls it with what it has measured and gets the next order; None ends the case.
Exchange = Callable[[Json], Json | None]


class Sizes(NamedTuple):
    """A model's sizes. `encoder` is that of one direction; `pieces` counts both vocabularies' one set of pieces."""

    pieces: int = 8000
    embedding: int = 256
    encoder: int = 256
    decoder: int = 512
    attention: int = 512
    features: int = 256
    layers: int = 1


class Wiring(NamedTuple):
    """A decoder with the score that goes with it; `kind` is bahdanau, luong or none, `overrides` chooses it."""

    name: str
    kind: str
    fed: bool
    title: str
    overrides: tuple[str, ...]


WIRINGS = {
    wiring.name: wiring
    for wiring in (
        Wiring("bahdanau", "bahdanau", False, "Bahdanau, additive", ("decoder=bahdanau", "attention/score=additive")),
        Wiring("luong", "luong", True, "Luong, general, input feeding", ("decoder=luong", "attention/score=general")),
        Wiring(
            "luong_without_feeding",
            "luong",
            False,
            "Luong, general, no input feeding",
            ("decoder=luong", "attention/score=general", "decoder.input_feeding=false"),
        ),
        Wiring("none", "none", False, "no attention", ("decoder=none",)),
    )
}

#: The Transformer, which is measured by itself: beside torch's own layers and OpenNMT-py's.
TRANSFORMER = Wiring("transformer", "transformer", False, "Transformer", ("encoder=transformer", "decoder=transformer"))

#: The same model of torch's own layers, in the project's loop.
TORCH_TRANSFORMER = "torch.nn.Transformer"

#: Of all its attention.
HEADS = 4

MODELS = {**WIRINGS, TRANSFORMER.name: TRANSFORMER}

#: The comparison on a GPU: torch's own GRUs, encoder and decoder, without attention.
PLAIN = "cudnn"

SEARCHES = ("greedy", "beam5")

#: Faster ways through beam 5 on a CPU, for `bahdanau` alone: the precision, the length of the shortlist (0: none), and
#: how many sentences are searched together. By default, `nmt.translate` searches 128 together, and its shortest
#: shortlist has 50.
FASTER = {
    "beam5_shortlist": ("float32", 50, 64),
    "beam5_bf16": ("bf16", 0, 64),
    "beam5_int8": ("int8", 0, 64),
    "beam5_int8_128": ("int8", 0, 128),
    "beam5_bf16_shortlist": ("bf16", 50, 64),
    "beam5_shortlist_128": ("float32", 50, 128),
    "beam5_bf16_shortlist_128": ("bf16", 50, 128),
}


class Place(NamedTuple):
    """Where a case runs: the device, "float32", "bf16" or "int8" (search only), CPU threads."""

    device: str
    precision: str
    threads: int


@dataclass(frozen=True)
class Scale:
    """The amounts: `MATCHED` for results, `QUICK` to see that all of it works.

    Attributes:
        sizes: of the model; `pieces` is what a tokenizer that is trained here is asked for.
        transformer: sizes of the Transformer, all but `layers` and `pieces` alike.
        batch: sentences a training batch.
        longest: pieces a side; longer pairs are left out, as the peers leave them out.
        warm_up: updates before anything is measured.
        gpu_warm_up: the same on a GPU, where each shape is captured and its kernels are compiled first.
        updates: measured updates of a wiring in a round.
        trained: updates that a model has had, in all, before it translates.
        translated: sentences translated in a round, by how many are searched together.
        built_in: pairs of the built-in corpus: training, validation, test.
        peer_updates: updates of a peer in a round.
    """

    sizes: Sizes = field(default_factory=Sizes)
    transformer: Sizes = field(default_factory=lambda: Sizes(8000, 256, 256, 256, 256, 256, layers=3))
    batch: int = 80
    longest: int = 80
    warm_up: int = 4
    gpu_warm_up: int = 120
    updates: int = 20
    trained: int = 200
    translated: dict[int, int] = field(default_factory=lambda: {1: 50, 64: 1000})
    built_in: tuple[int, int, int] = (20_000, 500, 1000)
    peer_updates: int = 60


MATCHED = Scale()
QUICK = Scale(
    sizes=Sizes(pieces=500, embedding=16, encoder=8, decoder=16, attention=16, features=16),
    transformer=Sizes(pieces=500, embedding=16, encoder=16, decoder=16, attention=16, features=16),
    batch=8,
    warm_up=1,
    gpu_warm_up=1,
    updates=2,
    trained=3,
    translated={1: 2, 64: 4},
    built_in=(120, 4, 8),
    peer_updates=4,
)


def shape(wiring: Wiring, sizes: Sizes) -> list[str]:
    """The command line that makes the matched model of the project's own configuration."""
    if wiring.kind == "transformer":
        return [
            *wiring.overrides,
            "model.tie_embeddings=all",
            "tokenizer.joint=true",
            "model.dropout=0.1",
            f"model.embedding_size={sizes.embedding}",
            *(f"{side}.layers={sizes.layers}" for side in ("encoder", "decoder")),
            *(f"{attention}.heads={HEADS}" for attention in _ATTENTIONS),
        ]
    return [
        *wiring.overrides,
        "model.tie_embeddings=none",
        "model.dropout=0.3",
        f"encoder.layers={sizes.layers}",
        f"decoder.layers={sizes.layers}",
        *_widths(sizes),
    ]


_ATTENTIONS = ("encoder.self_attention", "decoder.self_attention", "attention")


def _widths(sizes: Sizes) -> list[str]:
    return [
        f"model.embedding_size={sizes.embedding}",
        f"encoder.size={sizes.encoder}",
        f"decoder.size={sizes.decoder}",
        f"decoder.readout.size={sizes.features}",
        f"attention.size={sizes.attention}",
    ]


def batches(sentences: int, longest: int) -> list[str]:
    """The command line for batches of so many sentences."""
    return [
        f"trainer.sentences_per_batch={sentences}",
        # Sentences are what limits a batch; the places only decide how finely pairs are sorted by length.
        f"trainer.tokens_per_batch={sentences * min(longest, 64)}",
    ]


def unattended(budget: str, amount: float, validate_every: int = 10**9) -> list[str]:
    """The command line that trains for this budget alone ("steps" or "minutes") and does little else meanwhile."""
    return [
        *(f"trainer.{name}={amount if name == budget else 'null'}" for name in ("steps", "epochs", "minutes")),
        f"trainer.validate_every={validate_every}",
        "trainer.save_minutes=1e9",
        "trainer.log_seconds=1e9",
        "trainer.tensorboard=false",
    ]


def overrides(wiring: Wiring, sizes: Sizes, batch: int, longest: int) -> list[str]:
    """The command line that makes the matched model and its recipe of the project's own configuration."""
    return [
        *shape(wiring, sizes),
        *batches(batch, longest),
        "optimizer.lr=0.001",
        "optimizer.betas=[0.9,0.999]",
        "optimizer.eps=1e-8",
        "optimizer.weight_decay=0",
        "schedule=constant",
        "schedule.warmup_steps=0",
        "trainer.label_smoothing=0.1",
        "trainer.clip_norm=1",
        "trainer.average=none",
        # The benchmark decides when training stops.
        *unattended("steps", 10**9),
    ]
