"""Evaluation of a run: translate test splits, score them, and draw heatmaps."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nmt.build.aligner import Aligner
from nmt.build.head_choice import LINKED, choose, choose_for_tags, own_validation
from nmt.build.heatmaps import linked_head, pictured_head, view_of
from nmt.build.link_scores import named_languages
from nmt.build.open import OpenRun, own_data, own_split
from nmt.build.paths import check_paths, check_replaceable, unprotect
from nmt.build.requests import GivenText, note_one_document
from nmt.build.torchrun import shared
from nmt.build.word_doubts import fit_doubts, open_doubts
from nmt.data.dataset import DataSource, Split
from nmt.data.document_lines import contexts_of, numbered
from nmt.data.stored import Spilled
from nmt.evaluate.comparison_facts import write_analyses
from nmt.evaluate.evaluation_report import REPORT, write_report
from nmt.evaluate.request import Evaluating
from nmt.evaluation import references as forced
from nmt.evaluation.metrics import tokenised_note
from nmt.evaluation.split import FILES as FILES_OF_SPLIT
from nmt.evaluation.split import Gold, HeatmapSettings, SplitResult, evaluate_split, summary
from nmt.evaluation.word_counts import WORDS_FILE, without_spaces
from nmt.inspection.doubt import DoubtEvidence, DoubtModel, measured
from nmt.runs.versions import code_revision
from nmt.system.errors import UserError
from nmt.system.files import replacing_folder
from nmt.system.foreign import inside
from nmt.system.locks import EVALUATION, locked
from nmt.system.memory import few_collections
from nmt.system.terminal import print_message, printable
from nmt.text.canonical import shows_nothing
from nmt.text.scripts import language_by_script
from nmt.training.validation import in_case_of
from nmt.translation.named_heads import AUTO
from nmt.translation.notes import NoteCounter
from nmt.translation.request import requests_of
from nmt.translation.translator import EXTRA_LENGTH, Translator
from nmt.translation.types import Translation

FILES = "source=FILE reference=FILE"  # in place of the run's own data
TER_CHARACTERS = 10_000  # warn of longer references
ATTENTION_MAPS = 6  # references whose weights are saved for nmt.compare
WINDOW = 2000  # number of sentences for each call of forced decoding
IN_MEMORY = 2000  # translations kept in memory with weights, some tens of MB; the rest is in a temporary file
OWN_FILES = (*FILES_OF_SPLIT, forced.FORCED_FILE, WORDS_FILE, REPORT)  # files that a new evaluation replaces
MODEL = ("choices", "encoder", "attention", "decoder")  # parts of the configuration that scores record


def evaluate(request: Evaluating) -> int:
    """Score all test splits of the run's data set, a given split, or a pair of files; print a table.

    Under torchrun, all processes translate, and the leader does all other work.
    """
    with few_collections():
        return shared(request.translator, True, functools.partial(_print_scores, request))


def _print_scores(request: Evaluating, opened: Callable[[], Translator]) -> int:
    check_paths(request.text.files, {"output": request.folder}, folders=["output"])
    results = evaluated(request, opened)
    print(printable(summary(results)))
    print(printable(f"\nTranslations, scores and heatmaps: {results[0].folder.parent}"))
    if request.pictures > 0 or request.lines:
        print(printable(f"To open in a browser: {results[0].folder / REPORT}"))
    return 0


def evaluated(request: Evaluating, opened: Callable[[], Translator] | None = None) -> list[SplitResult]:
    """Score the splits of a request and write a folder for each; `opened` returns the translator.

    Raises:
        UserError: a run or its data is missing, damaged or changed, or a setting does not fit.
    """
    codes, splits, data = _splits(request.text, request.translator.runs[0])
    for line in request.lines:
        for split in splits:
            if not 1 <= line <= len(split.source):
                raise UserError(f"lines={line}: {split.name} has lines 1 to {len(split.source):,}.")
    with contextlib.ExitStack() as locks:
        cure = "Choose another folder: output=FOLDER."
        if request.output is None:
            cure = f"Write the results elsewhere with output=FOLDER, or {unprotect(request.translator.runs[0].folder)}"
        for split in splits:
            check_replaceable(request.folder / split.name, cure)
            locks.enter_context(locked(inside(request.folder, split.name), EVALUATION))
        translator = (opened or request.translator.open)()
        run = request.translator.runs[0]
        doubts = open_doubts(run) if len(translator.models) == 1 else None
        scoring = Scoring(request, translator, _display(request, translator), doubts)
        training = None if data is None else _training_text(request.translator.runs[0], data)
        return [scoring.result(split, codes, training) for split in splits]


def _display(request: Evaluating, translator: Translator) -> HeatmapSettings:
    """The lines with heatmaps, and the heads of links and heatmaps.

    With head=auto, links use the head that is best on the validation links of the run's data, if there are any.
    """
    if request.lines and not translator.attends:
        raise UserError(
            "lines= needs attention, but this run has none (decoder=none). Leave it out, or use a run with attention."
        )
    pictured = pictured_head(request.view, request.head, translator)
    head, runs = linked_head(request.view, request.head, translator), request.translator.runs
    if head == AUTO and translator.attends:
        head = translator.heads.default
        if len(translator.heads.names) > 1 and len(runs) == 1:
            aligner = Aligner(runs[0], translator, head=AUTO, max_length=request.translator.max_source_length)
            head = choose(aligner, str(request.shift), own_validation(runs[0], request.text.data)).evidence.head
    return HeatmapSettings(
        max(0, request.pictures),
        request.lines,
        head,
        request.shift,
        AUTO if head != request.head else request.head,
        head if pictured == AUTO else pictured,
        None if request.view == "cross" else functools.partial(view_of, translator, request.view),
        request.heatmap_format,
    )


def _splits(text: GivenText, run: OpenRun) -> tuple[tuple[str, str], list[Split], DataSource | None]:
    """The language codes, the splits to score, and the run's data set if the splits are part of it, else None."""
    given = text.read()
    if given is not None:
        return run.languages, [given], None
    source = own_data(run, text.data, FILES)
    names = source.tests() if text.split is None else [text.split]
    if not names:
        raise UserError(
            f"The data set of {run.folder} has no test split. Give "
            f"{'split=valid, or ' if 'valid' in source.splits() else ''}source=FILE reference=FILE."
        )
    return source.languages, [own_split(run, source, name) for name in names], source


