"""From a run to its scores: translates test splits, scores them, and draws what the model looked at."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig, OmegaConf

from nmt.choices import choice_of
from nmt.configuration import without_classes
from nmt.data.corpus import Split, given_split
from nmt.data.languages import UNNAMED
from nmt.data.lines import read_parallel_lines
from nmt.errors import UserError
from nmt.evaluation.forced import entropy, hidden_share, perplexity, shown
from nmt.evaluation.split import SplitResult, evaluate_split, summary
from nmt.pipeline.linking import languages
from nmt.pipeline.opening import has_weights, open_translator, own_data, own_split, runs_of, where_to_look
from nmt.runs import Run
from nmt.text.scripts import language_by_script
from nmt.translation.translator import Translator
from nmt.translation.types import Translation

LOOKS = 6  # references whose weights are kept for comparing


def evaluate(config: DictConfig, overrides: Sequence[str]) -> int:
    """Scores every test split of the run's data set, one of them, or a pair of files; prints a table."""
    results = evaluated(config, overrides)
    print(summary(results))
    print(f"\nTranslations, scores and pictures: {results[0].folder.parent}")
    return 0


def evaluated(config: DictConfig, overrides: Sequence[str]) -> list[SplitResult]:
    """Scores what `evaluate` is asked to score, into a folder a split.

    Raises:
        UserError: a run or its data is missing, damaged or changed, or a setting does not fit.
    """
    runs = runs_of(config)
    root = _root(config, runs)
    known, splits = _splits(config, runs[0])
    lines = _lines(config, splits)
    translator = open_translator(config, overrides)
    head, shift = where_to_look(config, translator)
    provenance = _provenance(config, runs, translator)
    if lines and not has_weights(translator):
        raise UserError(
            "lines= asks for attention pictures, and a run with decoder=none has no weights to draw. "
            "Leave it out, or take a run with attention."
        )
    return [
        _evaluate(
            translator,
            split,
            _languages(config, known, split),
            root / split.name,
            pictures=int(config.pictures),
            lines=lines,
            head=head,
            shift=shift,
            provenance=provenance,
        )
        for split in splits
    ]


def _root(config: DictConfig, runs: Sequence[Run]) -> Path:
    """The folder for what is written, a folder a split; an ensemble's is not that of its first member."""
    if config.output:
        root = Path(str(config.output))
        if root.exists() and not root.is_dir():
            raise UserError(f"output={root} is a file. Name a folder.")
        return root
    if len(runs) == 1:
        return runs[0].evaluation
    others = "+".join(run.folder.resolve().name for run in runs[1:])
    return runs[0].folder / f"evaluation-with-{others}"[:200]


def _splits(config: DictConfig, run: Run) -> tuple[tuple[str, str], list[Split]]:
    """The languages, and what is to be scored."""
    if (config.source is None) != (config.reference is None):
        given, lacking = ("source", "reference") if config.reference is None else ("reference", "source")
        raise UserError(f"{given}= needs {lacking}= beside it: scoring takes both.")
    if config.source is not None:
        if config.split is not None:
            raise UserError("split= and source= are two things to score. Give one of them.")
        paths = [Path(str(config.source)), Path(str(config.reference))]
        sides = read_parallel_lines(*paths)
        if not sides[0]:
            raise UserError(f"{paths[0]} is empty. Give sentences to translate.")
        codes = run.facts().get("languages", UNNAMED)
        return (codes[0], codes[1]), [given_split(paths[0], *sides)]
    source = own_data(run)
    names = source.tests() if config.split is None else [str(config.split)]
    if not names:
        raise UserError(
            f"The data set of {run.folder} names no test split. Give split=valid, or source=FILE reference=FILE."
        )
    return source.languages, [own_split(run, source, name) for name in names]


def _languages(config: DictConfig, known: tuple[str, str], split: Split) -> tuple[str, str]:
    """The languages of a split: those that `languages=` names, or those of the run, the target's held to its script."""
    if config.languages is not None:
        return languages(config, known)
    return known[0], language_by_script(split.target, known[1])


