"""Reading of a run folder or a record into a `Result`: scores, learning curves, error rates, text."""

import functools
import json
import math
import statistics
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from nmt.compare.results import TESTED, Alignment, ForcedReference, Result, RunOnSplit, WordFacts, check_counts, counted
from nmt.compare.variance import Statistics
from nmt.config.configuration import without_classes
from nmt.data.dataset import Split
from nmt.data.lines import read_lines
from nmt.evaluation.metrics import TITLES, MetricScore, exact_share, judge
from nmt.evaluation.references import FORCED_FILE, AttentionMap, further_references
from nmt.evaluation.word_counts import WORDS_FILE
from nmt.links import parse_links
from nmt.runs.records import TEXT, portable
from nmt.runs.run import Run, settings
from nmt.system.errors import UserError, damaged, reading
from nmt.system.facts import MAP
from nmt.system.files import read_whole, replace_atomically
from nmt.system.foreign import read_json
from nmt.system.terminal import print_message
from nmt.text.scripts import lengths

METRICS = ("bleu", "chrf", "ter")
COUNTS = "counts.npz"  # file of a record without text
WIDTHS = {"bleu": 10, "chrf": 18}  # columns of the counts
TRAINING = ("minutes", "epochs", "step", "peak_memory", "peak_gpu_memory")


def wanted_splits(run: Run, given: Split | str | None) -> list[str]:
    """The splits on which to compare a run: the given one, else the data set's test splits, else all scored splits."""
    if isinstance(given, Split):
        return [given.name]
    if given is not None:
        return [given]
    tests = [name for name in run.facts().get("text", {}) if name not in ("train", "valid")]
    if not tests and not run.splits():
        raise UserError("its data set has no test split. Give split=valid, or source=FILE reference=FILE.")
    if not run.best.exists() and run.splits():
        tests = [name for name in tests if name in run.splits()]
    return tests or run.splits()


#: Settings of the tokenizer's training text, which do not make a variant: compared runs have the same tokenizer.
_TOKENIZER_TEXT = ("tokenizer.sample_sentences", "tokenizer.sample_characters")


def read_result(name: str, run: Run, given: Split | str | None) -> Result:
    """The data of a run for a comparison.

    Raises:
        UserError: a file is missing or damaged, or files do not belong together.
    """
    config, facts, history = run.config(), run.facts(), run.history()
    wanted = wanted_splits(run, given)
    names = wanted if given is not None else [*wanted, *(split for split in run.splits() if split not in wanted)]
    aligned = _alignments(run)
    splits, origin = {}, {"training text": str(facts.get("text", {}).get("train"))}
    for split in names:
        scores, scored = read_whole(run.evaluation / split, functools.partial(_split, run, split))
        if scored is None:
            continue
        provenance = scores["provenance"]
        origin["tokenizer"] = str(provenance.get("tokenizer"))
        signatures = {f"{metric} signature": scored.scores[metric].signature for metric in METRICS}
        source = {"text": str(provenance["text"]), "search": _search(config, provenance), **signatures}
        splits[split] = scored._replace(origin=source)
        with reading(run.evaluation / split / "scores.json"):
            aligned = _with_rates(aligned, split, scores, len(scored.hypotheses))
    training: dict[str, float] = {key: float(facts[key]) for key in TRAINING if isinstance(facts.get(key), int | float)}
    speeds = [entry["train_tokens_per_second"] for entry in history if entry.get("train_tokens_per_second")]
    if speeds:
        training["train_tokens_per_second"] = statistics.median(speeds)
    machine = f"{facts['device']}, {facts['threads']} threads" if "device" in facts and "threads" in facts else ""
    result = outline(name, run)
    return result._replace(
        settings={key: value for key, value in result.settings.items() if key not in _TOKENIZER_TEXT},
        origin=origin,
        training=training,
        history=history,
        splits=splits,
        aligned=aligned,
        training_machine=machine,
        trained_on=_trained_on(facts),
        code=[str(code) for code in facts["code"]] if isinstance(facts.get("code"), list) else [],
    )


def outline(name: str, run: Run) -> Result:
    """A `Result` with only the run's name, seed and settings."""
    variant, facts = settings(run.config()), run.facts()
    seed = int(variant.pop("seed"))
    config = {key: portable(value) for key, value in variant.items() if key != "data" and not key.startswith("data.")}
    if "links" in facts:  # different links make a different variant, wherever their file is
        config["data.train_links"] = str(facts["links"])[:8]
    return Result(name, seed, config, {}, {}, [], {})


