"""From run folders back to a translator: what translating and evaluating begin with."""

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt import build
from nmt.compute import Compute
from nmt.data.corpus import DataSource, Split
from nmt.errors import SettingError, UserError
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs import Run, attends
from nmt.text.lexicon import load_lexicon
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.translation.shortlist import Shortlist
from nmt.translation.translator import LENGTH_RATIO, Translator


def runs_of(config: DictConfig) -> list[Run]:
    """The runs that `run` names: one, or several for an ensemble."""
    if OmegaConf.is_missing(config, "run") or config.run is None:
        raise UserError("Say which run: run=checkpoints/NAME.")
    paths = [str(path) for path in config.run] if isinstance(config.run, ListConfig) else [str(config.run)]
    if not paths:
        raise UserError("run=[] names no run. Give run=checkpoints/NAME.")
    return [Run(Path(path)) for path in paths]


def open_model(run: Run, checkpoint: str, compute: Compute) -> tuple[Seq2Seq, Tokenizer]:
    """A run's model with its trained weights, ready to translate, and its tokenizer.

    Raises:
        UserError: the run is incomplete or damaged.
    """
    if checkpoint not in ("best", "last"):
        raise UserError(f"checkpoint={checkpoint} is not known. Give checkpoint=best or checkpoint=last.")
    config = run.config()
    tokenizer = load_tokenizer(run.tokenizer)
    with describes(run, "a model", as_saved=True):
        model = build.build_model(config, tokenizer)
    load_weights(run.best if checkpoint == "best" else run.last, model)
    return model.to(compute.device).eval(), tokenizer


def own_data(run: Run) -> DataSource:
    """The data set that a run was trained on (UserError, with where it was, if it is not there)."""
    config = run.config()
    with _placed(run), describes(run, "a data set", as_saved=True):
        source = build.build_source(config)
        source.tests()
        return source


def own_split(run: Run, source: DataSource, name: str) -> Split:
    """A split of a run's own data set, whose text must be what it was.

    Raises:
        UserError: it is not there, or the text has changed since the training.
    """
    if name not in source.splits():
        raise source.unknown_split(name)
    with _placed(run):
        split = source.read(name)
    if run.facts().get("text", {}).get(split.name, split.fingerprint()) != split.fingerprint():
        raise UserError(
            f"The text of {split.name} has changed since {run.folder} was trained, and the model may have learnt from "
            f"what is in it now. Put the text back."
        )
    return split


@contextlib.contextmanager
def _placed(run: Run) -> Iterator[None]:
    """Adds to what is wrong with a run's data where the run expects it."""
    try:
        yield
    except UserError as error:
        trained = str(run.facts().get("folder", "another folder"))
        moved = (
            f" Relative paths in it count from where the run was trained, {trained}, and this is {Path.cwd()}."
            if trained != str(Path.cwd())
            else ""
        )
        raise UserError(
            f"{error} (This is the data set of {run.folder / 'config.yaml'}.{moved} Other text is given as files: "
            f"source=FILE, and its translations beside it.)"
        ) from error


@contextlib.contextmanager
def describes(run: Run, what: str, *, as_saved: bool = False) -> Iterator[None]:
    """UserError, naming the run's configuration, where something cannot be built from it.

    With `as_saved`, no command line has changed the configuration: a value that no part takes is damage too.
    """
    damage: tuple[type[Exception], ...] = (KeyError, TypeError, ValueError, AttributeError)
    damage += (RuntimeError, ZeroDivisionError, OmegaConfBaseException)
    if as_saved:
        damage += (SettingError,)
    try:
        yield
    except damage as error:
        raise UserError(
            f"{run.folder / 'config.yaml'} is damaged: it does not describe {what} "
            f"({str(error).splitlines()[0]}). Take a copy of the run that is whole."
        ) from error


def note_unused_attention(configs: Iterable[DictConfig], overrides: Sequence[str]) -> None:
    """Says that settings of the attention take no part where the line gives some to models that have none.

    That is no mistake: a sweep that crosses scores with wirings comes by here.
    """
    named = [word for word in overrides if re.match(r"[+~]*(attention\b|search\.coverage_penalty=)", word)]
    if named and not any(attends(config) for config in configs):
        print(f"decoder=none has no attention, and these change nothing: {' '.join(named)}.", file=sys.stderr)


