"""From a run to its scores: translate test splits, score them, and draw heatmaps."""

import contextlib
import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from nmt.data.dataset import DataSource, Split
from nmt.data.document_lines import Followed, contexts_of, numbered
from nmt.data.languages import UNNAMED
from nmt.data.stored import Spilled
from nmt.errors import UserError
from nmt.evaluation import forced, words
from nmt.evaluation.metrics import tokenised_note
from nmt.evaluation.references import attention_maps, entropy, entropy_by_head, hidden_share, perplexity
from nmt.evaluation.split import FILES as FILES_OF_SPLIT
from nmt.evaluation.split import Gold, HeatmapSettings, SplitResult, evaluate_split, summary
from nmt.files import replacing_folder
from nmt.foreign import inside
from nmt.heads import AUTO, MEAN, names_all
from nmt.locks import EVALUATION, locked
from nmt.pipeline.aligner import Aligner
from nmt.pipeline.analysing import Analysed, write_analyses
from nmt.pipeline.choosing import choose, own_validation
from nmt.pipeline.linking import named_languages
from nmt.pipeline.opening import TranslatorRequest, default_head, has_weights, head_of, own_data, own_split
from nmt.pipeline.paths import check_paths, check_replaceable, unprotect
from nmt.pipeline.reporting import REPORT, Looked, write_report
from nmt.pipeline.requests import GivenText
from nmt.pipeline.sharing import share, shared
from nmt.pipeline.translating import note_one_document
from nmt.pipeline.viewing import pictured_head, view_of
from nmt.processes import ALONE, Processes
from nmt.runs import Run
from nmt.terminal import print_message, printable
from nmt.text.canonical import shows_nothing
from nmt.text.scripts import language_by_script
from nmt.translation.lengths import Excesses
from nmt.translation.stepping import heads_of
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, View
from nmt.versions import code_revision

FILES = "source=FILE reference=FILE"  # in place of the run's own data
TER_CHARACTERS = 10_000  # the longest reference without a warning
ATTENTION_MAPS = 6  # references whose weights are saved for nmt.compare
WINDOW = 2000  # sentences that are forced at a time
IN_MEMORY = 2000  # translations with their weights, some tens of MB; the others are in a temporary file
OWN_FILES = (*FILES_OF_SPLIT, forced.FILE, words.FILE, REPORT)  # of the folder of a split
MODEL = ("choices", "encoder", "attention", "decoder")  # parts of the configuration that scores record


@dataclass(frozen=True)
class Evaluating:
    """What `nmt.evaluate` is asked to do; `configs/evaluate.yaml` explains the settings."""

    translator: TranslatorRequest
    text: GivenText
    languages: Any
    output: Path | None
    pictures: int
    lines: Sequence[Any]
    view: View
    head: str
    shift: Literal[0, 1]
    documents: Followed = "blank"

    def __post_init__(self) -> None:
        for line in self.lines:
            if not isinstance(line, int) or isinstance(line, bool):
                raise UserError(f"lines={line}: lines are numbered from 1, for example lines=[3,17].")

    @property
    def folder(self) -> Path:
        """The folder of the results, with one folder per split; ensembles have a separate folder."""
        runs = self.translator.runs
        if self.output is not None:
            return self.output
        if len(runs) == 1:
            return runs[0].evaluation
        others = "+".join(run.folder.resolve().name for run in runs[1:])
        return runs[0].folder / f"evaluation-with-{others}"[:200]


class Heads(NamedTuple):
    """The heads of links, and those that heatmaps show."""

    linked: str
    pictured: str


def evaluate(request: Evaluating) -> int:
    """Score every test split of the run's data set, one of them, or a pair of files; print a table.

    Under torchrun all processes translate, and the leader does the rest.
    """
    return shared(request.translator, True, functools.partial(_print_scores, request))


def _print_scores(request: Evaluating, processes: Processes) -> int:
    check_paths(request.text.files, {"output": request.folder}, folders=["output"])
    results = evaluated(request, processes)
    print(printable(summary(results)))
    print(printable(f"\nTranslations, scores and heatmaps: {results[0].folder.parent}"))
    if request.pictures > 0 or request.lines:
        print(printable(f"To open in a browser: {results[0].folder / REPORT}"))
    return 0


def evaluated(request: Evaluating, processes: Processes = ALONE) -> list[SplitResult]:
    """Score the splits of a request, with one folder per split; `processes` follow this one.

    Raises:
        UserError: a run or its data is missing, damaged or changed, or a setting does not fit.
    """
    codes, splits, data = _splits(request.text, request.translator.runs[0])
    _check_lines(request.lines, splits)
    with contextlib.ExitStack() as locks:
        for split in splits:
            check_replaceable(request.folder / split.name, _elsewhere(request))
            locks.enter_context(locked(inside(request.folder, split.name), EVALUATION))
        return _evaluated(request, processes, codes, splits, data)


