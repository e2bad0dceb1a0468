"""The ancestor: the run that is fine-tuned (start=RUN). The new run takes its settings, tokenizer and weights.

The ancestor may be untrusted: its settings cannot name code (`nmt.config.choices`); its tokenizer and weights are data.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from nmt.build.open import OpenRun, describes, open_model, open_run
from nmt.build.parts import assemble, build_source
from nmt.build.requests import read
from nmt.config.choices import is_choice, place
from nmt.config.composition import compose, parse
from nmt.config.configuration import ABSENT, flattened
from nmt.config.quotes import pasteable, python, unquoted
from nmt.config.resumption import key_of, unnamed_choices, unresolved
from nmt.data.dataset import DataSource, Split
from nmt.data.languages import UNNAMED
from nmt.data.sources import UserFiles
from nmt.model import Seq2Seq
from nmt.model.weights import fingerprint
from nmt.system.compute import CPU
from nmt.system.errors import UserError
from nmt.system.limits import Fraction
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.train.advice import Continuation, recommend_held_out
from nmt.train.ancestor_text import AncestorText

#: The parts of a configuration that are taken from the ancestor.
PARTS = ("model", "encoder", "attention", "decoder", "context", "tokenizer", "search", "optimizer")
#: The parts whose settings can change the shape of a parameter.
SHAPED = PARTS[:5]
#: The ancestor's learning rate is divided by this number, unless the ancestor was fine-tuned itself.
SLOWER = 10
#: Maximum names of parameters in a message, lines that are searched for unknown characters, and unknown texts shown.
NAMES, LINES, UNKNOWN = 6, 20_000, 8


@dataclass(frozen=True)
class StartRequest:
    """The settings for fine-tuning a run; `configs/train.yaml` explains them."""

    start: Path | None = None
    start_mix: Fraction = 0.0
    start_data: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.start is None:
            given = [f"start_mix={self.start_mix:g}"] if self.start_mix else []
            given += [] if self.start_data is None else [f"start_data={self.start_data}"]
            if given:
                raise UserError(f"{given[0]} needs a run to go on from. Give start=checkpoints/NAME as well.")


@dataclass(frozen=True, eq=False)
class Ancestor:
    """A run to fine-tune.

    Attributes:
        mix: the share of each batch that is drawn from the ancestor's training text, 0 to 1.
        texts: the text that the ancestor was trained and validated on.
    """

    run: OpenRun
    mix: float
    texts: AncestorText

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.run.folder

    def tokenizer(self) -> Tokenizer:
        """The run's tokenizer (UserError if it is damaged)."""
        return load_tokenizer(self.run.files.tokenizer)

    def check_shapes(self, config: DictConfig, overrides: Sequence[str]) -> None:
        """Raise UserError if the run's weights do not fit a model with this configuration."""
        tokenizer = self.tokenizer()
        sizes = (tokenizer.source.size, tokenizer.target.size, tokenizer.joint)
        with torch.device("meta"):
            theirs, ours = (
                {name: tuple(weight.shape) for name, weight in assemble(each, *sizes, initial=False).named_parameters()}
                for each in (self.run.config, config)
            )
        name = next((name for name in ours if theirs.get(name, ours[name]) != ours[name]), None)
        if name is None:
            return
        words = [unquoted(word) for word in overrides if _part(word) in SHAPED]
        raise UserError(
            f"{' '.join(words) or 'The model'} changes the shape of {name}: {list(theirs[name])} in {self.folder}, "
            f"{list(ours[name])} here. Leave out what changes sizes, or train a new run without start=."
        )

    def pass_on(self, model: Seq2Seq) -> tuple[Seq2Seq, list[str]]:
        """Copy the run's best weights into a model; return the run's own model, and messages on the differences.

        Raises:
            UserError: the run is incomplete or damaged.
        """
        old, _ = open_model(self.run, "best", CPU)
        theirs, ours = dict(old.named_parameters()), dict(model.named_parameters())
        with torch.no_grad():
            for name in theirs.keys() & ours.keys():
                ours[name].copy_(theirs[name])
        new, gone = ([name for name in one if name not in other] for one, other in ((ours, theirs), (theirs, ours)))
        notes = [f"New parameters, which start as always: {_listed(new)}."] if new else []
        return old, notes + ([f"Parameters of {self.folder} that are not used: {_listed(gone)}."] if gone else [])

    def facts(self, model: Seq2Seq) -> dict[str, Any]:
        """The run's folder, the checksum of its weights and their step, for run.json."""
        step = {} if self.run.best_step is None else {"step": self.run.best_step}
        return {"run": str(self.folder), "weights": fingerprint(model), **step}


