"""From runs, or their records, to one report: finds them, scores what has not been scored, compares, writes."""

import contextlib
import json
import math
import statistics
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, ListConfig

from nmt import compat
from nmt.command.composing import compose
from nmt.command.quoting import pasteable, python, quote
from nmt.comparison import report, variants, verdict
from nmt.comparison.blocks import Picture, as_html, as_markdown, file_name
from nmt.comparison.results import TESTED, Aligned, Metric, Result, Scored, check_counts, counted
from nmt.comparison.significance import Statistics
from nmt.configuration import without_classes
from nmt.data.corpus import Split, given_split, safe_name
from nmt.data.lines import read_lines
from nmt.errors import UserError
from nmt.evaluation.metrics import MetricScore
from nmt.evaluation.references import AttentionMap
from nmt.files import replace_atomically, write_bytes, write_text
from nmt.records import TEXT, check_record, portable, record
from nmt.runs import Run, damaged, missing_run, runs_in, settings
from nmt.text.scripts import lengths

METRICS = ("bleu", "chrf", "ter")
#: Whether records hold the text, and the sentence pairs whose weights are shown.
RECORD_TEXT = {"all": (True, True), "shown": (False, True), "none": (False, False)}
COUNTS = "counts.npz"  # in a record without text
WIDTHS = {"bleu": 10, "chrf": 18}  # columns of the counts
TRAINING = ("minutes", "epochs", "step", "peak_memory", "peak_gpu_memory")


def compare(config: DictConfig) -> int:
    """Compares the runs that `runs` names; prints the verdict and the scores, writes the report.

    Raises:
        UserError: there are no runs, none can be compared, or the report cannot be written.
    """
    _check(config)
    folders, problems = _find(config)
    output = _output(config)
    results = []
    chosen = _chosen(config)
    for name, run in folders.items():
        try:
            _check_finished(run)
            _evaluate(config, run, chosen)
            with _readable(run):
                results.append(_result(name, run, chosen))
        except UserError as error:
            problems[name] = str(error)
    for name, problem in problems.items():
        print(f"left out: {name}: {problem}", file=sys.stderr)
    if not results:
        raise UserError("None of the runs can be compared; the reasons stand above.")
    if config.records:
        for result in results:
            check_record(folders[result.name], _record(config, result).folder)
    found = variants.compare(
        results,
        baseline=None if config.baseline is None else str(config.baseline),
        alpha=float(config.alpha),
        trials=int(config.trials),
        sentences=int(config.sentences),
    )
    found = found._replace(apart=[*found.apart, *problems.items()])
    if config.records:
        text, looks = RECORD_TEXT[str(config.record_text)]
        for result in results:
            copy = _record(config, result)
            record(folders[result.name], copy.folder, text=text, attention_maps=looks)
            if not text:
                for split, scored in result.splits.items():
                    _write_counts(copy.evaluation / split / COUNTS, scored)
        print(f"Records: {config.records}", file=sys.stderr)
    title = report.title(found)
    blocks = report.report(found, int(config.pictures))
    drawn = {file_name(block.name): block.data for block in blocks if isinstance(block, Picture)}
    for name, data in drawn.items():
        write_bytes(output / "pictures" / name, data)
    write_text(output / "report.md", as_markdown(blocks, title))
    write_text(output / "report.html", as_html(blocks, title))
    write_text(
        output / "report.json",
        json.dumps(verdict.as_json(found), ensure_ascii=False, indent=2, allow_nan=False) + "\n",
    )
    for earlier in (output / "pictures").glob("*.png"):
        if earlier.name not in drawn and report.is_own(earlier.name):
            with contextlib.suppress(OSError):
                earlier.unlink()
    print(report.as_text(found))
    print(f"\nThe whole report: {output / 'report.html'} (also report.md, report.json)")
    return 0


def _record(config: DictConfig, result: Result) -> Run:
    """Where a run's record goes."""
    return Run(Path(str(config.records)) / safe_name(result.name))


def _check(config: DictConfig) -> None:
    """UserError for a setting that is out of its range."""
    if str(config.record_text) not in RECORD_TEXT:
        raise UserError(f"record_text={config.record_text} is not known. Give record_text=all, shown or none.")
    if not 0 < float(config.alpha) < 1:
        raise UserError(f"alpha={config.alpha} is no level of a test. Give one between 0 and 1, such as alpha=0.05.")
    for name, least in (("trials", 1), ("sentences", 0), ("pictures", 0), ("batch_sentences", 1)):
        if int(config[name]) < least:
            raise UserError(f"{name} must be at least {least}, not {config[name]}.")