def _evaluated(
    request: Evaluating,
    processes: Processes,
    codes: tuple[str, str],
    splits: Sequence[Split],
    data: DataSource | None,
) -> list[SplitResult]:
    """The results of some splits, whose locks this process has."""
    translator = request.translator.open()
    share(translator, processes)
    pictured = pictured_head(request.view, request.head, translator)
    of_pictures = request.view != "cross" or names_all(request.head)
    head = AUTO if of_pictures else head_of(request.head, translator)
    if head == AUTO and has_weights(translator):
        head = _best_head(request, translator)
    if request.lines and not has_weights(translator):
        raise UserError(
            "lines= needs attention, but this run has none (decoder=none). Leave it out, or use a run with attention."
        )
    provenance = _provenance(request.translator, translator)
    training = None if data is None else _training_text(request.translator.runs[0], data)
    results = []
    for split in splits:
        if request.text.source is not None and translator.context_sentences:
            split = split._replace(documents=numbered(split.source, request.documents))
            if request.documents == "blank" and not any(map(shows_nothing, split.source)):
                note_one_document(len(split.source))
        named = None if request.languages is None else named_languages(request.languages, codes)
        languages = named or (codes[0], language_by_script(split.target, codes[1]))
        heads = Heads(head, head if pictured == AUTO else pictured)
        results.append(_evaluate(request, translator, split, languages, heads, provenance, training))
    return results


def _elsewhere(request: Evaluating) -> str:
    """The cure for results that cannot be written."""
    if request.output is not None:
        return "Choose another folder: output=FOLDER."
    return f"Write the results elsewhere with output=FOLDER, or {unprotect(request.translator.runs[0].folder)}"


def _best_head(request: Evaluating, translator: Translator) -> str:
    """The head with the best links on the validation links of the run's data, if there are any."""
    runs = request.translator.runs
    if len(heads_of(translator.models)) < 2:
        return MEAN
    if len(runs) > 1:
        return default_head(runs, translator)
    aligner = Aligner(runs[0], translator, head=AUTO, max_length=request.translator.max_source_length)
    return choose(aligner, str(request.shift), own_validation(runs[0], request.text.data)).evidence.head


def _splits(text: GivenText, run: Run) -> tuple[tuple[str, str], list[Split], DataSource | None]:
    """The languages, the splits to score, and the run's own data set if they are from it."""
    given = text.read()
    if given is not None:
        codes = run.facts().get("languages", UNNAMED)
        return (codes[0], codes[1]), [given], None
    source = own_data(run, text.data, FILES)
    names = source.tests() if text.split is None else [text.split]
    if not names:
        raise UserError(
            f"The data set of {run.folder} has no test split. Give split=valid, or source=FILE reference=FILE."
        )
    return source.languages, [own_split(run, source, name) for name in names], source


def _training_text(run: Run, data: DataSource) -> Split | None:
    """The training text of a run, whose words are counted for `nmt.compare`; None with a warning if it is lost."""
    try:
        return own_split(run, data, "train")
    except UserError as error:
        print_message(f"warning: words are not counted in the training text: {error}")
        return None


def _check_lines(lines: Sequence[int], splits: Sequence[Split]) -> None:
    for line in lines:
        for split in splits:
            if not 1 <= line <= len(split.source):
                raise UserError(f"lines={line}: {split.name} has lines 1 to {len(split.source):,}.")


