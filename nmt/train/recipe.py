"""From a command line to a recipe: a new run with settings that fit its text, or a resumed run."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.build import parts
from nmt.build.open import data_words, describes, may_use, note_unused_attention
from nmt.build.paths import is_writable, pipes_of, unprotect
from nmt.build.requests import read
from nmt.config.composition import compose
from nmt.config.configuration import ABSENT, look_up, without_classes
from nmt.config.quotes import pasteable
from nmt.config.resumption import merge_for_resume
from nmt.data.dataset import DataSource, Split
from nmt.data.sources import UserFiles
from nmt.data.stored import MANY
from nmt.runs.run import Run, attends, check_name, missing_run
from nmt.system.compute import Compute
from nmt.system.errors import UserError
from nmt.system.limits import Seed
from nmt.system.locks import locked
from nmt.system.terminal import print_message
from nmt.text.scripts import lengths, script_of
from nmt.train.advice import recommend, recommend_continuation, separate_vocabularies
from nmt.train.ancestor import Ancestor, check_languages, continued, hold_out, inherited, open_ancestor
from nmt.train.finished import already_finished
from nmt.training.budget import Budget
from nmt.training.guidance import guided_heads
from nmt.training.schedules import Schedule
from nmt.training.settings import TrainerSettings

RESUME = ("false", "auto", "true")  # auto: true if the run exists
BUDGETS = tuple(field.name for field in fields(Budget))


@dataclass(frozen=True)
class Place:
    """The environment of a training: the device, the folders of runs and of tokenised text, and the seed."""

    compute: Compute
    checkpoints: Path
    cache: Path
    seed: Seed

    def __post_init__(self) -> None:
        self.compute.check_searches_not()


@dataclass(frozen=True)
class Recipe:
    """A training to run.

    Attributes:
        config: the complete configuration, from which everything is built, and which is saved.
        words: the overrides to save: automatic choices, then the user's overrides.
        user_words: the user's overrides only.
        run: the run; None for a new run that is named after its data and model.
        resume: whether the run is resumed.
        source: the data set.
        settings: settings of the training loop.
        schedule: schedule of the learning rate.
        place: device, folders and seed.
        ancestor: the run to fine-tune; None without start=, or if it cannot be opened and a resumed run can do without.
    """

    config: DictConfig
    words: Sequence[str]
    user_words: Sequence[str]
    run: Run | None
    resume: bool
    source: DataSource
    settings: TrainerSettings
    schedule: Schedule
    place: Place
    ancestor: Ancestor | None = None

    @property
    def resumed(self) -> Run | None:
        """The run to resume, if there is one."""
        return self.run if self.resume else None

    @property
    def starts(self) -> bool:
        """Whether the training continues from another run (start=), even if that run no longer exists."""
        return self.config.get("start") is not None

    @property
    def learns_all(self) -> bool:
        """Whether no pair is held out for validation."""
        return "valid" not in self.source.splits()

    @property
    def attends(self) -> bool:
        """Whether the model has attention."""
        return attends(self.config)

    @property
    def context_sentences(self) -> int:
        """The number of previous sentences that the model sees."""
        return int(self.config.context.sentences)

    @property
    def stem(self) -> str:
        """A name for a run, from its data, encoder (unless it is the default), decoder, score and context."""
        choices = self.config.choices
        encoder = [choices["encoder"]] if choices["encoder"] != "gru" else []
        score = [choices["attention/score"]] if self.attends else []
        context = [f"{choices['context']}{self.context_sentences}"] if self.context_sentences else []
        return "-".join([self.source.name, *encoder, choices["decoder"], *score, *context])


@contextmanager
def opened(config: DictConfig, overrides: Sequence[str]) -> Iterator[Recipe | None]:
    """Yield the recipe of a command line, with its run locked if it has a name; None if the run is finished.

    Raises:
        UserError: the run cannot be created or resumed; see also `new_recipe`.
    """
    resume = str(config.resume).lower()
    if resume not in RESUME:
        raise UserError(f"resume={config.resume}: must be true, auto or false.")
    if config.name is None:
        if resume != "false":
            raise UserError(f"resume={resume} needs the run's name. Give name= as well.")
        yield new_recipe(config, overrides, None)
        return
    check_name(str(config.name))
    run = Run(Path(str(config.checkpoints)) / str(config.name))
    if not run.exists():
        run.check_free()
        if resume == "true":
            raise UserError(f"{missing_run(run.folder)} To train a new run, leave out resume=true or give resume=auto.")
    with locked(run.folder):
        if not run.exists():
            yield new_recipe(config, overrides, run)
            return
        if resume == "false":
            raise UserError(
                f"{run.folder} already exists. To resume it, add resume=true. To train a new run, give another name=."
            )
        given, config = config, resumed(run, overrides)
        finished = already_finished(config, run)
        if finished:
            print_message(finished)
        elif not is_writable(run.folder):
            raise UserError(f"{run.folder} is write-protected and cannot be resumed: {unprotect(run.folder)}")
        yield None if finished else resumed_recipe(checked_data(config, run, given), run)


def checked_data(config: DictConfig, run: Run, given: DictConfig) -> DictConfig:
    """Return the configuration of a run to resume, if its data settings are trusted.

    They are trusted if this user made the run, or if the command line alone (`given`) repeats all of them. The cache
    and checkpoint folders of a run that others made are taken from the command line.

    Raises:
        UserError: the data settings are not trusted.
    """
    if run.is_own():
        return config
    saved, command_line = (without_classes(OmegaConf.to_container(each.data, resolve=True)) for each in (config, given))
    same = config.choices["data"] == given.choices["data"] and all(
        command_line.get(key, ABSENT) == value for key, value in saved.items()
    )
    start = config.get("start")
    starts = {key: config.get(key) for key in ("start", "start_data")}
    if not (same or may_use(config)) or (start and any(given.get(key) != value for key, value in starts.items())):
        words = [*data_words(run), *(pasteable(key, value) for key, value in starts.items() if value is not None)]
        raise UserError(
            f"{run.folder} was made or changed elsewhere, so its data settings are not used. "
            f"If you trust them, repeat them on the command line: {' '.join(words)}"
        )
    config = config.copy()
    config.cache, config.checkpoints = given.cache, given.checkpoints
    return config


def new_recipe(config: DictConfig, overrides: Sequence[str], run: Run | None) -> Recipe:
    """Make the recipe of a new run; for a user's own files, sizes are chosen by the amount of text.

    Raises:
        UserError: a setting is out of range, or sizes do not fit together.
    """
    config, ancestor = with_ancestor(config, overrides)
    parts.check_settings(config)
    note_unused_attention([config], overrides)
    if pipes := pipes_of(config.data):
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise UserError(f"{pipes}: several processes cannot read one pipe. Write the text to a file.")
        print_message(f"{pipes}: a pipe. The run cannot be resumed or scored on this text. For that, train on a file.")
    source, words = _source(config), list(overrides)
    if ancestor is not None:
        for note in check_languages(source.languages, ancestor):
            print_message(note)
        words = hold_out(config, source, words)
        pairs, mean, _, per_word = _amount(config, source)
        words = continued(config, words, ancestor, recommend_continuation(pairs * mean / per_word))
    elif isinstance(source, UserFiles):
        config, words = fit_to_text(config, words, source)
    take_named_budget(config, overrides)
    return _recipe(config, words, overrides, run, source, ancestor)


def with_ancestor(config: DictConfig, overrides: Sequence[str]) -> tuple[DictConfig, Ancestor | None]:
    """The configuration with the settings of its ancestor, and the ancestor; unchanged and None without start=.

    Raises:
        UserError: see `open_ancestor`, `inherited` and `Ancestor.check_shapes`.
    """
    ancestor = open_ancestor(config)
    if ancestor is None:
        return config, None
    config = inherited(config, overrides, ancestor)
    with possible():
        ancestor.check_shapes(config, overrides)
    return config, ancestor


def resumed_recipe(config: DictConfig, run: Run) -> Recipe:
    """Make the recipe of a resumed run with the configuration from `resumed` (UserError as for `new_recipe`)."""
    words, ancestor = run.overrides(), None
    with describes(run, "a training"):
        if pipes := pipes_of(config.data):
            raise UserError(
                f"{run.folder} cannot be resumed: it was trained on a pipe ({pipes}), whose text was not kept. Write "
                "the text to a file, and train a new run on it with another name=."
            )
        source = _source(config)
    try:
        ancestor = open_ancestor(config, finished=False)
    except UserError:
        if config.start_mix:
            raise
    with describes(run, "a training"):
        return _recipe(config, words, words, run, source, ancestor, resume=True)


def _source(config: DictConfig) -> DataSource:
    source = parts.build_source(config)
    source.known = Path(str(config.cache), "files")
    return source


def _recipe(
    config: DictConfig,
    words: Sequence[str],
    user_words: Sequence[str],
    run: Run | None,
    source: DataSource,
    ancestor: Ancestor | None,
    resume: bool = False,
) -> Recipe:
    settings, schedule, where = parts.build_trainer(config), parts.build_schedule(config), read(Place, config)
    parts.build_search(config.search)
    check_model(config)
    return Recipe(config, words, user_words, run, resume, source, settings, schedule, where, ancestor)


def resumed(run: Run, overrides: Sequence[str]) -> DictConfig:
    """The configuration of a resumed run, with the changes of the command line.

    Raises:
        UserError: the run is damaged, or the command line changes a setting that is fixed.
    """
    with describes(run, "a training"):
        config = merge_for_resume(run.config(), run.overrides(), overrides)
        take_named_budget(config, overrides)
    return config


def check_model(config: DictConfig) -> None:
    """Raise UserError if sizes do not fit together; this check needs no text."""
    parts.check_settings(config)
    trainer = parts.build_tokenizer_trainer(config)
    joint = len(trainer.models) == 1 if trainer.models else trainer.joint
    with possible():
        model = parts.assemble(config, 8, 8, joint)
        parts.build_optimizer(config, model)
    if parts.build_trainer(config).guided_alignment and model.decoder.heads:
        guided_heads(model.decoder.heads, config.trainer.get("guided_head"))


@contextmanager
def possible() -> Iterator[None]:
    """Convert torch's errors about impossible settings to UserError."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (ValueError, RuntimeError, ZeroDivisionError) as error:
        raise UserError(f"Invalid model settings: {str(error).splitlines()[0]}") from error


