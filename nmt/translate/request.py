"""The request of `nmt.translate`: its checked settings."""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from nmt.build.open import TranslatorRequest
from nmt.build.paths import is_replaceable
from nmt.build.word_doubts import need_doubts, open_doubts
from nmt.data.document_lines import Followed
from nmt.data.lines import Invalid
from nmt.inspection.doubt import DoubtModel
from nmt.runs.maturity import hardly_trained
from nmt.system.errors import UserError
from nmt.system.files import STANDARD
from nmt.text.tokenizer import Vocabulary
from nmt.translate.partial import Resume
from nmt.translation.glossary import Glossary, Keep
from nmt.translation.term_files import open_glossary
from nmt.translation.translation_memory import TranslationMemory, open_memory
from nmt.translation.types import PictureFormat, View

#: The endings of documents, which the extra `documents` reads.
DOCUMENTS = (
    *(".srt", ".vtt", ".po", ".pot", ".xliff", ".xlf", ".md", ".markdown", ".html", ".htm", ".xhtml", ".json", ".arb"),
    *(".yaml", ".yml", ".tmx", ".csv", ".tsv", ".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".odt"),
)


#: File endings of unsupported formats -> endings of supported formats to convert them to.
_OTHERS = {".doc": ".docx", ".rtf": ".docx", ".pdf": ".docx", ".xls": ".xlsx", ".ods": ".xlsx", ".ppt": ".pptx"}


@dataclass(frozen=True)
class Translating:
    """The settings of `nmt.translate`; `configs/translate.yaml` explains them."""

    translator: TranslatorRequest
    input: Path | None
    input_format: Literal["auto", "lines"]
    output: Path | None
    format: Literal["text", "tsv", "jsonl", "html", "json"]
    scores: bool
    weights: bool
    include: Sequence[str]
    tags: Literal["none", "html"]
    prefix: Path | None
    glossary: Path | None
    keep: Keep | Sequence[Keep] | None
    memory: Path | None
    terms: Path | None
    alignments: Path | None
    heatmaps: Path | None
    heatmap_format: PictureFormat
    view: View
    head: str
    shift: Literal[0, 1]
    show: Literal["links"] | None
    documents: Followed
    encoding: str | None
    invalid: Invalid
    resume: Any

    def __post_init__(self) -> None:
        for key in ("input", "output"):  # "-" means standard input or output, like no setting
            if getattr(self, key) == STANDARD:
                object.__setattr__(self, key, None)
        self._check_endings()
        if self.view != "cross" and self.heatmaps is None:
            raise UserError(f"view={self.view} is for heatmaps. Give heatmaps=FOLDER as well.")
        if self.heatmap_format != "png" and self.heatmaps is None:
            raise UserError(f"heatmap_format={self.heatmap_format} is for heatmaps. Give heatmaps=FOLDER as well.")
        if self.show and (self.output is not None or self.format != "text"):
            raise UserError(f"show={self.show} is for text on standard output. For a file, give alignments=FILE.")
        if self.weights and self.format != "jsonl":
            raise UserError("weights=true needs format=jsonl. With format=json, give include=[alignment,weights].")
        if self.doubts is None and self.format == "html":
            raise UserError("format=html shows doubtful words. Give doubts=true as well.")
        if self.format == "json":
            from nmt.inspection.details import included

            included(self.include)
        elif [*self.include] != ["alignment"]:
            raise UserError("include= needs format=json.")
        if self.terms is not None and not self.has_terms:
            raise UserError("terms= reports on terms. Give glossary=FILE or keep=placeholders as well.")
        if self.terms is not None and self.resumes != "false":
            raise UserError("terms= reports on the whole text, so it cannot be combined with resume=. Leave one out.")
        if self.tags != "none" and (self.format != "text" or self.prefix is not None):
            raise UserError(f"tags={self.tags} is for text without prefixes. Leave out format= and prefix=.")
        if self.tags != "none" and self.translator.doubts:
            raise UserError(f"tags={self.tags} and doubts=true cannot be combined. Give one of them.")
        if self.resumes not in get_args(Resume):
            raise UserError(f"resume={self.resume}: must be true, auto or false.")
        if self.resumes != "false" and not self.files:
            raise UserError(f"resume={self.resumes} needs a file to continue. Give output=FILE as well.")

    def _check_endings(self) -> None:
        """Raise UserError if the input is an unsupported document, or only the output is a document."""
        if self.input_format == "lines" or self.input is None:
            return
        ending = self.input.suffix.lower()
        if ending in _OTHERS:
            raise UserError(
                f"input={self.input}: {ending} documents are not read. Save it as {_OTHERS[ending]} in its program, "
                "or in LibreOffice. (A file of plain lines with this ending: input_format=lines)"
            )
        wanted = "" if self.output is None else self.output.suffix.lower()
        if not self.is_document and wanted in (".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".odt"):
            raise UserError(
                f"output={self.output}: a {wanted} file is made from one, and input={self.input} is lines of text. "
                "Give output=NAME.txt, or a document as input."
            )

    @functools.cached_property
    def doubts(self) -> DoubtModel | None:
        """The doubt model if the output shows doubts, else None (UserError if doubts=true and the run has no model)."""
        run = self.translator.runs[0]
        if self.translator.doubts:
            return need_doubts(run)
        return open_doubts(run) if self.format == "json" and "doubt" in self.include else None

    @property
    def has_terms(self) -> bool:
        """Whether translations must use terms."""
        return self.glossary is not None or bool(self.keep)

    def open_glossary(self, vocabulary: Vocabulary) -> Glossary | None:
        """The terms that translations must use (UserError as for `nmt.translation.term_files.open_glossary`)."""
        return open_glossary(self.glossary, self.keep, vocabulary, self.translator.runs[0].languages)

    @functools.cached_property
    def pairs(self) -> TranslationMemory | None:
        """The translation memory (UserError as for `nmt.translation.translation_memory.open_memory`)."""
        return open_memory(self.memory, self.translator.runs[0].languages)

    @property
    def keeps_beam(self) -> bool:
        """Whether the output has the tree of each search. Each line is then searched alone."""
        return self.format == "json" and "beam" in self.include

    @property
    def converses(self) -> bool:
        """Whether the session is interactive: lines are typed into a terminal, which shows their translations."""
        streams = sys.stdin, sys.stdout
        return self.input is self.output is None and all(stream is not None and stream.isatty() for stream in streams)

    @property
    def resumes(self) -> Resume:
        """The setting `resume`, which YAML may have read as a boolean."""
        return cast("Resume", str(self.resume).lower())

    @property
    def files(self) -> dict[str, Path]:
        """The output files that survive an interruption, by key; empty without `output`."""
        if self.output is None or not is_replaceable(self.output):
            return {}
        outputs = {"output": self.output, "alignments": self.alignments}
        return {key: path for key, path in outputs.items() if path is not None and is_replaceable(path)}

    @property
    def is_document(self) -> bool:
        """Whether the input is a document rather than plain lines, by its file ending."""
        return self.input_format == "auto" and self.input is not None and self.input.suffix.lower() in DOCUMENTS

    @property
    def lines_only(self) -> list[str]:
        """The given settings that are for lines only, as "key=value"."""
        usual = {"format": "text", "scores": False, "prefix": None, "alignments": None, "heatmaps": None}
        usual |= {"tags": "none"}
        return [f"{key}={getattr(self, key)}" for key, value in usual.items() if getattr(self, key) != value]

    @property
    def draws_weights(self) -> bool:
        """Whether any output needs the weights of the attention to the source."""
        pictures = self.heatmaps is not None and self.view == "cross"
        return self.alignments is not None or self.show is not None or pictures

    @property
    def notes_on_runs(self) -> list[str]:
        """Notes on runs that are hardly trained; with several runs, each note begins with its folder."""
        runs = [run.files for run in self.translator.runs]
        notes = [(str(run.folder), note) for run in runs if (note := hardly_trained(run))]
        return [note if len(runs) == 1 else f"{folder}: {note}" for folder, note in notes]

    @property
    def only_text(self) -> bool:
        """Whether the output shows no numbers of the model. Tags are placed by weights, but need no exact weights."""
        return not (self._shows_weights or self.scores)

    @property
    def keeps_weights(self) -> bool:
        """Whether translations need attention weights."""
        return self._shows_weights or self.tags != "none"

    @property
    def _shows_weights(self) -> bool:
        return self.draws_weights or self.format not in ("text", "html")
