"""From run folders back to a translator: what translating and evaluating begin with."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from omegaconf import DictConfig, ListConfig, OmegaConf

from nmt import build
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs import Run
from nmt.text.tokenizer import Tokenizer, load_tokenizer
from nmt.translation.translator import Translator


def runs_of(config: DictConfig) -> list[Run]:
    """The runs that `run` names: one, or several for an ensemble."""
    value = OmegaConf.to_container(config)["run"]  # type: ignore[call-overload, index]
    if value == "???":
        raise UserError("Say which run: run=checkpoints/NAME.")
    paths = [str(path) for path in value] if isinstance(config.run, ListConfig) else [str(value)]
    if not paths:
        raise UserError("run=[] names no run. Give run=checkpoints/NAME.")
    return [Run(Path(path)) for path in paths]


def open_model(run: Run, checkpoint: str, device: torch.device) -> tuple[Seq2Seq, Tokenizer]:
    """A run's model with its trained weights, ready to translate, and its tokenizer.

    Raises:
        UserError: the run is incomplete or damaged.
    """
    if checkpoint not in ("best", "last"):
        raise UserError(f"checkpoint={checkpoint} is not known. Give checkpoint=best or checkpoint=last.")
    config = run.config()
    tokenizer = load_tokenizer(run.tokenizer)
    try:
        model = build.build_model(config, tokenizer)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{run.folder / 'config.yaml'} does not describe a model: {error}.") from error
    load_weights(run.best if checkpoint == "best" else run.last, model)
    return model.to(device).eval(), tokenizer


def open_translator(config: DictConfig, overrides: Sequence[str]) -> Translator:
    """A translator for the runs, the search and the device that the configuration names.

    Raises:
        UserError: a run is missing, incomplete or damaged, or the members of an ensemble do not fit together.
    """
    runs = runs_of(config)
    build.use_threads(config.threads)
    device = build.build_device(str(config.device))
    autocast = build.build_precision(str(config.precision), device)
    search = build.build_search(_search_node(config, overrides, runs[0]))
    opened = [open_model(run, str(config.checkpoint), device) for run in runs]
    tokenizer = opened[0][1]
    for run, (_, other) in zip(runs[1:], opened[1:], strict=True):
        if other.fingerprint != tokenizer.fingerprint:
            raise UserError(
                f"{run.folder} and {runs[0].folder} have different tokenizers, so they cannot vote on the same pieces. "
                f"Train the members of an ensemble on the same data with the same tokenizer settings."
            )
    return Translator(
        [model for model, _ in opened],
        tokenizer,
        search,
        device=device,
        autocast=autocast,
        batch_sentences=int(config.batch_sentences),
        length_ratio=float(config.length_ratio),
        extra_length=int(config.extra_length),
        max_source_length=int(config.max_source_length),
        long_lines=str(config.long_lines),
        warn=lambda line: print(f"warning: {line}", file=sys.stderr),
    )


def _search_node(config: DictConfig, overrides: Sequence[str], run: Run) -> DictConfig:
    """The run's own search with what this command line sets; another search if the line names one."""
    named = [override.lstrip("+").partition("=")[0] for override in overrides]
    search: DictConfig = config.search
    if "search" in named:
        return search
    node: DictConfig = run.config().search
    settings = [key.partition(".")[2] for key in named if key.startswith("search.")]
    if settings and node.get("_target_") != search.get("_target_"):
        return search  # the settings are those of the search that this verb composes
    return OmegaConf.merge(node, {setting: search[setting] for setting in settings})  # type: ignore[return-value]


def head_of(config: DictConfig) -> int | str:
    """The head to show: "mean" or a number."""
    text = str(config.head)
    if text == "mean":
        return text
    if not text.isdigit():
        raise UserError(f"head={text} is not known. Give head=mean or a number from 0.")
    return int(text)