def fit_to_text(config: DictConfig, overrides: Sequence[str], source: UserFiles) -> tuple[DictConfig, list[str]]:
    """Choose sizes by the amount of text; return the new configuration and its complete overrides.

    The overrides of the command line take precedence.
    """
    pairs, mean, unit, per_word = _amount(config, source)
    pieces, sizes = None if config.tokenizer.model else str(config.tokenizer.model_type), not _has_own_sizes(overrides)
    advised, reasons = recommend(pairs, mean, unit=unit, per_word=per_word, pieces=pieces, sizes=sizes)
    raw: Any = OmegaConf.to_container(config, resolve=False)
    # Sizes that this model does not have, or that are derived from other settings, stay unset.
    of = {word: word.partition("=")[0] for word in advised}
    advised = [word for word in advised if not of[word].endswith(".size") or isinstance(look_up(raw, of[word]), int)]
    named, budgets = _keys(overrides), {f"trainer.{budget}" for budget in BUDGETS}
    named |= budgets if named & budgets else set()
    for reason in reasons:
        keys = set(re.findall(r"\b[a-z]+\.[a-z_]+", reason)) - {"trainer.patience"}
        if not keys or keys - named:  # no reasons for settings that the user has set
            print_message(reason)
    words = [*advised, *overrides]
    return compose("train", words), words