# Which runs


def _find(config: DictConfig) -> tuple[dict[str, Run], dict[str, str]]:
    """The runs by their names, and what looks like a run and is none, with the reason.

    Raises:
        UserError: a place that was named holds no run.
    """
    places = [str(path) for path in config.runs] if isinstance(config.runs, ListConfig) else [str(config.runs)]
    folders: list[Path] = []
    unlike: dict[Path, str] = {}
    for place in map(Path, places):
        if Run(place).exists():
            folders.append(place)
            continue
        runs, logs = runs_in(place), sorted(place.glob("*.log"))
        if not runs and logs:
            raise UserError(f"{place} holds no run that has begun; {logs[0]} says why, if it is a sweep's.")
        if not runs:
            raise UserError(missing_run(place))
        folders += runs
        for path in sorted(place.iterdir()):
            if path not in runs and any((path / name).exists() for name in ("run.json", "history.jsonl", "trainer.pt")):
                unlike[path] = missing_run(path)
        for log in logs:
            if not (place / log.stem).exists():
                unlike[place / log.stem] = f"it never began; {log} says why."
    folders = list({path.resolve(): path for path in folders}.values())
    names = Counter(path.resolve().name for path in (*folders, *unlike))

    def name(path: Path) -> str:
        own = path.resolve().name
        return own if names[own] == 1 else str(path)

    return {name(path): Run(path) for path in folders}, {name(path): reason for path, reason in unlike.items()}


def _output(config: DictConfig) -> Path:
    if config.output:
        output = Path(str(config.output))
    else:
        single = not isinstance(config.runs, ListConfig) or len(config.runs) == 1
        place = Path(str(config.runs[0] if isinstance(config.runs, ListConfig) else config.runs))
        output = place / "comparison" if single and not Run(place).exists() else Path("comparison")
    if output.exists() and not output.is_dir():
        raise UserError(f"output={output} is a file. Name a folder.")
    return output


def _check_finished(run: Run) -> None:
    facts = run.facts()
    if facts.get("status") == "finished":
        if not run.history():
            raise UserError(
                f"{run.folder / 'history.jsonl'} is missing or empty. Take a copy of the run that is whole."
            )
        return
    words = [pasteable("name", run.folder.resolve().name)]
    if str(run.folder.parent) != "checkpoints":
        words.append(pasteable("checkpoints", run.folder.parent))
    how = f"it was stopped at step {facts['step']:,}" if "step" in facts else "it is not finished"
    raise UserError(f"{how}. Go on with: {python()} -m nmt.train {' '.join(words)} resume=true")


