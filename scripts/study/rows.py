"""The variants that the study trains, each with a name and overrides, in a fixed order.

All recurrent variants have the same first state and readout, so that decoders differ only in when they attend and what
they feed back. No variant has dropout before the softmax, because the Transformer has none.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

#: Sizes of all models: about two million weights, which one core trains in some six minutes.
SIZES = ("model.embedding_size=128", "model.output_dropout=0", "trainer.tensorboard=false")
_ENCODER = ("encoder=gru", "encoder.size=128")
_ATTENTION = ("attention.size=256", "attention/score=additive", "attention.project=false")
_DECODER = ("decoder.size=256", "decoder.first_state=mean", "decoder/readout=tanh", "decoder.readout.word=true")
_RECURRENT = (*_ENCODER, *_ATTENTION, *_DECODER)
_LAYERS = ("encoder.layers=3", "decoder.layers=3")
#: Settings for the training text, and the languages of Multi30k.
TEXT = ("tokenizer.split_digits=false", "precision=float32")
DE_EN = ("data.source=de", "data.target=en")
EN_DE = ("data.source=en", "data.target=de")
EN_FR = ("data.source=en", "data.target=fr")
#: Epochs of the short study, of trainings to choose learning rate and dropout, and of the long study.
SHORT, TUNING, LONG = ("trainer.epochs=4",), ("trainer.epochs=6",), ("trainer.epochs=16",)
SEEDS = (1, 2, 3)
#: Studies that choose settings for other studies by validations only.
CHOOSING = ("tuning", "effort")


class Row(NamedTuple):
    """A variant: the name of its runs without the seed, and its overrides.

    Its runs may need the runs of another row of the study with the same seeds: they fine-tune the runs of `start`, or
    they are copies of the runs of `copy_of` with these overrides instead, and translate the test sets with `search`.
    """

    name: str
    overrides: tuple[str, ...]
    start: str = ""
    copy_of: str = ""
    search: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The row whose runs must exist first, or ""."""
        return self.start or self.copy_of


def _rows(prefix: str, common: tuple[str, ...], variants: dict[str, tuple[str, ...]]) -> list[Row]:
    return [Row(f"{prefix}{name}", (*common, *overrides)) for name, overrides in variants.items()]


_LUONG = (*_RECURRENT, "decoder=luong")
_BAHDANAU = (*_RECURRENT, "decoder=bahdanau")
_GENERAL = (*_LUONG, "attention/score=general")
_HARD = (*_BAHDANAU, "attention/read=hard")

