"""Opens run folders for commands: a checked run, its translator, its data."""

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig

from nmt.alignment.linker import Linker
from nmt.build.parts import build_model, build_search, build_source
from nmt.build.paths import pipes_of
from nmt.build.requests import SearchRequest
from nmt.config.configuration import read_yaml
from nmt.config.quotes import pasteable
from nmt.data.dataset import DataSource, Split
from nmt.data.languages import UNNAMED
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs.run import Run, attends
from nmt.search import GreedySearch
from nmt.system.compute import Compute
from nmt.system.errors import SettingError, UnknownSettingError, UserError, reading
from nmt.system.integrity import NAME
from nmt.system.limits import NotNegative, Positive, Weight, written_as
from nmt.system.terminal import print_message
from nmt.text.lexicon import load_lexicon
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.translation import batch_sizes
from nmt.translation.named_heads import AUTO, Heads, choose_head
from nmt.translation.shortlist import Shortlist
from nmt.translation.translator import LENGTH_RATIO, Translator

BUILT_IN, MOST_BUILT_IN = ("builtin", "documents"), 1_000_000  # data sets without files; the largest size setting
#: Which weights of a run: those of the best validation, or of the last save.
Checkpoint = Literal["best", "last"]


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run folder that `open_run` has checked and read.

    Attributes:
        files: the files of the folder.
        config: the configuration, with the classes of the installed choices.
        facts: status, versions and counts.
    """

    files: Run
    config: DictConfig
    facts: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.files.folder

    @functools.cached_property
    def best_step(self) -> int | None:
        """The step of the best validation; None before the first (UserError if the history is damaged)."""
        return self.files.best_step()

    @property
    def languages(self) -> tuple[str, str]:
        """The language codes of source and target."""
        source, target = self.facts.get("languages", UNNAMED)[:2]
        return str(source), str(target)

    def trained_head(self, heads: Sequence[str]) -> str | None:
        """The selection among the decoder's `heads` that guided alignment trained; None without guided alignment."""
        trainer = self.config.get("trainer", {})
        if not trainer.get("guided_alignment") or not heads:
            return None
        return str(trainer.get("guided_head") or Heads(heads).guided)


def open_run(folder: Path) -> OpenRun:
    """Read the run in a folder (UserError if there is no run, or if its configuration or its facts are damaged)."""
    files = Run(folder)
    return OpenRun(files, files.config(), files.facts())


def open_model(run: OpenRun, checkpoint: Checkpoint, compute: Compute) -> tuple[Seq2Seq, Tokenizer]:
    """Load a run's model with its trained weights, in evaluation mode, and its tokenizer.

    Raises:
        UserError: the run is incomplete or damaged.
    """
    tokenizer = load_tokenizer(run.files.tokenizer)
    with describes(run.files, "a model", as_saved=True):
        model = build_model(run.config, tokenizer, initial=False)
    if run.files.is_unchecked():
        print_message(f"warning: {unchecked(run.files)}")
    load_weights(run.files.best if checkpoint == "best" else run.files.last, model)
    return model.to(compute.device).eval(), tokenizer


def unchecked(run: Run) -> str:
    """The warning for a run without checksums of its weights."""
    return (
        f"{run.folder / NAME} has no checksum of the weights, so damage cannot be noticed. Restore the run from an "
        "intact copy."
    )


def open_shortlist(run: Run, count: int, tokenizer: Tokenizer) -> Shortlist | None:
    """The shortlist of `count` translations of each source piece; None for 0 (UserError if the lexicon is damaged)."""
    if not count:
        return None
    sizes = tokenizer.source.size, tokenizer.target.size
    lexicon = load_lexicon(run.lexicon, *sizes, tokenizer.fingerprint)
    return Shortlist(lexicon, count, tokenizer.target.size, tokenizer.joint)