def open_ancestor(config: DictConfig, finished: bool = True) -> Ancestor | None:
    """The ancestor, or None without start=; with `finished`, its training must be finished.

    Raises:
        UserError: start= or start_mix= is invalid; the run is missing, unfinished, damaged or has another format.
    """
    wanted = read(StartRequest, config)
    if wanted.start is None:
        return None
    run = open_run(Path(wanted.start))
    status = run.facts.get("status")
    if finished and status != "finished":
        place = f"{pasteable('name', run.folder.name)} {pasteable('checkpoints', run.folder.parent)}"
        raise UserError(
            f"{run.folder} is not finished (status: {status}). Finish it: {python()} -m nmt.train {place} resume=true"
        )
    return Ancestor(run, wanted.start_mix, AncestorText(run, wanted.start_data, Path(str(config.cache), "files")))


def choices_of_start(overrides: Sequence[str]) -> list[str]:
    """The choices of the ancestor, as overrides to be put before the command line.

    The list is empty without start=, and for a resumed run if the ancestor cannot be opened.

    Raises:
        UserError: see `open_run`.
    """
    words = [parse("train", word) for word in overrides if word.startswith("start=")]
    if not words or words[-1].value() is None:
        return []
    try:
        run = open_run(Path(str(words[-1].value())))
    except UserError:
        if any(re.match("resume=(true|auto)", word) for word in overrides):
            return []
        raise
    with describes(run.files, "a training"):
        return [word for word in unnamed_choices(run.config, overrides) if _part(word) in PARTS]


def inherited(config: DictConfig, overrides: Sequence[str], ancestor: Ancestor) -> DictConfig:
    """The configuration of a command line with the settings of its ancestor.

    Settings that the command line does not name are taken from the ancestor. Values derived from other settings are
    still derived. `config` is composed from the ancestor's choices (`choices_of_start`) and the command line.

    Raises:
        UserError: the command line sets the tokenizer or names a preset.
    """
    fixed = [word for word in overrides if re.match(r"[+~]*(tokenizer(?!\.sampling\b)|experiment)\b", word)]
    if fixed:
        raise UserError(
            f"{unquoted(fixed[0])} cannot be set: the tokenizer and the model are those of {ancestor.folder}. Leave it "
            "out, or train a new run without start=."
        )
    saved: Any = OmegaConf.to_container(ancestor.run.config, resolve=False)
    unchanged = {place(str(key)) for key, name in saved["choices"].items() if config.choices.get(key) == name}
    places = {place(str(key)) for key in (*saved["choices"], *config.choices)}
    default = compose("train", [f"{key}={name}" for key, name in config.choices.items()])
    raw, asked, named = unresolved(default), unresolved(config), {key_of(word) for word in overrides}
    values = {
        key: value
        for key, value in flattened(saved).items()
        if not is_choice(key)
        and key.partition(".")[0] in PARTS
        and key in raw
        and _owner(key, places) in {*unchanged, ""}
    }
    # A value that refers to another setting (${model.dropout}) still does so, unless the ancestor has overridden it.
    follows = {key for key in values if isinstance(raw[key], str) and re.search(r"(?<!\\)\$\{", raw[key])}
    for key in values.keys() - follows:
        OmegaConf.update(default, key, values[key])
    for key, value in values.items():
        is_set = key not in follows or OmegaConf.select(default, key) != value
        if is_set and key not in named and raw[key] == asked.get(key, ABSENT):
            OmegaConf.update(config, key, value)
    config.tokenizer.model, config.tokenizer.joint = None, ancestor.tokenizer().joint
    with describes(ancestor.run.files, "a training"):
        OmegaConf.to_container(config, resolve=True)
    _name_languages(config, ancestor.run.languages)
    return config


def hold_out(config: DictConfig, source: DataSource, words: list[str]) -> list[str]:
    """Set how many pairs a fine-tuning holds out, unless the command line sets it; return the complete overrides."""
    if not isinstance(source, UserFiles) or source.undivided is None:
        return words
    if (sizes := recommend_held_out(source.undivided)) is None:
        return words
    source.hold_out(*sizes)
    config.data.valid_pairs, config.data.test_pairs = sizes
    written = [
        f"data.{name}_pairs={size}" for name, size in zip(("valid", "test"), sizes, strict=True) if size is not None
    ]
    return [*written, *words]