#: Decoders that differ in when they attend and in what they feed back.
WIRINGS = [
    *_rows("", _RECURRENT, {"none": ("decoder=none",), "bahdanau": ("decoder=bahdanau",)}),
    Row("bahdanau-previous-state", (*_BAHDANAU, "decoder.previous_state=true")),
    Row("conditional", (*_RECURRENT, "decoder=conditional")),
    *_rows("luong-additive", _LUONG, {"": (), "-nofeed": ("decoder.input_feeding=false",)}),
]
#: Scores of query and key. Scores without parameters are trained without and with projections.
SCORES = [
    Row("luong-general", _GENERAL),
    Row("luong-general-nofeed", (*_GENERAL, "decoder.input_feeding=false")),
    *_rows("luong-", _LUONG, {name: (f"attention/score={name}",) for name in ("concat", "location")}),
    *(
        Row(f"luong-{score}{suffix}", (*_LUONG, f"attention/score={score}", *projected))
        for score in ("dot", "scaled_dot", "cosine")
        for suffix, projected in (("", ()), ("-projected", ("attention.project=true",)))
    ),
]
WINDOWS = [
    Row(f"luong-{window}-{radius}", (*_GENERAL, f"attention/window={window}", f"attention.window.radius={radius}"))
    for window in ("local_m", "local_p")
    for radius in (2, 4)
]
#: Heads share the 256 dimensions equally, as in Vaswani et al.; the control is one head with projections.
HEADS = [
    Row("bahdanau-projected", (*_BAHDANAU, "attention.project=true")),
    *(
        Row(f"{name}-heads-{heads}", (*common, "attention.project=true", f"attention.heads={heads}"))
        for name, common in (
            ("bahdanau", _BAHDANAU),
            ("luong-dot", (*_LUONG, "attention/score=dot")),
            ("luong-scaled_dot", (*_LUONG, "attention/score=scaled_dot")),
        )
        for heads in (2, 4)
    ),
]
COVERAGE = _rows("coverage", (*_BAHDANAU, "attention.coverage=true"), {"": (), "-loss": ("attention.coverage_loss=1",)})
READS = [
    *_rows(
        "hard",
        _HARD,
        {
            "": (),  # mostly the soft part of the objective learns
            "-soft-half": ("attention.read.reward=0",),  # the control, without score-function gradient
            "-self-critical": (
                *("attention.read.reward=1", "attention.read.expected=0", "attention.read.baseline=soft"),
            ),
        },
    ),
    Row(
        "hard-enumerate",
        (*_LUONG, "decoder.input_feeding=false", "attention/read=hard", "attention.read.objective=enumerate"),
    ),
]
_TRANSFORMER = ("encoder=transformer", "decoder=transformer", *_LAYERS)
_EVERYWHERE = ("attention", "encoder", "decoder")
FAMILIES = [
    Row("transformer", _TRANSFORMER),
    Row("weighted-transformer", (*_TRANSFORMER, "encoder.branches=true", "decoder.branches=true")),
    Row("gru-transformer", (*_ENCODER, "decoder=transformer", "decoder.layers=3")),
    Row(
        "transformer-luong",
        ("encoder=transformer", "encoder.layers=3", *_ATTENTION, *_DECODER, "decoder=luong", "attention/score=general"),
    ),
    Row("conv", ("encoder=conv", "decoder=conv", *_LAYERS)),
]
ROWS = [*WIRINGS, *SCORES, *WINDOWS, *HEADS, *COVERAGE, *READS, *FAMILIES]

#: Guided alignment, for training text with word links.
GUIDED = [
    Row("guided-bahdanau", (*_BAHDANAU, "trainer.guided_alignment=1")),
    Row("guided-luong", (*_LUONG, "trainer.guided_alignment=1")),
]
_ONE_OF_EACH = (
    *("none", "bahdanau", "conditional", "luong-additive", "luong-general", "luong-general-nofeed"),
    *("luong-location", "luong-dot", "luong-scaled_dot-projected", "luong-cosine", "luong-local_m-2"),
    *("luong-local_p-2", "luong-dot-heads-2", "coverage", "hard", "hard-enumerate"),
    *("transformer", "gru-transformer", "transformer-luong", "conv"),
)
#: One variant of each mechanism, for the built-in corpus, whose word links are exact.
ONCE = [row for row in [*ROWS, *GUIDED] if row.name in _ONE_OF_EACH or row in GUIDED]

#: The models that are trained for 16 epochs; recurrent models stop improving before, Transformers do not.
CONVERGED = [
    row
    for row in ROWS
    if row.name
    in (
        *("none", "bahdanau", "conditional", "luong-general", "luong-general-nofeed", "luong-dot-projected"),
        *("transformer", "gru-transformer"),
    )
]
#: The settings to choose from: each of these models is first trained with all, then for 16 epochs with the best.
GRID = [(f"optimizer.lr={rate}", f"model.dropout={dropout}") for rate in (0.0015, 0.003) for dropout in (0.2, 0.35)]

#: The recurrent model and the Transformer with equal effort: TRIALS random settings of each are trained for four
#: epochs, and the setting with the lowest validation perplexity for the epochs in `BUDGETS`. Five choices are free.
TRIALS, BUDGETS = 16, {"effort-1": 4, "effort-2": 8, "effort-4": 16}
_FREE = [
    [f"optimizer.lr={rate}" for rate in (0.0007, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.006)],
    [f"model.dropout={share}" for share in (0.1, 0.2, 0.3, 0.4)],
    [f"schedule.warmup_steps={count}" for count in (100, 200, 400, 800)],
    [f"trainer.tokens_per_batch={count}" for count in (625, 1250, 2500)],
]


