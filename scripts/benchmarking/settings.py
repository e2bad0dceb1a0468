"""The settings of the benchmark: model, wirings, amounts of work. The leading process imports this, so it is light."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]
#: A case calls this function with its answer and gets the next order; None ends the case.
Exchange = Callable[[Json], Json | None]


class Sizes(NamedTuple):
    """The sizes of a model. `encoder` is the size of one direction; `pieces` is the size of the joint vocabulary."""

    pieces: int = 8000
    embedding: int = 256
    encoder: int = 256
    decoder: int = 512
    attention: int = 512
    features: int = 256
    layers: int = 1


class Wiring(NamedTuple):
    """A decoder with its score, and the overrides that choose them."""

    name: str
    title: str
    overrides: tuple[str, ...]


_GENERAL = ("decoder=luong", "attention/score=general")
WIRINGS = {
    wiring.name: wiring
    for wiring in (
        Wiring("bahdanau", "Bahdanau, additive", ("decoder=bahdanau", "attention/score=additive")),
        Wiring("luong", "Luong, general, input feeding", _GENERAL),
        Wiring("luong_without_feeding", "Luong, general, no input feeding", (*_GENERAL, "decoder.input_feeding=false")),
        Wiring("conditional", "Conditional, additive", ("decoder=conditional", "attention/score=additive")),
        Wiring("none", "no attention", ("decoder=none",)),
    )
}

#: The Transformer, which is measured separately and compared with torch's layers and OpenNMT-py.
TRANSFORMER = Wiring("transformer", "Transformer", ("encoder=transformer", "decoder=transformer"))

#: The same model with torch's layers, in the project's loop.
TORCH_TRANSFORMER = "torch.nn.Transformer"

#: Number of heads in every attention of the Transformer.
HEADS = 4

MODELS = {**WIRINGS, TRANSFORMER.name: TRANSFORMER}

#: The comparison on a GPU: torch's GRUs as encoder and decoder, without attention.
PLAIN = "cudnn"

SEARCHES = ("greedy", "beam5")

#: Faster variants of beam 5 on a CPU, only for `bahdanau`: precision, length of the shortlist (0: none), and sentences
#: per batch. By default, `nmt.translate` has 128 sentences per batch, and its shortest shortlist has 50.
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
    """Where a case runs: device, precision ("float32", "bf16", or "int8" for search only), and CPU threads."""

    device: str
    precision: str
    threads: int


@dataclass(frozen=True)
class Scale:
    """The amounts of work: `MATCHED` for results, `QUICK` to test that everything works.

    Attributes:
        sizes: sizes of the model; `pieces` is the requested vocabulary size for a new tokenizer.
        transformer: sizes of the Transformer; all are equal except `layers` and `pieces`.
        batch: sentences per training batch.
        longest: maximum pieces per side; longer pairs are left out, as by the peers.
        warm_up: updates before the measurement.
        gpu_warm_up: the same on a GPU, where graphs are captured and kernels compiled for each shape.
        updates, gpu_updates: measured updates of a wiring per round.
        trained: total updates of a model before it translates.
        translated: batch size -> number of sentences to translate per round.
        built_in: pairs of the built-in corpus for training, validation and test.
        peer_updates: updates of a peer per round.
    """

    sizes: Sizes = field(default_factory=Sizes)
    transformer: Sizes = field(default_factory=lambda: Sizes(8000, 256, 256, 256, 256, 256, layers=3))
    batch: int = 80
    longest: int = 80
    warm_up: int = 4
    gpu_warm_up: int = 120
    updates: int = 20
    gpu_updates: int = 200
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
    gpu_updates=2,
    trained=3,
    translated={1: 2, 64: 4},
    built_in=(120, 4, 8),
    peer_updates=4,
)


def overrides(wiring: Wiring, sizes: Sizes, batch: int, longest: int) -> list[str]:
    """The overrides of the project's configuration for the matched model and its recipe."""
    if wiring is TRANSFORMER:
        attentions = ("encoder.self_attention", "decoder.self_attention", "attention")
        model = ["model.tie_embeddings=all", "tokenizer.joint=true", "model.dropout=0.1"]
        model += [f"{attention}.heads={HEADS}" for attention in attentions]
    else:
        model = ["model.tie_embeddings=none", "model.dropout=0.3"]
        model += [f"encoder.size={sizes.encoder}", f"decoder.size={sizes.decoder}", f"attention.size={sizes.attention}"]
        model += [f"decoder.readout.size={sizes.features}"]
    return [
        *wiring.overrides,
        *model,
        f"model.embedding_size={sizes.embedding}",
        *(f"{side}.layers={sizes.layers}" for side in ("encoder", "decoder")),
        f"trainer.sentences_per_batch={batch}",
        # Batches are limited by sentences; the number of tokens only affects how pairs are sorted by length.
        f"trainer.tokens_per_batch={batch * min(longest, 64)}",
        *("optimizer.lr=0.001", "optimizer.betas=[0.9,0.999]", "optimizer.eps=1e-8", "optimizer.weight_decay=0"),
        *("schedule=constant", "schedule.warmup_steps=0", "trainer.label_smoothing=0.1", "trainer.clip_norm=1"),
        "trainer.average=none",
        # The benchmark decides when training stops.
        *("trainer.steps=1000000000", "trainer.epochs=null", "trainer.minutes=null"),
        *("trainer.validate_every=1000000000", "trainer.save_minutes=1e9", "trainer.log_seconds=1e9"),
        "trainer.tensorboard=false",
    ]