def _training_text(run: OpenRun, data: DataSource) -> Split | None:
    """The training text of a run, for the word counts of `nmt.compare`; None, with a warning, if it is missing."""
    try:
        return own_split(run, data, "train")
    except UserError as error:
        print_message(f"warning: words are not counted in the training text: {error}")
        return None


@dataclass(frozen=True)
class Scoring:
    """Scoring of the splits of a request by one translator."""

    request: Evaluating
    translator: Translator
    display: HeatmapSettings
    doubts: DoubtModel | None

    def result(self, split: Split, codes: tuple[str, str], training: Split | None) -> SplitResult:
        """Translate and score a split, and write its folder. `training` is the training text, or None if unknown."""
        request, translator = self.request, self.translator
        if request.text.source is not None and translator.context_sentences:
            split = split._replace(documents=numbered(split.source, request.documents))
            if request.documents == "blank" and not any(map(shows_nothing, split.source)):
                note_one_document(len(split.source))
        print_message(f"Translating {split.name}: {len(split.source):,} sentences ...")
        _warn_of_long_references(split)
        started = time.monotonic()
        contexts = contexts_of(split.source, split.documents, translator.context_sentences)
        notes = NoteCounter()
        best = notes.best(translator.translate(requests_of(split.source, contexts)))
        translations: Sequence[Translation] = Spilled(best, IN_MEMORY)
        for message in notes.messages(split.name, "line"):
            print_message(message)
        seconds = time.monotonic() - started
        translations, evidence, notes_of_doubts = self._doubted(split, translations)
        rows = _rows_to_force(translator, split)
        references = _forced(translator, split, contexts, rows)
        with replacing_folder(folder := inside(request.folder, split.name), OWN_FILES) as new:
            result = evaluate_split(
                translations,
                list(split.target),
                others=split.others,
                notes=[*self._notes(split), *notes_of_doubts],
                name=split.name,
                languages=self._languages(split, codes),
                folder=new,
                gold=self._gold(split, contexts, rows, references),
                display=self.display,
                provenance={**_provenance(request, translator), "text": split._replace(documents=None).fingerprint()},
                measured={
                    **_measured(translator, translations, seconds, references),
                    "doubt": None if evidence is None else evidence._asdict(),
                },
                attention_maps=forced.attention_maps(
                    references, [row + 1 for row in rows], ATTENTION_MAPS, self.display.head
                ),
            )
            if len(translator.models) == 1:
                characters = without_spaces(split.source), without_spaces(split.target)
                lines = [row + 1 for row in rows]
                of_references = forced.forced_rows(references, lines, characters, str(self.display.head), request.shift)
                write_analyses(new, split, translations, of_references, translator.tokenizer, training)
            if self.display.first or self.display.lines:
                title = f"{request.translator.runs[0].folder.resolve().name} on {split.name}"
                lines_of = [split.target, *split.others]
                write_report(translator, result, translations, lines_of, self.display, title, self.doubts, evidence)
        return result.in_folder(folder)

    def _doubted(
        self, split: Split, translations: Sequence[Translation]
    ) -> tuple[Sequence[Translation], DoubtEvidence | None, list[str]]:
        """The translations with doubts, the agreement of the doubts with the references, and notes for the user.

        If the run has no doubt model and its own `valid` split is scored, fit one on the first `WINDOW` sentences.
        """
        request, run = self.request, self.request.translator.runs[0]
        references = in_case_of(self.translator.tokenizer.target, split.target)
        if self.doubts is None:
            of_run = request.text.split == "valid" and request.output is None and len(self.translator.models) == 1
            if not of_run or request.translator.checkpoint != "best" or run.facts.get("status") == "running":
                return translations, None, []
            note = fit_doubts(run.files, self.translator, translations[:WINDOW], references[:WINDOW])
            choose_for_tags(run.files, self.translator, split.source[:LINKED], references[:LINKED])
            return translations, None, [note]

        def by_window(doubts: DoubtModel) -> Iterator[Translation]:
            for first in range(0, len(translations), WINDOW):
                window = [[each] for each in translations[first : first + WINDOW]]
                yield from (ranked[0] for ranked in doubts.add(self.translator, window))

        doubted = Spilled(by_window(self.doubts), IN_MEMORY)
        is_validation = request.text.split == "valid"  # the doubts were fitted on it
        evidence = self.doubts.evidence if is_validation else measured(doubted, references)
        auc = "unknown" if evidence.auc is None else f"{evidence.auc:.3f}"
        note = f"Confidence of {evidence.words:,} words, of which {evidence.right:.0%} are right: AUC {auc}."
        return doubted, evidence, [note]

    def _languages(self, split: Split, codes: tuple[str, str]) -> tuple[str, str]:
        if self.request.languages is not None:
            return named_languages(self.request.languages, codes)
        return codes[0], language_by_script(split.target, codes[1])

    def _notes(self, split: Split) -> list[str]:
        """Notes on references that look tokenised."""
        files = [str(path) for path in self.request.text.references] or [f"the reference of {split.name}"]
        return [note for note in map(tokenised_note, files, (split.target, *split.others)) if note]

    def _gold(
        self, split: Split, contexts: Sequence[Sequence[str]], rows: Sequence[int], references: Sequence[Translation]
    ) -> Gold | None:
        """The split's gold links, with the references of all lines under forced decoding; None without links."""
        if split.links is None or not self.translator.attends:
            return None
        if len(rows) < len(split.source):
            references = _forced(self.translator, split, contexts, range(len(split.source)))
        return Gold(split.links, references)


