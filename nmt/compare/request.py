"""The command `nmt.compare`: find runs or records, score runs without scores, compare them, write the report."""

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from nmt.build.paths import check_paths, is_writable, unprotect
from nmt.build.requests import GivenText, read
from nmt.compare import report, summary, table_files, variants, verdict
from nmt.compare.metric_commands import with_metrics
from nmt.compare.reader import COUNTS, outline, read_result, wanted_splits, write_counts
from nmt.compare.results import Result
from nmt.compare.slices import Slicing
from nmt.compare.systems import check_named, files_of, read_systems
from nmt.config.composition import compose
from nmt.config.quotes import pasteable, python, quote
from nmt.data.dataset import Split, safe_name
from nmt.data.lines import read_lines
from nmt.data.streams import keeping_pipes
from nmt.evaluation.metrics import tokenised_note
from nmt.runs.records import check_record, record
from nmt.runs.run import Run, missing_run, runs_in
from nmt.system.errors import UserError, reading
from nmt.system.files import write_bytes, write_json, write_text
from nmt.system.limits import Limit, NotNegative, Positive
from nmt.system.terminal import print_message, printable
from nmt.viewer.blocks import Block, as_html, as_markdown, file_name
from nmt.viewer.blocks import pictures as pictures_of

#: `record_text` -> whether records include (the text, the sentence pairs with attention maps).
RECORD_TEXT = {"all": (True, True), "shown": (False, True), "none": (False, False)}
Level = Annotated[float, Limit(lambda value: 0 < value < 1, "greater than 0 and less than 1, such as 0.05")]


@dataclass(frozen=True)
class Comparing:
    """The settings of `nmt.compare`, which `configs/compare.yaml` explains."""

    runs: str | Sequence[str] | None
    systems: Any
    metrics: Any
    baseline: str | None
    labels: Literal["settings", "names"]
    output: Path | None
    records: Path | None
    record_text: Literal["all", "shown", "none"]
    text: GivenText
    alpha: Level
    trials: Positive
    sentences: NotNegative
    pictures: NotNegative
    speeds: bool
    slice_regex: str | None
    slice_labels: Path | None
    evaluate: bool
    incomplete: bool
    batch_sentences: Positive
    device: str
    threads: Positive | None

    def __post_init__(self) -> None:
        if self.runs is None and not (self.systems and self.text.source is not None):
            raise UserError(
                "Give runs=FOLDER. For translations of other programs alone, give systems={NAME: FILE} source=FILE "
                "reference=FILE."
            )

        for setting, values in (("systems", self.systems), ("metrics", self.metrics)):
            if values is not None:
                check_named(setting, values)

    @property
    def places(self) -> list[Path]:
        """The folders in `runs`."""
        return [Path(place) for place in ([self.runs] if isinstance(self.runs, str) else self.runs or ())]

    @property
    def folder(self) -> Path:
        """The folder of the report."""
        inside = len(self.places) == 1 and not Run(self.places[0]).exists()
        return self.output or (self.places[0] / "comparison" if inside else Path("comparison"))

    def slicing(self) -> Slicing:
        """The user's slices.

        Raises:
            UserError: the regular expression is invalid, or the file of labels cannot be read.
        """
        try:
            re.compile(self.slice_regex or "")
        except re.error as error:
            raise UserError(f"slice_regex={self.slice_regex}: not a valid regular expression: {error}.") from error
        labels = None if self.slice_labels is None else read_lines(self.slice_labels)
        return Slicing(self.slice_regex, labels)

    def record_of(self, result: Result) -> Run:
        """The folder for the record of a run."""
        assert self.records is not None
        return Run(self.records / safe_name(result.name))