def _lines(config: DictConfig, splits: Sequence[Split]) -> list[int]:
    """The line numbers, from 1, of the pictures that were asked for."""
    lines = []
    for line in config.lines:
        if not isinstance(line, int) or isinstance(line, bool):
            raise UserError(f"lines={line}: give line numbers from 1 on, such as lines=[3,17].")
        for split in splits:
            if not 1 <= line <= len(split.source):
                raise UserError(f"lines={line}: {split.name} has the lines 1 to {len(split.source):,}.")
        lines.append(line)
    return lines


def _evaluate(
    translator: Translator,
    split: Split,
    languages: tuple[str, str],
    folder: Path,
    *,
    pictures: int,
    lines: Sequence[int],
    head: int | Literal["mean"],
    shift: int,
    provenance: dict[str, Any],
) -> SplitResult:
    print(f"Translating {split.name}: {len(split.source):,} sentences ...", file=sys.stderr, flush=True)
    started = time.monotonic()
    translations = [best[0] for best in translator.translate(split.source)]
    seconds = time.monotonic() - started
    attentive = has_weights(translator)
    rows = _rows_to_force(translator, split)
    references = translator.force([split.source[row] for row in rows], [split.target[row] for row in rows])
    forced = None
    if split.links is not None and attentive:
        whole = len(rows) == len(split.source)
        forced = references if whole else translator.force(list(split.source), list(split.target))
    return evaluate_split(
        translations,
        list(split.target),
        name=split.name,
        source_language=languages[0],
        target_language=languages[1],
        folder=folder,
        gold_links=split.links,
        forced=forced,
        fixed=max(0, pictures) if attentive else 0,
        chosen=lines,
        head=head,
        shift=shift,
        provenance={**provenance, "text": split.fingerprint()},
        measured=_measured(translator, translations, seconds, references),
        looks=shown(references, [row + 1 for row in rows], LOOKS, head),
    )


def _rows_to_force(translator: Translator, split: Split) -> list[int]:
    """The pairs that have text on both sides and are not too long to be decoded whole."""
    most = translator.max_source_length
    sides = [
        vocabulary.encode(lines)
        for vocabulary, lines in (
            (translator.tokenizer.source, split.source),
            (translator.tokenizer.target, split.target),
        )
    ]
    return [row for row, (source, target) in enumerate(zip(*sides, strict=True)) if source and target
            and max(len(source), len(target)) <= most]  # fmt: skip


def _measured(
    translator: Translator, translations: Sequence[Translation], seconds: float, references: Sequence[Translation]
) -> dict[str, Any]:
    """What a comparison wants to know besides scores. Perplexity and entropy are those of a single model."""
    pieces = sum(len(translation.pieces) for translation in translations)
    single = len(translator.models) == 1 and bool(references)
    return {
        "perplexity": perplexity(references) if single else None,
        "attention_entropy": entropy(references) if single else None,
        "hidden_share": hidden_share(references) if single else None,
        "forced_sentences": len(references),
        "parameters": sum(weight.numel() for model in translator.models for weight in model.parameters()),
        "seconds": seconds,
        "sentences_per_second": len(translations) / seconds,
        "target_pieces_per_second": pieces / seconds,
        "device": str(translator.compute.device),
        "threads": translator.compute.threads,
    }


def _provenance(config: DictConfig, runs: Sequence[Run], translator: Translator) -> dict[str, Any]:
    """What made the translations."""
    run = runs[0]
    facts = run.facts()
    parts = OmegaConf.masked_copy(run.config(), ["choices", "encoder", "attention", "decoder"])
    return {
        "runs": [str(own.folder) for own in runs],
        "checkpoint": str(config.checkpoint),
        "step": run.best_step() if config.checkpoint == "best" else facts.get("step"),
        "search": {
            "name": choice_of("search", type(translator.search)),
            **{name: value for name, value in vars(translator.search).items() if name[0] != "_"},
        },
        "tokenizer": translator.tokenizer.fingerprint,
        "versions": facts.get("versions"),
        "model": without_classes(OmegaConf.to_container(parts)),
    }