def _warn_of_long_references(split: Split) -> None:
    for line, reference in enumerate(split.target, start=1):
        if len(reference) > TER_CHARACTERS:
            print_message(
                f"warning: line {line} of {split.name} has {len(reference):,} characters. TER takes hours for very "
                "long lines: split them into sentences.",
            )


def _rows_to_force(translator: Translator, split: Split) -> list[int]:
    """The rows, from 0, of pairs with text on both sides that are not too long for forced decoding."""
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
    """The references of the given rows under forced decoding."""

    def by_window() -> Iterator[list[Translation]]:
        for first in range(0, len(rows), WINDOW):
            window = rows[first : first + WINDOW]
            sources, targets = ([side[row] for row in window] for side in (split.source, split.target))
            yield translator.force(sources, targets, [contexts[row] for row in window])

    return Spilled(chain.from_iterable(by_window()), IN_MEMORY)


def _measured(
    translator: Translator, translations: Sequence[Translation], seconds: float, references: Sequence[Translation]
) -> dict[str, Any]:
    """Figures for `nmt.compare` other than scores. Perplexity and entropy are None for an ensemble."""
    pieces = sum(len(translation.pieces) for translation in translations)
    single = len(translator.models) == 1 and bool(references)
    return {
        "perplexity": forced.perplexity(references) if single else None,
        "attention_entropy": forced.entropy(references) if single else None,
        "attention_entropy_by_head": forced.by_head(references, forced.entropy) if single else None,
        "hidden_share": forced.hidden_share(references) if single else None,
        "hidden_share_by_head": forced.by_head(references, forced.hidden_share) if single else None,
        "forced_sentences": len(references),
        "parameters": sum(weight.numel() for model in translator.models for weight in model.parameters()),
        "seconds": seconds,
        "sentences_per_second": len(translations) / seconds,
        "target_pieces_per_second": pieces / seconds,
        "device": str(translator.compute.device),
        "threads": translator.compute.threads,
        "processes": translator.processes.count,
    }


