"""The verbs: what each command does with its configuration. `python -m nmt.VERB` runs one."""

import functools
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.system.errors import missing_package
from nmt.system.memory import bound_kernels, share_cores

if TYPE_CHECKING:
    from omegaconf import DictConfig


def run(verb: str, arguments: Sequence[str] | None = None) -> int:
    """Run a verb for a command line, by default this process's, and return the exit status."""
    if not exists(verb):
        print(f"nmt.{verb}: this installation has no package nmt/{verb}.", file=sys.stderr)
        return 1
    share_cores()
    bound_kernels()
    try:
        from nmt.config.program import main
    except ModuleNotFoundError as error:
        if not (message := missing_package(error)):
            raise
        print(f"nmt.{verb}: {message}", file=sys.stderr)
        return 1
    more = (_sweep, _choices_of_start) if verb == "train" else ()
    return main(verb, functools.partial(_work, verb), arguments, *more)


def exists(verb: str) -> bool:
    """Whether this installation has the verb: extras can be deleted."""
    return importlib.util.find_spec(f"nmt.{verb}") is not None


def _work(verb: str, config: "DictConfig", overrides: list[str]) -> int:
    """Do a verb's work; only what it needs is imported."""
    from nmt.build.requests import read

    match verb:
        case "train":
            from nmt.train.session import train

            return train(config, overrides)
        case "translate":
            from nmt.translate.request import Translating
            from nmt.translate.work import translate

            return translate(read(Translating, config, overrides))
        case "evaluate":
            from nmt.evaluate.request import Evaluating
            from nmt.evaluate.work import evaluate

            return evaluate(read(Evaluating, config, overrides))
        case "align" if config.links is not None:
            from nmt.build.link_scores import Linking, score_links

            return score_links(read(Linking, config), overrides)
        case "align":
            from nmt.align.request import Aligning
            from nmt.align.work import align

            return align(read(Aligning, config))
        case "compare":
            from nmt.compare.request import Comparing, compare

            return compare(read(Comparing, config))
        case "contrast":
            from nmt.contrast.work import Contrasting, contrast

            return contrast(read(Contrasting, config))
        case "export":
            from nmt.export.conversion import Exporting, export

            return export(read(Exporting, config))
        case "check":
            from nmt.check.work import Checking, check

            return check(read(Checking, config))
    # An extra: a package that nothing else imports, so that it can be deleted.
    work: int = importlib.import_module(f"nmt.{verb}.__main__").work(config, overrides)
    return work


def _sweep(words: list[str]) -> int:
    from nmt.train.sweep import sweep

    return sweep(words)


def _choices_of_start(overrides: list[str]) -> list[str]:
    if not any(word.startswith("start=") for word in overrides):
        return []
    from nmt.train.ancestor import choices_of_start

    return choices_of_start(overrides)