def _trials(name: str, common: Sequence[str], *axes: Sequence[str]) -> list[Row]:
    draw = random.Random(name)
    return [
        Row(f"{name}-{at}", (*common, *(word for choices in (*_FREE, *axes) for word in draw.choice(choices).split())))
        for at in range(1, TRIALS + 1)
    ]


EFFORT = {
    "recurrent": _trials("recurrent", _RECURRENT, ["decoder=luong attention/score=general", "decoder=conditional"]),
    "transformer": _trials(
        "transformer",
        ("encoder=transformer", "decoder=transformer"),
        [f"encoder.layers={count} decoder.layers={count}" for count in (2, 3, 4)],
    ),
}


def _of(*names: str) -> list[Row]:
    return [row for row in ROWS if row.name in names]


#: Later runs: the paper's radius of `local_p`, and enumerated hard reads with several searches and their soft control.
#: Each study has its own controls, so that all runs of a contrast have the same version of the program.
AGAIN = [
    Row("luong-local_p-10", (*_GENERAL, "attention/window=local_p")),
    *_of("luong-general", "luong-additive-nofeed", "hard-enumerate"),
    Row("soft-greedy", (), copy_of="luong-additive-nofeed", search=("search=greedy",)),
    *(
        Row(f"enumerate-{name}-{search}", slots, copy_of="hard-enumerate", search=(f"search={search}",))
        for name, slots, searches in (
            ("heaviest", ("attention.read.searched=1",), ("greedy", "beam")),
            ("k4", ("attention.read.searched=4",), ("beam",)),
            ("marginal", (), ("greedy",)),
        )
        for search in searches
    ),
]
COPIES = {row.name for row in AGAIN if row.copy_of}
#: Coverage in a fifth epoch, at the end of training as in See et al. 2017; the weights after this epoch are scored.
_LAST = ("trainer.epochs=1", "trainer.select=last")
ENDED = [
    *_of("bahdanau"),
    *(
        Row(f"ended-{name}", (*_LAST, *(f"attention.{word}" for word in words)), start="bahdanau")
        for name, words in {
            "plain": (),
            "coverage": ("coverage=true",),
            "coverage-loss": ("coverage=true", "coverage_loss=1"),
        }.items()
    ),
]
#: Normalisers that are compared with the softmax.
NORMALISERS = ("sparsemax", "entmax", "sink")
OF_LUONG = [
    *_of("luong-general"),
    *(Row(f"luong-general-{name}", (*_GENERAL, f"attention/normaliser={name}")) for name in NORMALISERS),
]
OF_TRANSFORMER = [
    Row(f"transformer-{name}", (*_TRANSFORMER, *(f"{part}/normaliser={name}" for part in _EVERYWHERE)))
    for name in ("softmax", *NORMALISERS)
]
#: For text with a fifth of the training captions joined in threes: the first 5,799 line numbers, from 0, after
#: `random.Random(55).shuffle`, in this order, followed by all other captions in their original order.
JOINED = _of("luong-general", "luong-additive", "bahdanau", "conditional", "coverage", "transformer")
#: From Japanese to English; every 25th training pair whose sentences occur only once is a test pair ("held_out").
TANAKA = _of("none", "luong-general", "luong-additive", "bahdanau", "conditional", "transformer")
#: From English to French.
FRENCH = _of("luong-general", "conditional")

#: Studies of four epochs: rows, and overrides for the languages of Multi30k; () for other text.
FOUR_EPOCHS = {
    "short": (ROWS, DE_EN),
    "again": (AGAIN, DE_EN),
    "ended": (ENDED, DE_EN),
    "normalisers": (OF_LUONG, DE_EN),
    "normalisers-transformer": (OF_TRANSFORMER, DE_EN),
    "french": (FRENCH, EN_FR),
    "joined": (JOINED, ()),
    "tanaka": (TANAKA, ()),
}