def _trained_on(facts: Mapping[str, Any]) -> list[str]:
    """Phrases on the training text and the libraries of a run, if known."""
    parts = []
    languages, pairs = facts.get("languages"), facts.get("pairs")
    if isinstance(languages, list) and isinstance(pairs, int) and "data" in facts:
        parts.append(f"on {facts['data']}, {' to '.join(map(str, languages))}, {pairs:,} sentence pairs")
    versions = facts.get("versions")
    if isinstance(versions, dict) and {"nmt", "torch"} <= versions.keys():
        parts.append(f"with nmt {versions['nmt']} and torch {versions['torch']}")
    return parts


def _alignments(run: Run) -> dict[str, Alignment]:
    """The error rates saved by `nmt.align`, by the key of the measurement (UserError for a damaged file)."""
    measurements = {}
    for path in sorted(run.alignments.glob("*.json")):
        saved = run.read_object(path.relative_to(run.folder).as_posix())
        with reading(path):
            rates, without_model = (
                {name: 100 * float(score["aer"]) for name, score in saved[key].items()}
                for key in ("rates", "without_model")
            )
            attention = None if saved["attention"] is None else str(saved["attention"])
            known = [*rates.values(), *without_model.values()]
            if attention not in (None, *rates) or not all(0 <= rate <= 100 for rate in known):
                raise damaged(path)
            gold, pairs, shift_from = str(saved["gold"]), int(saved["pairs"]), str(saved["shift_from"])
            stale = saved["checkpoint"] == "best" and saved["step"] != run.best_step()
        if stale:
            print_message(
                f"{path} is from an earlier state of the run and is ignored. To include it, run nmt.align again."
            )
        else:
            measurement = Alignment(gold, pairs, rates, attention, shift_from, without_model)
            measurements[path.stem.rpartition("-")[2]] = measurement
    return measurements


def _with_rates(
    aligned: Mapping[str, Alignment], split: str, scores: Mapping[str, Any], pairs: int
) -> dict[str, Alignment]:
    """Add the error rates that `nmt.evaluate` saved for a split, unless `nmt.align` measured them too.

    The key is the split's text for both, so runs measured by either program can be compared.
    """
    saved = scores["alignment"] or {}
    head = saved.get("head", "auto")
    gold = split if head == "auto" else f"{split}, head={head}"
    rates = {f"attention, shift {shift}": saved.get(f"shift_{shift}") for shift in (0, 1)}
    ways = {way: 100 * float(rate["aer"]) for way, rate in rates.items() if rate}
    without_model = {name: 100 * float(rate["aer"]) for name, rate in saved.get("without_model", {}).items()}
    known = {key: measured for key, measured in aligned.items() if (measured.gold, measured.pairs) == (gold, pairs)}
    by_text = next(iter(known.values()), Alignment(gold, pairs, ways, "attention, shift 0", "default", without_model))
    others = {key: measured for key, measured in aligned.items() if key not in known}
    return {**others, f"{scores['provenance']['text']} {gold}": by_text} if by_text.rates else others


def _search(config: Any, provenance: Mapping[str, Any]) -> str:
    """The checkpoint, the search ("own search" if it is the run's), and other settings that change translations."""
    used = provenance.get("search", {})
    of_run = {"name": config.choices["search"], **without_classes(dict(config.search))}
    same = all(used.get(key) == value for key, value in of_run.items())
    words = [f"{provenance.get('checkpoint')} weights", "own search" if same else json.dumps(used, sort_keys=True)]
    return ", ".join([*words, *(f"{key}={value}" for key, value in sorted(provenance.get("settings", {}).items()))])


def _split(run: Run, split: str) -> tuple[dict[str, Any], RunOnSplit | None]:
    """The contents of `scores.json` for a split, and the run's data on the split; None as data for an ensemble."""
    scores = run.scores(split)
    if len(scores["provenance"].get("runs", [1])) != 1:
        return scores, None
    return scores, _scored(run, split, scores)