@keeping_pipes()  # a pipe can be read once, but each run is scored on it
def compare(request: Comparing) -> int:
    """Compare the runs; print the verdict and the scores, write the report.

    Raises:
        UserError: there are no runs, none can be compared, or the report cannot be written.
    """
    runs, problems = _find(request.places)
    folder = request.folder
    inputs = {**request.text.files, "slice_labels": request.slice_labels, **files_of(request.systems or {})}
    check_paths(inputs, {"output": folder, "records": request.records}, folders=["output", "records"])
    slicing = request.slicing()
    given = request.text.read() or request.text.split
    if request.baseline is not None and request.evaluate:
        _check_baseline(request.baseline, runs, given)
    results = []
    for name, run in runs.items():
        try:
            _check_finished(run)
            _evaluate(request, run, given)
            with reading(run.folder, "its files do not belong together"):
                results.append(read_result(name, run, given))
        except UserError as error:
            problems[name] = str(error)
    for name, problem in problems.items():
        print_message(f"left out: {name}: {problem}")
    if request.systems:
        results += read_systems(request.systems, results, given)
    if request.metrics:
        results = with_metrics(request.metrics, results)
    if not results:
        raise UserError("No run can be compared. See the reasons above.")
    if request.records is not None:
        for result in results:
            if result.name in runs:
                check_record(runs[result.name], request.record_of(result).folder)
    comparison = variants.compare(
        results,
        baseline=request.baseline,
        named=request.labels == "names",
        alpha=float(request.alpha),
        trials=request.trials,
        sentences=request.sentences,
    )
    notes = [*comparison.notes, *_reference_notes(comparison)]
    comparison = comparison._replace(apart=[*comparison.apart, *problems.items()], notes=notes)
    _check_labels(request, slicing, comparison)
    if request.records is not None:
        for result in results:
            if result.name in runs:
                _write_record(request, runs[result.name], result)
        print_message(f"Records: {request.records}")
    blocks = report.report(comparison, request.pictures, slicing, speeds=request.speeds)
    _write_report(comparison, folder, summary.summary(comparison, speeds=request.speeds), blocks)
    print(printable(report.as_text(comparison)))
    also = "also pictures/, tables/, curves.csv, report.json; in short: summary.md"
    print(printable(f"\nThe whole report: {folder / 'report.html'} ({also})"))
    if problems and not request.incomplete:
        print_message(
            f"{verdict.count_of(len(problems), 'run')} left out, for the reasons above: {', '.join(problems)}. "
            "The exit status is 1; incomplete=true accepts this."
        )
        return 1
    return 0


def _write_record(request: Comparing, run: Run, result: Result) -> None:
    text, attention_maps = RECORD_TEXT[request.record_text]
    copy = request.record_of(result)
    record(run, copy.folder, None if text else tuple(result.splits), text=text, attention_maps=attention_maps)
    if not text:
        for split, scored in result.splits.items():
            write_counts(copy.evaluation / split / COUNTS, scored)


def _reference_notes(comparison: variants.Comparison) -> list[str]:
    """Notes on the references of each split."""
    notes: list[str] = []
    for split in comparison.splits:
        first = comparison.variants[0].runs[0].splits[split.name]
        if first.others:
            notes.append(
                f"{split.name}: scores take {1 + len(first.others)} references of each line. Sections on single words, "
                f"likelihood and attention maps take the first."
            )
        notes += [note for note in [tokenised_note(f"The reference of {split.name}", first.references or [])] if note]
    return notes


def _check_labels(request: Comparing, slicing: Slicing, comparison: variants.Comparison) -> None:
    """Raise UserError if the number of labels is not the number of lines of the analysed split."""
    split = comparison.splits[0].name
    lines = len(comparison.variants[0].runs[0].splits[split].hypotheses)
    if slicing.labels is not None and len(slicing.labels) != lines:
        raise UserError(
            f"slice_labels={request.slice_labels}: {len(slicing.labels):,} lines, but {split} has {lines:,}. Give one "
            f"label for each line of {split}; an empty line is no label."
        )


def _write_report(
    comparison: variants.Comparison, folder: Path, short: Sequence[Block], blocks: Sequence[Block]
) -> None:
    """Write the summary and the report in all formats; remove pictures and tables left from an earlier report."""
    title = report.title(comparison)
    drawn: dict[str, bytes] = {}
    for picture in pictures_of([*short, *blocks]):
        file = Path(file_name(picture.name))
        drawn |= {str(file): picture.data, str(file.with_suffix(".pdf")): picture.pdf}
    for name, data in drawn.items():
        write_bytes(folder / "pictures" / name, data)
    write_text(folder / "summary.md", as_markdown(short, title))
    write_text(folder / "report.md", as_markdown(blocks, title))
    write_text(folder / "report.html", as_html(blocks, title))
    write_json(folder / "report.json", verdict.as_json(comparison))
    write_text(folder / "curves.csv", table_files.as_csv(table_files.learning_curves(comparison)))
    segments, path = table_files.of_segments(comparison), folder / "segments.csv"
    if segments.rows:
        write_text(path, table_files.as_csv(segments))
    else:
        path.unlink(missing_ok=True)
    named = table_files.named([*blocks, *short])
    for name, table in named.items():
        for end, form in table_files.FORMS.items():
            write_text(folder / "tables" / f"{name}{end}", form(table))
    pictures = (folder / "pictures").glob("*")
    earlier = [path for path in pictures if path.name not in drawn and report.PICTURES.fullmatch(path.name)]
    for name in {path.stem for path in (folder / "tables").glob("*.tex")} - named.keys():
        paths = [folder / "tables" / f"{name}{end}" for end in table_files.FORMS]
        earlier += paths if all(path.exists() for path in paths) else []
    for path in earlier:
        with contextlib.suppress(OSError):
            path.unlink()