def open_translator(config: DictConfig, overrides: Sequence[str]) -> Translator:
    """A translator for the runs, the search and the device that the configuration names.

    Raises:
        UserError: a run is missing, incomplete or damaged, or the members of an ensemble do not fit together.
    """
    runs = runs_of(config)
    compute = Compute.choose(str(config.device), str(config.precision), config.threads)
    as_saved = not any(word.startswith("search") for word in overrides)
    with describes(runs[0], "a search", as_saved=as_saved):
        search = build.build_search(_search_node(config, overrides, runs[0]))
    opened = [open_model(run, str(config.checkpoint), compute) for run in runs]
    note_unused_attention((run.config() for run in runs), overrides)
    tokenizer = opened[0][1]
    for run, (_, other) in zip(runs[1:], opened[1:], strict=True):
        if other.fingerprint != tokenizer.fingerprint:
            raise UserError(
                f"{run.folder} and {runs[0].folder} have different tokenizers, so they cannot vote on the same "
                f"pieces. Train the members of an ensemble on the same data with the same tokenizer settings."
            )
    if config.get("slots") is not None:
        _pin([model for model, _ in opened], config, compute)
    return Translator(
        [model for model, _ in opened],
        tokenizer,
        search,
        compute=compute,
        batch_sentences=int(config.batch_sentences),
        length_ratio=_length_ratio(config, runs),
        extra_length=int(config.extra_length),
        max_source_length=int(config.max_source_length),
        long_lines=str(config.long_lines),
        warn=lambda line: print(f"warning: {line}", file=sys.stderr),
        shortlist=_shortlist(config, runs[0], tokenizer),
    )


def _pin(models: Sequence[Seq2Seq], config: DictConfig, compute: Compute) -> None:
    """Makes every model look where `slots` says."""
    settings = OmegaConf.to_container(config)
    assert isinstance(settings, dict)
    for model in models:
        if model.decoder.attention is None:
            raise UserError(
                "slots= pins the attention, and a run with decoder=none has none. Leave it out, or take a run with "
                "attention."
            )
        model.decoder.attention.pin(settings["slots"], compute.device)


def _shortlist(config: DictConfig, run: Run, tokenizer: Tokenizer) -> Shortlist | None:
    count = int(config.get("shortlist", 0))
    if count == 0:
        return None
    lexicon = load_lexicon(run.lexicon, tokenizer.source.size, tokenizer.target.size)
    return Shortlist(lexicon, count, tokenizer.joint)


def _length_ratio(config: DictConfig, runs: Sequence[Run]) -> float:
    """What the command line says, else what covers the training pairs of every run."""
    given = config.length_ratio
    if given is None:
        return max(float(run.facts().get("length_ratio", LENGTH_RATIO)) for run in runs)
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise UserError(f"length_ratio={given} must be a number, such as length_ratio=2, or null.")
    return float(given)


def _search_node(config: DictConfig, overrides: Sequence[str], run: Run) -> DictConfig:
    """The run's own search with what this command line sets; another search if the line names one."""
    named = [override.lstrip("+").partition("=")[0] for override in overrides]
    search: DictConfig = config.search
    if "search" in named:
        return search
    node = run.config().search
    settings = [key.partition(".")[2] for key in named if key.startswith("search.")]
    if not isinstance(node, DictConfig):
        raise UserError(f"{run.folder / 'config.yaml'} is damaged: search is no group of settings.")
    if settings and run.config().choices["search"] != config.choices["search"]:
        return search  # the settings are those of the search that this verb composes
    return OmegaConf.merge(node, {setting: search[setting] for setting in settings})  # type: ignore[return-value]


def has_weights(translator: Translator) -> bool:
    """Whether there are attention weights to look at."""
    return all(model.decoder.attention is not None for model in translator.models)


def where_to_look(config: DictConfig, translator: Translator) -> tuple[int | Literal["mean"], int]:
    """The head ("mean" or a number) and the shift that links and pictures are to show.

    Raises:
        UserError: there is no such head or shift.
    """
    shift = int(config.shift)
    if shift not in (0, 1):
        raise UserError(f"shift={shift} is not known. Give shift=0 or shift=1.")
    return head_of(config, translator), shift


def head_of(config: DictConfig, translator: Translator) -> int | Literal["mean"]:
    """The head that links and pictures are to show: its number, or "mean" (UserError if there is no such head)."""
    text = str(config.head)
    if text == "mean":
        return "mean"
    attentions = [model.decoder.attention for model in translator.models]
    heads = {attention.heads for attention in attentions if attention is not None}
    # Members of an ensemble with different numbers of heads are averaged over theirs.
    last = (heads.pop() if len(heads) == 1 else 1) - 1
    if not text.isdecimal() or int(text) > last:
        known = "head=mean or head=0" if last == 0 else f"head=mean or a number from 0 to {last}"
        raise UserError(f"head={text} is not there. Give {known}.")
    return int(text)
