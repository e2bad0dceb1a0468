"""The verbs: what each command does with its configuration. `python -m nmt.VERB` runs one."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.command.running import main

if TYPE_CHECKING:
    from omegaconf import DictConfig


def run(verb: str, arguments: Sequence[str] | None = None) -> int:
    """Run a verb for a command line, by default this process's, and return the exit status."""
    return main(verb, functools.partial(_work, verb), arguments, _sweep if verb == "train" else None)


def _work(verb: str, config: "DictConfig", overrides: list[str]) -> int:
    """Do a verb's work; only what it needs is imported."""
    match verb:
        case "train":
            from nmt.pipeline.training import train

            return train(config, overrides)
        case "translate":
            from nmt.pipeline.translating import translate

            return translate(config, overrides)
        case "evaluate":
            from nmt.pipeline.evaluating import evaluate

            return evaluate(config, overrides)
        case "align" if config.links is not None:
            from nmt.pipeline.linking import score_links

            return score_links(config)
        case "align":
            from nmt.pipeline.aligning import align

            return align(config)
        case "compare":
            from nmt.pipeline.comparing import compare

            return compare(config)
    raise ValueError(f"there is no verb {verb}")


def _sweep(words: list[str]) -> int:
    from nmt.pipeline.sweeping import sweep

    return sweep(words)