def _has_own_sizes(overrides: Sequence[str]) -> bool:
    """Whether the preset of the command line sets sizes or dropout, as those of papers do."""
    presets = [word for word in overrides if "experiment" in _keys([word])]
    preset, without = compose("train", presets), compose("train", [])
    keys = ("model.embedding_size", "model.dropout", "encoder.size", "decoder.size")
    return any(OmegaConf.select(preset, key) != OmegaConf.select(without, key) for key in keys)


def _amount(config: DictConfig, source: DataSource) -> tuple[int, float, str, float]:
    """The number of training pairs, the mean length of a source sentence, its unit, and the mean units per word."""
    lines = source.read("train").source
    counts, unit, per_word = lengths(lines[:: len(lines) // MANY + 1])  # a sample of a very large text
    # Lines over the limit are dropped later: their length must not make a small text seem large.
    longest = per_word * parts.build_trainer(config).max_source_length
    return len(lines), sum(min(count, longest) for count in counts) / max(1, len(counts)), unit, per_word


def own_settings(recipe: Recipe, keys: Iterable[str]) -> dict[str, Any]:
    """The values of those keys that exist and are not derived from other settings, as a Transformer's size is."""
    raw: Any = OmegaConf.to_container(compose("train", recipe.user_words), resolve=False)
    given = {key: look_up(raw, key) for key in keys}
    fixed = (key for key, value in given.items() if value is not ABSENT and not str(value).startswith("${"))
    return {key: OmegaConf.select(recipe.config, key) for key in fixed}


def with_own_vocabularies(recipe: Recipe, split: Split) -> tuple[Recipe, list[str]]:
    """The recipe with separate vocabularies if the scripts differ and the command line allows it, and the reasons."""
    named = _keys(recipe.user_words)
    tokenizer, model = recipe.config.tokenizer, recipe.config.model
    fixed = "tokenizer.joint" in named or (model.tie_embeddings == "all" and "model.tie_embeddings" in named)
    if recipe.resume or fixed or tokenizer.model or not tokenizer.joint:
        return recipe, []
    codes = recipe.source.languages
    scripts = script_of(split.source, codes[0]), script_of(split.target, codes[1])
    advised, reasons = separate_vocabularies(scripts, tied=model.tie_embeddings == "all")
    config = recipe.config.copy()
    config.merge_with_dotlist(advised)
    return replace(recipe, config=config, words=[*advised, *recipe.words]), reasons


def _keys(overrides: Sequence[str]) -> set[str]:
    return {override.lstrip("+").partition("=")[0] for override in overrides}


def take_named_budget(config: DictConfig, overrides: Sequence[str]) -> None:
    """Remove the default budgets if the command line sets a budget, so that only this budget ends the training."""
    named = _keys([override for override in overrides if not override.endswith("=null")])
    unnamed = [budget for budget in BUDGETS if f"trainer.{budget}" not in named]
    if len(unnamed) < len(BUDGETS):
        config.trainer.update(dict.fromkeys(unnamed))