def _changed(request: Evaluating, translator: Translator) -> dict[str, Any]:
    """The settings other than the search that change translations and differ from their defaults."""
    asked, compute = request.translator, request.translator.compute
    precision = "bf16" if compute.dtype is not None and not compute.automatic else "as the device has it"
    settings = {  # (used value, default)
        "length_ratio": (asked.length_ratio, None),
        "extra_length": (asked.extra_length, EXTRA_LENGTH),
        "max_source_length": (asked.max_source_length, Translator.max_source_length),
        "long_lines": (asked.long_lines, Translator.long_lines),
        "shortlist": (asked.shortlist or 0, 0),
        "context_sentences": (translator.context_sentences, max(each.context_sentences for each in translator.models)),
        "precision": ("int8" if compute.int8 else precision, "as the device has it"),
    }
    changed: dict[str, Any] = {key: used for key, (used, usual) in settings.items() if used != usual}
    follows = translator.context_sentences and request.text.source and request.documents != "blank"
    return {**changed, "documents": request.documents} if follows else changed


def _provenance(asked: Evaluating, translator: Translator) -> dict[str, Any]:
    """The provenance of the translations, for `scores.json`."""
    request = asked.translator
    run = request.runs[0]
    return {
        "runs": [str(member.folder) for member in request.runs],
        "checkpoint": request.checkpoint,
        "step": run.best_step if request.checkpoint == "best" else run.facts.get("step"),
        "search": {"name": translator.search.choice, **translator.search.settings()},
        "settings": _changed(asked, translator),
        "tokenizer": translator.tokenizer.fingerprint,
        "versions": run.facts.get("versions"),
        "code": code_revision(),
        "model": {key: value for key, value in run.files.tree().items() if key in MODEL},
    }