def open_linker(run: OpenRun, translator: Translator, head: str = AUTO, shift: int = 0) -> Linker:
    """The linker for tags in a run's translations, with its lexicon and a head and a shift of its attention.

    The defaults are the head and the shift that were chosen when training ended (UserError if the lexicon is damaged).
    """
    tokenizer = translator.tokenizer
    tag_facts = run.facts.get("tags", {})
    automatic = head == AUTO and shift == 0 and len(translator.models) == 1
    if automatic and tag_facts and tag_facts["step"] == run.best_step:  # not trained on since
        head, shift = str(tag_facts["head"]), int(tag_facts["shift"])
    head, _ = choose_head(translator.heads, head)
    if not run.files.lexicon.exists():
        return Linker(head, shift)
    sizes = tokenizer.source.size, tokenizer.target.size
    return Linker(head, shift, load_lexicon(run.files.lexicon, *sizes, tokenizer.fingerprint), tokenizer)


def open_for_forcing(
    run: OpenRun, checkpoint: Checkpoint, compute: Compute, batch_sentences: int, context_sentences: int | None
) -> Translator:
    """The translator of a run for forced decoding, which needs no search.

    Raises:
        UserError: the run is incomplete or damaged, or was trained with less context; or precision=int8 is set.
    """
    compute.check_searches_not()
    model, tokenizer = open_model(run, checkpoint, compute)
    return Translator(
        [model],
        tokenizer,
        GreedySearch(),
        compute=compute,
        batch_sentences=batch_sentences,
        context_sentences=-1 if context_sentences is None else context_sentences,
        trained_head=run.trained_head(model.decoder.heads),
    )


def own_data(run: OpenRun, named: str | None, files: str) -> DataSource:
    """The data set of a run, if its data settings may be used.

    They may be used if they name no files or networks, if this user has made the run, or if the command line has data=
    (`named`). `files` are settings of the command that name files instead, for messages.

    Raises:
        UserError: the settings may not be used, or the data set is missing; the message says where it is expected.
    """
    if named is None and not may_use(run.config) and not run.files.is_own():
        raise UserError(
            f"{run.folder} was made or changed elsewhere, so its data settings are not used: "
            f"{' '.join(data_words(run.files))}. Give files: {files}. If you trust these settings, give data=run."
        )
    with _placed(run), describes(run.files, "a data set", as_saved=True):
        if pipes := pipes_of(run.config["data"]):
            raise UserError(f"{pipes}: a pipe, and its text was not kept.")
        source = build_source(run.config)
        source.tests()
        return source


def may_use(config: Mapping[str, Any]) -> bool:
    """Whether data settings are safe even in a stranger's run: built-in text of a usual size."""
    sizes = [value for value in config["data"].values() if isinstance(value, int | float)]
    return config["choices"]["data"] in BUILT_IN and all(0 <= size <= MOST_BUILT_IN for size in sizes)


def data_words(run: Run) -> list[str]:
    """The data settings of a run that are not defaults, as words of a command line, quoted for a shell."""
    tree = run.tree()
    choice, settings = str(tree["choices"]["data"]), tree["data"]
    defaults = read_yaml(f"data/{choice}")
    changed = {f"data.{key}": written_as(value) for key, value in settings.items() if value != defaults.get(key)}
    return [pasteable(key, value) for key, value in {"data": choice, **changed}.items()]


def own_split(run: OpenRun, source: DataSource, name: str) -> Split:
    """A split of a run's own data set, whose text must not have changed.

    Raises:
        UserError: the split is missing, or its text has changed since training.
    """
    if name not in source.splits():
        raise source.unknown_split(name)
    with _placed(run):
        split = source.read(name)
    if run.facts.get("text", {}).get(split.name, split.fingerprint()) != split.fingerprint():
        raise UserError(
            f"The text of {split.name} has changed since {run.folder} was trained, so the training text may contain "
            "it. Restore the original files, or give other files."
        )
    return split


@contextlib.contextmanager
def _placed(run: OpenRun) -> Iterator[None]:
    """Add the place where the run expects its data to errors about the data."""
    try:
        yield
    except UserError as error:
        trained = str(run.facts.get("folder", "another folder"))
        moved = (
            f" Its paths are relative to {trained}, where the run was trained; the current folder is {Path.cwd()}."
            if trained != str(Path.cwd())
            else ""
        )
        raise UserError(
            f"{error} (This is the data set of {run.folder / 'config.yaml'}.{moved} For other text, give files: "
            f"source=FILE and its translations.)"
        ) from error