@contextlib.contextmanager
def _readable(run: Run) -> Iterator[None]:
    """UserError, naming the run, where a file cannot be read or something in it is not what it has to be."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{error.filename or run.folder} cannot be read: {error.strerror}.") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{run.folder} is damaged ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}). "
            f"Take a copy of the run that is whole."
        ) from error


# What was scored


def _chosen(config: DictConfig) -> Split | str | None:
    """What the user wants compared: a pair of files, one split, or (None) all."""
    if (config.source is None) != (config.reference is None):
        given, lacking = ("source", "reference") if config.reference is None else ("reference", "source")
        raise UserError(f"{given}= needs {lacking}= beside it: scoring takes both.")
    if config.source is None:
        return None if config.split is None else str(config.split)
    if config.split is not None:
        raise UserError("split= and source= are two things to score. Give one of them.")
    source = Path(str(config.source))
    return given_split(source, read_lines(source), read_lines(Path(str(config.reference))))


def _wanted(run: Run, chosen: Split | str | None) -> list[str]:
    """The splits that the run should have been scored on: the tests of its data set first."""
    if isinstance(chosen, Split):
        return [chosen.name]
    if chosen is not None:
        return [chosen]
    tests = [name for name in run.facts().get("text", {}) if name not in ("train", "valid")]
    if not tests and not run.splits():
        raise UserError("its data name no test set. Give split=valid, or source=FILE reference=FILE.")
    return tests or run.splits()


def _stale(run: Run, split: str) -> str:
    """Why a split has to be scored (again); "" where it has been."""
    if split not in run.splits():
        return "it was not scored yet"
    scores = run.scores(split)
    made = scores.get("provenance")
    if not isinstance(made, dict) or "text" not in made or not scores.get("measured"):
        return "it was scored by an earlier version"
    best = run.best_step()
    if made.get("checkpoint") == "best" and made.get("step") != best:
        return f"it was scored at step {made.get('step')}, and is better since step {best}"
    return ""


def _evaluate(config: DictConfig, run: Run, chosen: Split | str | None) -> None:
    """Scores what has not been scored; the results stay in the run's folder.

    Raises:
        UserError: this is a record, or the run or its data is damaged or missing, or it is not to be scored.
    """
    for split in _wanted(run, chosen):
        with _readable(run):
            why = _stale(run, split)
        if not why:
            continue
        if not config.evaluate:
            raise UserError(
                f"on {split} {why}, and evaluate=false does not score it. Leave that out, or score it with: "
                f"{python()} -m nmt.evaluate {pasteable('run', run.folder)}"
            )
        if not run.best.exists():
            raise UserError(
                f"on {split} {why}, and {run.best} is not there to do it: a record has no weights. "
                f"Compare the run itself, or write its record again."
            )
        print(f"{run.folder}, {split}: {why}.", file=sys.stderr, flush=True)
        words = [f"run={run.folder}", "pictures=0", f"device={config.device}"]
        words += [f"batch_sentences={config.batch_sentences}"]
        words += [] if config.threads is None else [f"threads={config.threads}"]
        if isinstance(chosen, Split):
            words += [f"source={config.source}", f"reference={config.reference}"]
        else:
            words.append(f"split={split}")
        from nmt.pipeline.evaluating import evaluated  # loads torch, which comparing records does without

        overrides = quote(words)
        evaluated(compose("evaluate", overrides), overrides)


# What is compared


def _result(name: str, run: Run, chosen: Split | str | None) -> Result:
    """All of a run that a comparison takes.

    Raises:
        UserError: a file is missing or damaged, or files do not belong together.
    """
    config, facts, history = run.config(), run.facts(), run.history()
    wanted = _wanted(run, chosen)
    names = wanted if chosen is not None else [*wanted, *(split for split in run.splits() if split not in wanted)]
    splits, origin = {}, {"training text": str(facts.get("text", {}).get("train"))}
    for split in names:
        scores = run.scores(split)
        made = scores.get("provenance")
        if not isinstance(made, dict) or "text" not in made or len(made.get("runs", [1])) != 1:
            continue  # of an earlier version, or of an ensemble
        origin["tokenizer"] = str(made.get("tokenizer"))
        scored = _scored(run, split, scores)
        signatures = {f"{metric} signature": scored.scores[metric].signature for metric in METRICS}
        made_of = {"text": str(made["text"]), "search": _search(config, made), **signatures}
        splits[split] = scored._replace(origin=made_of)
    own = settings(config)
    training: dict[str, float] = {key: float(facts[key]) for key in TRAINING if isinstance(facts.get(key), int | float)}
    speeds = [entry["train_tokens_per_second"] for entry in history if entry.get("train_tokens_per_second")]
    if speeds:
        training["train_tokens_per_second"] = statistics.median(speeds)
    return Result(
        name,
        int(own.pop("seed")),
        {
            **{key: portable(value) for key, value in own.items() if key != "data" and not key.startswith("data.")},
            # Other links make another variant, wherever they lie.
            **({"data.train_links": str(facts["links"])[:8]} if "links" in facts else {}),
        },
        origin,
        training,
        history,
        splits,
        _aligned(run),
        f"{facts['device']}, {facts['threads']} threads" if "device" in facts and "threads" in facts else "",
        _trained_on(facts),
    )


def _trained_on(facts: Mapping[str, Any]) -> list[str]:
    """The text that a run learnt from and the libraries that it learnt with, as far as its facts say so."""
    found = []
    languages, pairs = facts.get("languages"), facts.get("pairs")
    if isinstance(languages, list) and isinstance(pairs, int) and "data" in facts:
        found.append(f"on {facts['data']}, {' to '.join(map(str, languages))}, {pairs:,} sentence pairs")
    versions = facts.get("versions")
    if isinstance(versions, dict) and {"nmt", "torch"} <= versions.keys():
        found.append(f"with nmt {versions['nmt']} and torch {versions['torch']}")
    return found


def _aligned(run: Run) -> dict[str, Aligned]:
    """The error rates that `nmt.align` has kept, by what they were measured on (UserError for a damaged file)."""
    found = {}
    for path in sorted(run.alignments.glob("*.json")):
        kept = run.read_object(path.relative_to(run.folder).as_posix())
        if not {"attention", "shift_from"} <= kept.keys():
            print(f"{path} is of an earlier version; align again to compare it.", file=sys.stderr)
            continue
        try:
            rates = {look: 100 * float(own["aer"]) for look, own in kept["rates"].items()}
            look = None if kept["attention"] is None else str(kept["attention"])
            one = Aligned(str(kept["gold"]), int(kept["pairs"]), rates, look, str(kept["shift_from"]))
            if look not in (None, *rates) or not all(0 <= rate <= 100 for rate in rates.values()):
                raise damaged(path)
            stale = kept["checkpoint"] == "best" and kept["step"] != run.best_step()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(path) from error
        if stale:
            print(f"{path} is of an earlier state of the run; align again to compare it.", file=sys.stderr)
        else:
            found[path.stem.rpartition("-")[2]] = one
    return found


def _search(config: DictConfig, made: dict[str, Any]) -> str:
    """How it was translated: a run's own search may be what sets it off, another one makes it another measurement."""
    used = {**made.get("search", {}), "name": compat.search_choice(made.get("search", {}).get("name"))}
    own = {"name": config.choices["search"], **without_classes(dict(config.search))}
    as_own = all(used.get(key) == value for key, value in own.items())
    return f"{made.get('checkpoint')} weights, {'own search' if as_own else json.dumps(used, sort_keys=True)}"