def _scored(run: Run, split: str, scores: dict[str, Any]) -> RunOnSplit:
    """Read the data of a run on a split from its folder."""
    folder = run.evaluation / split
    with reading(folder / "scores.json"):
        metrics = {key: MetricScore(float(scores[key]["value"]), str(scores[key]["signature"])) for key in METRICS}
        if not all(0 <= score.value < math.inf for score in metrics.values()):
            raise damaged(folder / "scores.json")
        hypotheses = read_lines(folder / "hypotheses.txt")
        others: list[list[str]] = []
        exact = scores.get("exact_matches")
        if (folder / COUNTS).exists():
            sources = references = None
            counts, sizes, unit = _read_counts(folder / COUNTS, len(hypotheses))
            check_counts(counts, metrics)
        else:
            sources, references = (read_lines(folder / name) for name in TEXT)
            others = [read_lines(path) for path in further_references(folder)]
            complete = {len(hypotheses)} == {len(lines) for lines in (sources, references, *others)}
            text = Split(split, sources, references, others=others)
            if not complete or text.fingerprint() != scores["provenance"]["text"]:
                raise UserError(
                    f"{folder}: source.txt, reference.txt and hypotheses.txt do not belong to scores.json. Score "
                    f"the run again, or restore it from an intact copy."
                )
            counts = counted(hypotheses, references, str(scores["target_language"]), metrics, others)
            exact = exact_share(hypotheses, references, *others)
            sizes, unit, _ = lengths(sources)
        measured = dict(scores["measured"])
    maps = cast("list[AttentionMap]", run.rows(split, "attention.json", MAP) or [])
    if not measured.get("hidden_share"):  # no weight is exactly 0; earlier versions rounded small weights to 0
        for each in maps:
            each["weights"] = [[max(weight, 1) for weight in row] for row in each["weights"]]
    return RunOnSplit(sources, references, hypotheses, sizes, unit, metrics, counts, measured, maps)._replace(
        measures=run.measures(split, len(hypotheses)) or [],
        forced=_forced(folder / FORCED_FILE, len(hypotheses)),
        words=_words(folder / WORDS_FILE),
        source_language=str(scores.get("source_language", "")),
        target_language=str(scores["target_language"]),
        others=others,
        judged_by=scores["judged_by"] if scores.get("judged_by") in TITLES else judge(counts["bleu"][:, 1]),
        exact=float(exact) if isinstance(exact, int | float) else None,
        of_data=split != "valid" and split in run.facts().get("text", {}),
    )


def _forced(path: Path, sentences: int) -> list[ForcedReference]:
    """The references under forced decoding; empty without the file (UserError for a damaged file)."""
    if not path.exists():
        return []
    with reading(path):
        references = [
            ForcedReference(
                int(row["line"]),
                [float(value) for value in row["log_probs"]],
                None if row["links"] is None else sorted(parse_links(row["links"]).sure),
                [int(value) / 1000 for value in row["best"]],
                [value == "1" for value in row["right"]],
            )
            for row in read_json(path)
        ]
        if any(not 1 <= each.line <= sentences or len(each.best) != len(each.right) for each in references):
            raise damaged(path)
    return references


def _words(path: Path) -> dict[str, dict[str, WordFacts]]:
    """The facts about the words of both sides; empty without the file (UserError for a damaged file)."""
    if not path.exists():
        return {}
    with reading(path):
        return {
            side: {
                word: WordFacts(None if count is None else int(count), int(pieces))
                for word, (count, pieces) in facts.items()
            }
            for side, facts in read_json(path).items()
        }


def write_counts(path: Path, scored: RunOnSplit) -> None:
    """Write the n-gram counts and the source length of each sentence, for a record without text."""
    bleu, chrf, sizes = (np.array(rows, np.int32) for rows in (*map(scored.counts.get, TESTED), scored.lengths))
    with replace_atomically(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, bleu=bleu, chrf=chrf, lengths=sizes, unit=np.array(scored.unit))


def _read_counts(path: Path, sentences: int) -> tuple[dict[str, Statistics], list[int], str]:
    """The counts [N, S] by metric, the N source lengths and their unit (UserError for a damaged file)."""
    with (
        reading(path, also=(zipfile.BadZipFile,)),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as tables,
    ):
        counts: dict[str, Statistics] = {metric: tables[metric].astype(np.float64) for metric in TESTED}
        sizes, unit = [int(size) for size in tables["lengths"]], str(tables["unit"])
    if len(sizes) != sentences or any(rows.shape != (sentences, WIDTHS[metric]) for metric, rows in counts.items()):
        raise damaged(path)
    return counts, sizes, unit