def _find(places: Sequence[Path]) -> tuple[dict[str, Run], dict[str, str]]:
    """Find the runs by name, and the folders that look like runs but are not, with the reason.

    Raises:
        UserError: a folder contains no run.
    """
    folders: list[Path] = []
    unlike: dict[Path, str] = {}
    for place in places:
        if Run(place).exists():
            folders.append(place)
            continue
        runs, logs = runs_in(place), sorted(place.glob("*.log"))
        if not runs and logs:
            raise UserError(f"{place} contains no run that has started. If it is a sweep, see {logs[0]}.")
        if not runs:
            raise UserError(missing_run(place))
        folders += runs
        for path in sorted(place.iterdir()):
            if path not in runs and any((path / name).exists() for name in ("run.json", "history.jsonl", "trainer.pt")):
                unlike[path] = missing_run(path)
        for log in logs:
            if not (place / log.stem).exists():
                unlike[place / log.stem] = f"it never started: see {log}"
    folders = list({path.resolve(): path for path in folders}.values())
    names = Counter(path.resolve().name for path in (*folders, *unlike))

    def name(path: Path) -> str:
        last = path.resolve().name
        return last if names[last] == 1 else str(path)

    return {name(path): Run(path) for path in folders}, {name(path): reason for path, reason in unlike.items()}


def _check_finished(run: Run) -> None:
    facts = run.facts()
    if facts.get("status") == "finished":
        if not run.history():
            raise UserError(f"{run.folder / 'history.jsonl'} is missing or empty. Restore the run from an intact copy.")
        return
    words = [pasteable("name", run.folder.resolve().name)]
    if str(run.folder.parent) != "checkpoints":
        words.append(pasteable("checkpoints", run.folder.parent))
    how = f"it was stopped at step {facts['step']:,}" if "step" in facts else "it is not finished"
    raise UserError(f"{how}. Resume with: {python()} -m nmt.train {' '.join(words)} resume=true")


def _check_baseline(baseline: str, runs: Mapping[str, Run], given: Split | str | None) -> None:
    """Raise UserError early, before runs are scored, if the baseline is the name of no run or variant."""
    outlines, ahead = [], False
    for name, run in runs.items():
        with contextlib.suppress(UserError), reading(run.folder):
            _check_finished(run)
            outlines.append(outline(name, run))
            ahead |= any(_stale(run, split) for split in wanted_splits(run, given))
    if outlines and ahead:
        variants.check_baseline(baseline, outlines)


def _stale(run: Run, split: str) -> str:
    """The reason why a split must be scored or scored again; "" if its scores are up to date."""
    if split not in run.splits():
        return "it has no scores"
    scores = run.scores(split)
    provenance, best = scores["provenance"], run.best_step()
    if provenance.get("checkpoint") == "best" and provenance.get("step") != best:
        return f"its scores are from step {provenance.get('step')}, but the best step is {best}"
    return ""


def _evaluate(request: Comparing, run: Run, given: Split | str | None) -> None:
    """Score splits without current scores and save the results in the run's folder.

    Raises:
        UserError: scores are missing in a record, the run or its data is damaged or missing, or scoring is off.
    """
    for split in wanted_splits(run, given):
        with reading(run.folder, f"its scores on {split} cannot be used"):
            why = _stale(run, split)
        if not why:
            continue
        if not request.evaluate:
            raise UserError(
                f"on {split} {why}, and evaluate=false does not compute them. Leave it out, or run: "
                f"{python()} -m nmt.evaluate {pasteable('run', run.folder)}"
            )
        if not run.best.exists():
            raise UserError(
                f"on {split} {why}, and {run.best} is missing: a record has no weights. Compare the run itself, or "
                f"write the record again: python -m nmt.compare runs=RUNS records=DIR"
            )
        if not is_writable(run.evaluation):
            raise UserError(f"on {split} {why}, and {run.folder} is write-protected: {unprotect(run.folder)}")
        print_message(f"{run.folder}, {split}: {why}.")
        settings: Mapping[str, object] = {
            "run": run.folder,
            "pictures": 0,
            "device": request.device,
            "batch_sentences": request.batch_sentences,
            "threads": request.threads,
            "source": request.text.source,
            "reference": f"[{','.join(map(str, request.text.references))}]" if request.text.source else None,
            "data": request.text.data,
            "split": None if isinstance(given, Split) else split,
        }
        from nmt.evaluate.request import Evaluating
        from nmt.evaluate.work import evaluated  # loads torch, which records do not need

        overrides = quote([f"{key}={value}" for key, value in settings.items() if value is not None])
        evaluated(read(Evaluating, compose("evaluate", overrides), overrides))