def _scored(run: Run, split: str, scores: dict[str, Any]) -> Scored:
    """One split of a run, read from its folder."""
    folder = run.evaluation / split
    try:
        found = {key: MetricScore(float(scores[key]["value"]), str(scores[key]["signature"])) for key in METRICS}
        if not all(0 <= score.value < math.inf for score in found.values()):
            raise damaged(folder / "scores.json")
        hypotheses = read_lines(folder / "hypotheses.txt")
        if (folder / COUNTS).exists():
            sources = references = None
            counts, sizes, unit = _read_counts(folder / COUNTS, len(hypotheses))
            check_counts(counts, found)
        else:
            sources, references = (read_lines(folder / name) for name in TEXT)
            whole = len(sources) == len(references) == len(hypotheses)
            if not whole or Split(split, sources, references).fingerprint() != scores["provenance"]["text"]:
                raise UserError(
                    f"{folder} holds another text than the one that was scored (its source.txt, reference.txt and "
                    f"hypotheses.txt do not belong to its scores.json). Score the run again, or take a whole copy."
                )
            counts = counted(hypotheses, references, str(scores["target_language"]), found)
            sizes, unit, _ = lengths(sources)
        return Scored(
            sources,
            references,
            hypotheses,
            sizes,
            unit,
            found,
            counts,
            {shift: float(scores["alignment"][f"shift_{shift}"]["aer"]) for shift in (0, 1) if scores["alignment"]},
            dict(scores["measured"]),
            _attention_maps(folder / "attention.json"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder / "scores.json") from error


def _attention_maps(path: Path) -> list[AttentionMap]:
    """The weights that were kept of a split (UserError for a damaged file)."""
    if not path.exists():
        return []
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        for own in kept:
            rows, columns = len(own["target"]), len(own["source"])
            if not isinstance(own["line"], int) or np.array(own["weights"], float).shape != (rows, columns):
                raise damaged(path)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path) from error
    maps: list[AttentionMap] = kept
    return maps


def _write_counts(path: Path, scored: Scored) -> None:
    """What stands for the text in a record: n-gram counts of each sentence, and its source length."""
    bleu, chrf, lengths = (np.array(own, np.int32) for own in (*map(scored.counts.get, TESTED), scored.lengths))
    with replace_atomically(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, bleu=bleu, chrf=chrf, lengths=lengths, unit=np.array(scored.unit))


def _read_counts(path: Path, sentences: int) -> tuple[dict[Metric, Statistics], list[int], str]:
    """The counts of so many sentences, their lengths and the unit of those (UserError for a damaged file)."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as tables:
            counts: dict[Metric, Statistics] = {metric: tables[metric].astype(np.float64) for metric in TESTED}
            sizes, unit = [int(size) for size in tables["lengths"]], str(tables["unit"])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise damaged(path) from error
    if len(sizes) != sentences or any(own.shape != (sentences, WIDTHS[metric]) for metric, own in counts.items()):
        raise damaged(path)
    return counts, sizes, unit
