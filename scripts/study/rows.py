"""What the study trains: the variants, each a name and its overrides, in one order.

All recurrent variants have one first state and one readout, so that wirings differ only in when they attend and in what
they feed back. No variant has dropout before the softmax, as the Transformer has none.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

#: About two million weights; one core trains them in some six minutes.
SIZES = ("model.embedding_size=128", "model.output_dropout=0", "trainer.tensorboard=false")
_ENCODER = ("encoder=gru", "encoder.size=128")
_ATTENTION = ("attention.size=256", "attention/score=additive", "attention.project=false")
_DECODER = ("decoder.size=256", "decoder.first_state=mean", "decoder/readout=tanh", "decoder.readout.word=true")
_RECURRENT = (*_ENCODER, *_ATTENTION, *_DECODER)
_LAYERS = ("encoder.layers=3", "decoder.layers=3")
#: How the training text is read, and the languages of Multi30k.
TEXT = ("tokenizer.split_digits=false", "precision=float32")
DE_EN = ("data.source=de", "data.target=en")
EN_DE = ("data.source=en", "data.target=de")
EN_FR = ("data.source=en", "data.target=fr")
#: Passes over the training text: of the short study, of a training that chooses a rate and a dropout, of the long one.
SHORT, TUNING, LONG = ("trainer.epochs=4",), ("trainer.epochs=6",), ("trainer.epochs=16",)
SEEDS = (1, 2, 3)
#: Studies that choose settings for others, by validations alone.
CHOOSING = ("tuning", "effort")


class Row(NamedTuple):
    """A variant: the name of its runs without the seed, and its overrides.

    Its runs may need those of another row of the study with the same seeds: they go on from the runs of `start`, or
    they are copies of the runs of `copy_of`, with these settings of the model in place of theirs, and translate the
    test sets with `search`.
    """

    name: str
    overrides: tuple[str, ...]
    start: str = ""
    copy_of: str = ""
    search: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The row whose runs its own need, or ""."""
        return self.start or self.copy_of


def _rows(prefix: str, common: tuple[str, ...], variants: dict[str, tuple[str, ...]]) -> list[Row]:
    return [Row(f"{prefix}{name}", (*common, *overrides)) for name, overrides in variants.items()]


_LUONG = (*_RECURRENT, "decoder=luong")
_BAHDANAU = (*_RECURRENT, "decoder=bahdanau")
_GENERAL = (*_LUONG, "attention/score=general")
_HARD = (*_BAHDANAU, "attention/read=hard")

#: When the decoder asks, and what it feeds back.
WIRINGS = [
    *_rows("", _RECURRENT, {"none": ("decoder=none",), "bahdanau": ("decoder=bahdanau",)}),
    Row("bahdanau-previous-state", (*_BAHDANAU, "decoder.previous_state=true")),
    Row("conditional", (*_RECURRENT, "decoder=conditional")),
    *_rows("luong-additive", _LUONG, {"": (), "-nofeed": ("decoder.input_feeding=false",)}),
]
#: How query and key are compared. Scores without parameters come as they are and between projections.
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
#: Each head has the share of the 256 dimensions that Vaswani et al. give it; one head with projections is the control.
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
            "": (),  # mostly its soft half learns
            "-soft-half": ("attention.read.reward=0",),  # the control: no score-function gradient at all
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

#: Attention that is trained towards word links, for training text that has links.
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
#: On the built-in corpus, whose links are exact: one of each mechanism.
ONCE = [row for row in [*ROWS, *GUIDED] if row.name in _ONE_OF_EACH or row in GUIDED]

#: The models that are trained for 16 epochs: recurrent ones have stopped improving then, Transformers have not.
CONVERGED = [
    row
    for row in ROWS
    if row.name
    in (
        *("none", "bahdanau", "conditional", "luong-general", "luong-general-nofeed", "luong-dot-projected"),
        *("transformer", "gru-transformer"),
    )
]
#: Each of them is trained with each of these first, and for 16 epochs with the best.
GRID = [(f"optimizer.lr={rate}", f"model.dropout={dropout}") for rate in (0.0015, 0.003) for dropout in (0.2, 0.35)]

#: The recurrent model and the Transformer at the same effort: of each, as many random settings are trained for four
#: epochs, and that of the lowest validation perplexity for as many as the studies in `BUDGETS` say. Five are free.
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


#: Later runs. Each study has its own controls, so that a contrast is of one version of the program.
#: The paper's radius of `local_p`; enumerated reads, which are searched by their sum, and their soft twin.
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
#: Coverage for a fifth epoch, as See et al. 2017 add it at the end; the weights after it are scored.
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
#: Beside the softmax.
NORMALISERS = ("sparsemax", "entmax", "sink")
OF_LUONG = [
    *_of("luong-general"),
    *(Row(f"luong-general-{name}", (*_GENERAL, f"attention/normaliser={name}")) for name in NORMALISERS),
]
OF_TRANSFORMER = [
    Row(f"transformer-{name}", (*_TRANSFORMER, *(f"{part}/normaliser={name}" for part in _EVERYWHERE)))
    for name in ("softmax", *NORMALISERS)
]
#: With a fifth of the training captions joined by three: the first 5,799 of their numbers from 0 after
#: `random.Random(55).shuffle`, in this order, before all others in theirs.
JOINED = _of("luong-general", "luong-additive", "bahdanau", "conditional", "coverage", "transformer")
#: From Japanese to English: of every 25th pair for training those whose sentences occur once test too ("held_out").
TANAKA = _of("none", "luong-general", "luong-additive", "bahdanau", "conditional", "transformer")
#: From English to French.
FRENCH = _of("luong-general", "conditional")

#: Studies of four epochs: rows, and languages of Multi30k; none for other text.
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