@contextlib.contextmanager
def describes(run: Run, what: str, *, as_saved: bool = False) -> Iterator[None]:
    """Report errors in this context as damage of a run's configuration, or as written by another version.

    With `as_saved`, no command line has changed the configuration, so that invalid values come from the run, too.
    """
    does_not = f"it does not describe {what}"
    with reading(run.folder / "config.yaml", does_not, (SettingError,) if as_saved else ()):
        try:
            yield
        except (UnknownSettingError, SettingError, LookupError, TypeError, AttributeError) as error:
            reason = str(error) if isinstance(error, UserError) else f"{does_not} ({error})"
            of_line = isinstance(error, SettingError) and not as_saved
            if not of_line and (of_version := run.misfit(reason)):
                raise of_version from error
            raise


def note_unused_attention(configs: Iterable[Mapping[str, Any]], overrides: Sequence[str]) -> None:
    """Print a note if the command line sets the attention of models that have none.

    This is not a mistake: a sweep may combine scores with wirings.
    """
    named = [word for word in overrides if re.match(r"[+~]*(attention\b(?![^=]*@)|search\.coverage_penalty=)", word)]
    if named and not any(attends(config) for config in configs):
        print_message(f"decoder=none has no attention, so these settings have no effect: {' '.join(named)}.")


@dataclass(frozen=True)
class TranslatorRequest:
    """The runs that translate, and their settings; `configs/translate.yaml` explains the settings."""

    run: str | Sequence[str]
    checkpoint: Checkpoint
    search: SearchRequest
    compute: Compute
    batch_sentences: Positive | None
    shortlist: NotNegative | None
    length_ratio: Weight | None
    extra_length: Positive
    max_source_length: Positive
    long_lines: Literal["split", "truncate"]
    slots: Sequence[Any] | None = None
    context_sentences: NotNegative | None = None
    doubts: bool = False
    keep_words: bool = True

    def __post_init__(self) -> None:
        if not self.runs:
            raise UserError("run=[] is empty. Give run=checkpoints/NAME.")

    @functools.cached_property
    def runs(self) -> list[OpenRun]:
        """The runs (UserError if one is missing or damaged)."""
        return [open_run(Path(path)) for path in ([self.run] if isinstance(self.run, str) else self.run)]

    @property
    def most_sentences(self) -> int:
        """The most sentences in a batch."""
        return self.batch_sentences or (batch_sizes.ON_GPU if self.compute.on_gpu else batch_sizes.ON_CPU)

    def open(self, keep_weights: bool = True) -> Translator:
        """The translator; with `keep_weights`, its translations have attention weights.

        Raises:
            UserError: a run is missing, incomplete or damaged, or the runs of an ensemble do not fit together.
        """
        runs, first = self.runs, self.runs[0]
        with describes(first.files, "a search", as_saved=not self.search.words):
            search = build_search(self.search.for_run(first.config)[1])
        opened = [open_model(run, self.checkpoint, self.compute) for run in runs]
        note_unused_attention((run.config for run in runs), self.search.words)
        models, tokenizer = [model for model, _ in opened], opened[0][1]
        for run, (_, other) in zip(runs[1:], opened[1:], strict=True):
            if other.fingerprint != tokenizer.fingerprint:
                raise UserError(
                    f"{run.folder} and {first.folder} have different tokenizers, so they cannot vote on the same "
                    f"pieces. Train the members of an ensemble on the same data with the same tokenizer settings."
                )
        ratios = [float(run.facts.get("length_ratio", LENGTH_RATIO)) for run in runs]
        return Translator(
            models,
            tokenizer,
            search,
            compute=self.compute,
            batch_sentences=self.most_sentences,
            fits=self.batch_sentences is None,
            length_ratio=max(ratios) if self.length_ratio is None else self.length_ratio,
            extra_length=self.extra_length,
            max_source_length=self.max_source_length,
            long_lines=self.long_lines,
            weights=keep_weights,
            shortlist=open_shortlist(first.files, self.shortlist or 0, tokenizer),  # null here: not only text is needed
            slots=self.slots,
            context_sentences=-1 if self.context_sentences is None else self.context_sentences,
            trained_head=first.trained_head(models[0].decoder.heads) if len(runs) == 1 else None,
        )
