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


class Growth(NamedTuple):
    """One curve: how the cost of `work` ("training" or "translating") grows along `axis`.

    `unit` is "token" (a target token) or "sentence"; `theory` says what is expected, a polynomial of `degree`.
    """

    axis: str
    work: str
    wiring: str
    unit: str
    theory: str
    degree: int = 1


AXES = {
    "sentence_length": "sentence length, source and target, in pieces",
    "beam": "beam size",
    "vocabulary": "pieces in the vocabulary",
    "layers": "layers of encoder and decoder",
}

LOOKED = "a + b x + c x²: each token looks at all of the source"

CURVES = (
    Growth("sentence_length", "training", "bahdanau", "sentence", LOOKED, 2),
    Growth("sentence_length", "training", "none", "sentence", "a + b x: nothing is looked at"),
    Growth("sentence_length", "translating", "bahdanau", "sentence", LOOKED, 2),
    Growth("beam", "translating", "bahdanau", "sentence", "a + b x: each hypothesis costs a step"),
    Growth("vocabulary", "training", "bahdanau", "token", "a + b x: the softmax and its gradient"),
    Growth("vocabulary", "translating", "bahdanau", "sentence", "a + b x: the softmax and the top k"),
    Growth("layers", "training", "bahdanau", "token", "a + b x: each layer is a recurrence of its own"),
    Growth("layers", "translating", "bahdanau", "sentence", "a + b x: each layer is a step of its own"),
)


@dataclass(frozen=True)
class Scale:
    """The amounts: `MATCHED` for results, `QUICK` to see that all of it works.

    Attributes:
        tiny: whether our own model is to be of these sizes too.
        sizes: of the model; `pieces` is what a tokenizer that is trained here is asked for.
        transformer: sizes of the Transformer, all but `layers` and `pieces` alike.
        batch: sentences a training batch.
        longest: pieces a side; longer pairs are left out, as the peers leave them out.
        warm_up: updates before anything is measured.
        gpu_warm_up: the same on a GPU, where each shape is captured and its kernels are compiled first.
        updates: measured updates of a wiring in a round.
        trained: updates that a model has had, in all, before it translates.
        translated: sentences translated in a round, by how many are searched together.
        rate_seconds: for measuring the rate of matrix multiplies, a wiring and round.
        built_in: pairs of the built-in corpus: training, validation, test.
        growth: the values along each axis of `AXES`.
        growth_sentences: sentences a batch of the growth curves, by axis.
        growth_length: pieces a side where the length does not grow.
        growth_updates: measured updates a point.
        peer_updates: updates of a peer in a round.
        minutes: of training, a program, where quality is measured against time.
        points: how often the weights are kept meanwhile.
        pilot: updates from which the speed is taken that says how many updates lie between two points.
    """

    tiny: bool = False
    sizes: Sizes = field(default_factory=Sizes)
    transformer: Sizes = field(default_factory=lambda: Sizes(8000, 256, 256, 256, 256, 256, layers=3))
    batch: int = 80
    longest: int = 80
    warm_up: int = 4
    gpu_warm_up: int = 120
    updates: int = 20
    trained: int = 200
    translated: dict[int, int] = field(default_factory=lambda: {1: 50, 64: 1000})
    rate_seconds: float = 2.0
    built_in: tuple[int, int, int] = (20_000, 500, 500)
    growth: dict[str, tuple[int, ...]] = field(
        default_factory=lambda: {
            "sentence_length": (10, 20, 40, 80, 160),
            "beam": (1, 2, 5, 10, 20),
            "vocabulary": (4000, 8000, 16_000, 32_000, 64_000),
            "layers": (1, 2, 3, 4),
        }
    )
    growth_sentences: dict[str, int] = field(
        default_factory=lambda: {"sentence_length": 8, "beam": 16, "vocabulary": 32, "layers": 32}
    )
    growth_length: int = 16
    growth_updates: int = 3
    peer_updates: int = 60
    minutes: float = 40.0
    points: int = 20
    pilot: int = 30


MATCHED = Scale()
QUICK = Scale(
    tiny=True,
    sizes=Sizes(pieces=500, embedding=16, encoder=8, decoder=16, attention=16, features=16),
    transformer=Sizes(pieces=500, embedding=16, encoder=16, decoder=16, attention=16, features=16),
    batch=8,
    warm_up=1,
    gpu_warm_up=1,
    updates=2,
    trained=3,
    translated={1: 2, 64: 4},
    rate_seconds=0.02,
    built_in=(120, 4, 8),
    growth={"sentence_length": (3, 4, 5), "beam": (1, 2, 3), "vocabulary": (300, 400, 500), "layers": (1, 2)},
    growth_sentences={"sentence_length": 2, "beam": 2, "vocabulary": 2, "layers": 2},
    growth_length=3,
    growth_updates=1,
    peer_updates=4,
    minutes=0.03,
    points=3,
    pilot=4,
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


#: Our own models in the measurement of quality against time, by the name that they have there.
RECIPES = {"nmt": "nmt, matched model", "nmt-default": "nmt, its own model"}


def recipe(name: str, multi30k: bool, scale: Scale) -> list[str]:
    """The command line of one of `RECIPES`, the budget left out.

    `nmt` is the matched model in the batches that the peers have; optimiser, learning rates and averaging are what
    `configs/` has for everybody. `nmt-default` is what `configs/` has for the corpus, whole.
    """
    if name == "nmt":
        return [*shape(WIRINGS["bahdanau"], scale.sizes), *batches(scale.batch, scale.longest)]
    corpus = "experiment=multi30k" if multi30k else "data=builtin"
    return [corpus, *(_widths(scale.sizes) if scale.tiny else ())]
