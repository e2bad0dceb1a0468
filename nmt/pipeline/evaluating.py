"""From a run to its scores: translates test splits, scores them, and draws what the model looked at."""

import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from nmt import build
from nmt.data.corpus import Split
from nmt.data.lines import read_lines
from nmt.errors import UserError
from nmt.evaluation.report import SplitResult, evaluate_split, summary
from nmt.pipeline.opening import head_of, open_translator, runs_of
from nmt.runs import Run
from nmt.translation.translator import Translator


def evaluate(config: DictConfig, overrides: Sequence[str]) -> int:
    """Scores every test split of the run's data set, one of them, or a pair of files; prints a table."""
    run = runs_of(config)[0]
    languages, splits = _splits(config, run)
    translator = open_translator(config, overrides)
    root = Path(str(config.output)) if config.output else run.evaluation
    results = []
    for split in splits:
        results.append(_evaluate(config, run, translator, split, languages, root / split.name))
    print(summary(results))
    print(f"\nTranslations, scores and pictures: {root}")
    return 0


def _splits(config: DictConfig, run: Run) -> tuple[tuple[str, str], list[Split]]:
    """The languages, and what is to be scored."""
    if (config.source is None) != (config.reference is None):
        given, lacking = ("source", "reference") if config.reference is None else ("reference", "source")
        raise UserError(f"{given}= needs {lacking}= beside it: scoring takes both.")
    if config.source is not None:
        if config.split is not None:
            raise UserError("split= and source= are two things to score. Give one of them.")
        paths = [Path(str(config.source)), Path(str(config.reference))]
        sides = [read_lines(path) for path in paths]
        if len(sides[0]) != len(sides[1]):
            raise UserError(
                f"{paths[0]} has {len(sides[0]):,} lines and {paths[1]} has {len(sides[1]):,}. "
                f"Line i of one must be the translation of line i of the other."
            )
        if not sides[0]:
            raise UserError(f"{paths[0]} is empty. Give sentences to translate.")
        languages = run.facts().get("languages", ["source", "target"])
        return (languages[0], languages[1]), [Split(paths[0].name.split(".")[0], sides[0], sides[1])]
    source = build.build_source(run.config())
    names = source.tests() if config.split is None else [str(config.split)]
    if not names:
        raise UserError(
            f"The data set of {run.folder} names no test split. Give split=valid, or source=FILE reference=FILE."
        )
    return source.languages, [source.read(name) for name in names]


def _evaluate(
    config: DictConfig,
    run: Run,
    translator: Translator,
    split: Split,
    languages: tuple[str, str],
    folder: Path,
) -> SplitResult:
    print(f"Translating {split.name}: {len(split.source):,} sentences ...", file=sys.stderr, flush=True)
    translations = [best[0] for best in translator.translate(split.source)]
    has_weights = all(model.decoder.attention is not None for model in translator.models)
    forced = None
    if split.links is not None and has_weights:
        forced = translator.force(list(split.source), list(split.target))
    saved = run.config()
    return evaluate_split(
        translations,
        list(split.target),
        name=split.name,
        source_language=languages[0],
        target_language=languages[1],
        folder=folder,
        gold_links=split.links,
        forced=forced,
        fixed=int(config.pictures) if has_weights else 0,
        chosen=[int(line) for line in config.lines],
        head=head_of(config),  # type: ignore[arg-type]
        shift=int(config.shift),
        provenance={
            "runs": [str(own.folder) for own in runs_of(config)],
            "checkpoint": str(config.checkpoint),
            "search": {name: value for name, value in vars(translator.search).items() if name[0] != "_"},
            "tokenizer": translator.tokenizer.fingerprint,
            "step": run.facts().get("step"),
            "versions": run.facts().get("versions"),
            "model": OmegaConf.to_container(
                OmegaConf.masked_copy(saved, ["encoder", "attention", "decoder"])
            ),
        },
    )