def _evaluate(
    request: Evaluating,
    translator: Translator,
    split: Split,
    languages: tuple[str, str],
    heads: Heads,
    provenance: Mapping[str, Any],
    training: Split | None,
) -> SplitResult:
    print_message(f"Translating {split.name}: {len(split.source):,} sentences ...")
    _warn_of_long_references(split)
    started = time.monotonic()
    contexts = contexts_of(split.source, split.documents, translator.context_sentences)
    translator.too_long = excesses = Excesses()
    translations = Spilled((best[0] for best in translator.translate(split.source, contexts=contexts)), IN_MEMORY)
    for message in excesses.messages(split.name, "line"):
        print_message(message)
    seconds = time.monotonic() - started
    rows = _rows_to_force(translator, split)
    references = _forced(translator, split, contexts, rows)
    gold = None
    if split.links is not None and has_weights(translator):
        whole = len(rows) == len(split.source)
        gold = Gold(
            split.links, references if whole else _forced(translator, split, contexts, range(len(split.source)))
        )
    display = HeatmapSettings(
        max(0, request.pictures),
        request.lines,
        heads.linked,
        request.shift,
        AUTO if heads.linked != request.head else request.head,
        heads.pictured,
        None if request.view == "cross" else functools.partial(view_of, translator, request.view),
    )
    files = [str(path) for path in request.text.references] or [f"the reference of {split.name}"]
    tokenised = map(tokenised_note, files, (split.target, *split.others))
    with replacing_folder(folder := inside(request.folder, split.name), OWN_FILES) as new:
        result = evaluate_split(
            translations,
            list(split.target),
            others=split.others,
            notes=[note for note in tokenised if note],
            name=split.name,
            languages=languages,
            folder=new,
            gold=gold,
            display=display,
            provenance={**provenance, "text": split.fingerprint()},
            measured=_measured(translator, translations, seconds, references),
            attention_maps=attention_maps(references, [row + 1 for row in rows], ATTENTION_MAPS, heads.linked),
        )
        if len(translator.models) == 1:
            analysed = Analysed(split, translations, references, rows, heads.linked, request.shift, training)
            write_analyses(new, translator, analysed)
        if display.first or display.lines:
            title = f"{request.translator.runs[0].folder.resolve().name} on {split.name}"
            looked = Looked(result, translations, [split.target, *split.others], display)
            write_report(translator, looked, title)
    return result.in_folder(folder)


def _warn_of_long_references(split: Split) -> None:
    for line, reference in enumerate(split.target, start=1):
        if len(reference) > TER_CHARACTERS:
            print_message(
                f"warning: line {line} of {split.name} has {len(reference):,} characters. TER takes hours for very "
                "long lines: split them into sentences.",
            )


def _rows_to_force(translator: Translator, split: Split) -> list[int]:
    """The pairs with text on both sides that are not too long for forced decoding."""
    most, vocabularies = translator.max_source_length, (translator.tokenizer.source, translator.tokenizer.target)
    rows = []
    for first in range(0, len(split.source), WINDOW):
        texts = (split.source[first : first + WINDOW], split.target[first : first + WINDOW])
        sides = (vocabulary.encode(lines) for vocabulary, lines in zip(vocabularies, texts, strict=True))
        lengths = [(len(source), len(target)) for source, target in zip(*sides, strict=True)]
        rows += [row for row, pair in enumerate(lengths, first) if min(pair) and max(pair) <= most]
    return rows


def _forced(
    translator: Translator, split: Split, contexts: Sequence[Sequence[str]], rows: Sequence[int]
) -> Sequence[Translation]:
    """The references of some rows under forced decoding."""

    def by_window() -> Iterator[list[Translation]]:
        for first in range(0, len(rows), WINDOW):
            window = rows[first : first + WINDOW]
            sources, targets = ([side[row] for row in window] for side in (split.source, split.target))
            yield translator.force(sources, targets, [contexts[row] for row in window])

    return Spilled(chain.from_iterable(by_window()), IN_MEMORY)


def _measured(
    translator: Translator, translations: Sequence[Translation], seconds: float, references: Sequence[Translation]
) -> dict[str, Any]:
    """Figures for a comparison, besides scores. Only a single model has perplexity and entropy."""
    pieces = sum(len(translation.pieces) for translation in translations)
    single = len(translator.models) == 1 and bool(references)
    return {
        "perplexity": perplexity(references) if single else None,
        "attention_entropy": entropy(references) if single else None,
        "attention_entropy_by_head": entropy_by_head(references) if single else None,
        "hidden_share": hidden_share(references) if single else None,
        "forced_sentences": len(references),
        "parameters": sum(weight.numel() for model in translator.models for weight in model.parameters()),
        "seconds": seconds,
        "sentences_per_second": len(translations) / seconds,
        "target_pieces_per_second": pieces / seconds,
        "device": str(translator.compute.device),
        "threads": translator.compute.threads,
        "processes": translator.processes.count,
    }


def _provenance(request: TranslatorRequest, translator: Translator) -> dict[str, Any]:
    """The provenance of the translations."""
    run = request.runs[0]
    facts = run.facts()
    return {
        "runs": [str(member.folder) for member in request.runs],
        "checkpoint": request.checkpoint,
        "step": run.best_step() if request.checkpoint == "best" else facts.get("step"),
        "search": {
            "name": request.search.for_run(run)[0],
            **{name: value for name, value in vars(translator.search).items() if name[0] != "_"},
        },
        "tokenizer": translator.tokenizer.fingerprint,
        "versions": facts.get("versions"),
        "code": code_revision(),
        "model": {key: value for key, value in run.tree().items() if key in MODEL},
    }