def continued(config: DictConfig, overrides: Sequence[str], ancestor: Ancestor, advice: Continuation) -> list[str]:
    """Set the defaults of a fine-tuning, unless the command line sets them; return the complete overrides."""
    named = {key_of(word) for word in overrides}
    budgets = {"trainer.steps", "trainer.epochs", "trainer.minutes"}
    defaults: dict[str, float | str] = {
        "schedule.warmup_steps": advice.warmup_steps,
        **({} if budgets & named else {"trainer.epochs": advice.epochs}),
    }
    rate = OmegaConf.select(config, "optimizer.lr")
    if isinstance(rate, float | int):
        defaults["optimizer.lr"] = rate if ancestor.run.config.get("start") else rate / SLOWER
    if config.data.get("valid_pairs") == 0 and config.data.get("valid") is None:  # no validation can choose its weights
        defaults["trainer.select"] = "last"
    if "last" not in (config.trainer.select, defaults.get("trainer.select")):  # else validation does not choose weights
        defaults["trainer.patience"] = advice.patience
    defaults = {key: value for key, value in defaults.items() if key not in named}
    for key, value in defaults.items():
        OmegaConf.update(config, key, value)
    return [*(f"{key}={value}" for key, value in defaults.items()), *overrides]


def check_languages(pair: tuple[str, str], ancestor: Ancestor) -> list[str]:
    """Warnings if the languages differ from the ancestor's.

    Raises:
        UserError: source and target are swapped.
    """
    prior = ancestor.run.languages
    if pair == prior or {*pair, *prior} & {*UNNAMED}:
        return []
    if pair == prior[::-1]:
        raise UserError(
            f"{ancestor.folder} translates from {prior[0]} to {prior[1]}, and this text is {pair[0]} to {pair[1]}. "
            f"Give {prior[0]} first: data.files=[SOURCE,TARGET], or data.columns=[SOURCE,TARGET] of a table."
        )
    return [
        f"warning: {ancestor.folder} translates from {prior[0]} to {prior[1]}, and this text is {pair[0]} to {pair[1]}."
    ]


def unknown_note(split: Split, tokenizer: Tokenizer, folder: Path) -> str:
    """A message if the tokenizer has no pieces for some of the text; "" if it covers all of the text."""
    notes = []
    for side, lines, vocabulary in zip(("source", "target"), split[1:3], tokenizer[:2], strict=True):
        of_lines = [unknown for unknown in vocabulary.unknown(lines[:LINES]) if unknown]
        if of_lines:
            share, texts = len(of_lines) / min(len(lines), LINES), dict.fromkeys(itertools.chain(*of_lines))
            more = f" and {len(texts) - UNKNOWN:,} more" if len(texts) > UNKNOWN else ""
            notes.append(f"{share:.1%} of the {side} lines ({' '.join(itertools.islice(texts, UNKNOWN))}{more})")
    if not notes:
        return ""
    return (
        f"The tokenizer of {folder} has no pieces for some of {' and of '.join(notes)}. Such text is spelled byte by "
        "byte, or is an unknown word, and is learnt slowly. If there is much of it, train a new run on both texts."
    )


def _name_languages(config: DictConfig, languages: tuple[str, str]) -> None:
    """Set the languages of the data to the ancestor's, if unset and the files name none, or a table has both."""
    if (
        {*languages} & {*UNNAMED}
        or config.data.get("source", "") is not None
        or config.data.get("target", "") is not None
    ):
        return
    source = None if "files" not in config.data else build_source(config)
    is_table = isinstance(source, UserFiles) and config.data.columns is None and source.has_columns_of(languages)
    if source is None or is_table or {*source.languages} & {*UNNAMED}:
        config.data.source, config.data.target = languages


def _owner(key: str, places: set[str]) -> str:
    """The longest place of a choice that contains the setting `key`; "" if there is none, as for the model."""
    return max((place for place in places if key.startswith(f"{place}.")), key=len, default="")


def _part(word: str) -> str:
    """The part of the configuration that an override sets: "encoder" for `attention/score@encoder.x.score=dot`."""
    return place(key_of(word)).partition(".")[0]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
    return f"{', '.join(names[:NAMES])}{more}"
