"""Keys that the command line treats alike: paths, texts, lists, and what a resumed run may change."""

from typing import Final

# Keys whose values are paths: any character may stand in them, and `~/` is the home folder.
PATH_KEYS: Final = frozenset(
    {
        *("run", "input", "output", "source", "reference", "alignments", "heatmaps", "prefix"),
        *("runs", "records"),
        *("checkpoints", "cache", "tokenizer.model"),
        *("data.train", "data.valid", "data.test", "data.root", "data.files", "data.train_links"),
        *("target", "gold", "links", "matrix", "reverse", "valid_source", "valid_target", "valid_gold"),
    }
)
# Keys whose values are text whatever they look like: `name=1e3` is no number, the language `no` is not False.
TEXT_KEYS: Final = PATH_KEYS | {
    *("name", "split", "baseline"),
    *("data.source", "data.target", "data.path", "data.name", "data.revision"),
    *("data.source_column", "data.target_column"),
}
LIST_KEYS: Final = frozenset({"run", "runs", "data.files", "data.valid", "data.test", "tokenizer.model"})
# Of these there is one for all runs of a sweep.
SHARED_KEYS: Final = frozenset({"name", "checkpoints", "cache"})

# Other names of choices, as papers and other toolkits have them.
ALIASES: Final[dict[str, dict[str, str]]] = {
    "attention/score": {
        "bahdanau": "additive",
        "mlp": "additive",
        "bilinear": "general",
        "multiplicative": "general",
        "luong": "general",
    },
}

# What a resumed run may change: its budget, its cadence, where it runs.
ALLOWED_ON_RESUME: Final = frozenset(
    {
        *("name", "resume", "checkpoints", "cache", "device", "threads", "trainer", "trainer.workers"),
        *("trainer.steps", "trainer.epochs", "trainer.minutes", "trainer.patience"),
        *(
            "trainer.validate_every",
            "trainer.validate_sentences",
            "trainer.save_minutes",
            "trainer.log_seconds",
        ),
        *("trainer.samples", "trainer.tensorboard"),
    }
)
# Keys that may be null, which is no limit or the choice left to the tool, with the kind of their other values.
NULLABLE: Final[dict[str, type]] = {
    "trainer.steps": int,
    "trainer.epochs": float,
    "trainer.minutes": float,
    "trainer.patience": int,
    "trainer.validate_every": int,
    "trainer.sentences_per_batch": int,
    "threads": int,
}

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "train": (
        "python -m nmt.train                              # the built-in corpus, offline, minutes",
        "python -m nmt.train data.files=[german.txt,english.txt]     # two text files, or one .tsv",
        "python -m nmt.train data=text data.source=de data.target=en data.train=DIR/train \\\n"
        "      data.valid=DIR/valid data.test=DIR/test name=mine",
        "python -m nmt.train data=multi30k data.root=DIR data.source=de data.target=en name=m30k",
        "python -m nmt.train name=m30k resume=true        # goes on where it stopped",
        "python -m nmt.train attention/score=dot decoder=luong       # a variant by override",
        "python -m nmt.train -m name=SWEEP attention/score=additive,general seed=1,2,3    # all combinations",
    ),
    "translate": (
        "python -m nmt.translate run=checkpoints/NAME input=FILE output=FILE search.beam_size=5",
        "cat FILE | python -m nmt.translate run=checkpoints/NAME > OUT",
        "python -m nmt.translate run=[checkpoints/A,checkpoints/B] input=FILE    # an ensemble",
    ),
    "evaluate": (
        "python -m nmt.evaluate run=checkpoints/NAME      # every test split of the data set",
        "python -m nmt.evaluate run=checkpoints/NAME source=FILE reference=FILE",
    ),
    "align": (
        "python -m nmt.align run=checkpoints/NAME         # the built-in corpus has gold links",
        "python -m nmt.align run=checkpoints/NAME source=FILE target=FILE output=LINKS",
        "python -m nmt.align run=checkpoints/NAME reverse=checkpoints/BACK source=FILE target=FILE gold=FILE",
        "python -m nmt.align links=FILE gold=FILE gold_base=1      # scores links from anywhere",
    ),
    "compare": (
        "python -m nmt.compare runs=checkpoints/SWEEP     # every run of a sweep, seeds taken together",
        "python -m nmt.compare runs=[checkpoints/A,checkpoints/B,checkpoints/C] baseline=A output=DIR",
        "python -m nmt.compare runs=checkpoints/SWEEP records=DIR    # keeps what a comparison needs, no weights",
        "python -m nmt.compare runs=DIR                   # the same from these records",
    ),
}

MULTIRUN: Final = ("-m", "--multirun")
