"""The Python interface: translators from runs, whose translations have heatmaps and links.

Settings are the same as for the commands. `import nmt` provides the public names of this module.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from nmt.alignment.linker import Linker
from nmt.alignment.tagged_lines import plain_text, translate_tagged
from nmt.alignment.word_weights import Head, head_name
from nmt.build.open import TranslatorRequest, open_linker
from nmt.build.requests import read
from nmt.build.word_doubts import need_doubts
from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.data import python_text
from nmt.data.document_lines import Followed, Follower
from nmt.data.languages import UNNAMED
from nmt.followed_text import FollowedText
from nmt.notebook import Explanation, Inspection, TranslatedSentence, WhatIf
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.glossary import Keep
from nmt.translation.kept_words import keep_words
from nmt.translation.named_heads import AUTO
from nmt.translation.request import Pin as Pin
from nmt.translation.request import Pins, Request, requests_of
from nmt.translation.term_files import open_glossary
from nmt.translation.translation_memory import open_memory
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, Views

if TYPE_CHECKING:
    from nmt.inspection.document import Style
    from nmt.inspection.doubt import DoubtModel

#: A file of terms, or a mapping of source terms to a target term or its forms.
Terms = str | Path | Mapping[str, str | Sequence[str]]
#: A file of pairs, or a mapping of sources to translations.
Pairs = str | Path | Mapping[str, str]
# Settings of `nmt.translate` for input and output, which nmt.load does not accept.
_OF_THE_COMMAND = (
    *("run", "input", "input_format", "output", "alignments", "heatmaps", "view", "head", "shift", "prefix", "format"),
    *("tags", "scores", "weights", "include", "documents", "show", "resume", "invalid", "heatmap_format", "glossary"),
    *("keep", "memory", "terms", "encoding"),
)


def load(run: str | Path | Sequence[str | Path], *settings: str) -> "RunTranslator":
    """Load the translator of a run, or of several runs as an ensemble.

    Args:
        run: a run folder, or a list of run folders.
        settings: settings as on the command line of `nmt.translate`: "search.beam_size=10", "device=cpu".

    Raises:
        UserError: a run is missing or damaged, runs do not fit together, or a setting is invalid.
    """
    for setting in settings:
        if setting.partition("=")[0].lstrip("+~") in _OF_THE_COMMAND:
            raise UserError(f"{setting}: only python -m nmt.translate has this setting. Leave it out of nmt.load.")
    overrides = quote(settings)
    config = compose("translate", overrides)
    config.run = [str(run)] if isinstance(run, str | Path) else [str(folder) for folder in run]
    request = read(TranslatorRequest, config, overrides)
    translator = request.open()
    linker = open_linker(request.runs[0], translator) if translator.attends else None
    more = need_doubts(request.runs[0]) if request.doubts else None, linker, request.keep_words
    return RunTranslator(translator, translator.heads.default, request.runs[0].languages, *more)


class RunTranslator:
    """Translates lists of sentences.

    For a run with context, a `context` has the previous sentences of a sentence in its document, the nearest last. A
    run that sees single sentences raises UserError for a context.
    """

    def __init__(
        self,
        translator: Translator,
        head: str = AUTO,
        languages: tuple[str, str] = UNNAMED,
        doubts: "DoubtModel | None" = None,
        linker: Linker | None = None,
        keeps_words: bool = True,
    ) -> None:
        """`head` is the head for word links in documents; `languages` has the codes of source and target.

        `doubts` is the doubt model, for translations without tags; `linker` links words to place tags. With
        `keeps_words`, the words before the first step that "slots=" restricts stay the same as without "slots=".
        """
        self._translator, self._head, self._languages, self._doubts = translator, head, languages, doubts
        self._linker, self._keeps_words = linker or Linker(head), keeps_words

    def translate(
        self,
        sentences: Iterable[str],
        prefixes: Iterable[str] = (),
        contexts: Iterable[Iterable[str]] = (),
        documents: Followed | None = None,
        glossary: Terms | None = None,
        keep: Sequence[Keep] = (),
        tags: Literal["none", "html"] = "none",
        memory: Pairs | None = None,
    ) -> list[TranslatedSentence]:
        """Return the best translation of each sentence; see `nbest`.

        With tags="html", sentences have HTML tags, which are not translated. The attribute `tagged` of a translation is
        its text with these tags around the linked words.
        """
        if tags not in ("none", "html"):
            raise UserError(f'tags={tags}: must be "none" or "html".')
        asked = sentences, prefixes, contexts, documents, glossary, keep, memory
        return [ranked[0] for ranked in self._nbest(*asked, tags)]

    def translate_documents(self, documents: Iterable[Iterable[str]]) -> list[list[TranslatedSentence]]:
        """Return the best translations of the sentences of each document.

        A run with context sees the previous sentences of each sentence in its document. Documents may be in any order.

        Args:
            documents: for each document its sentences, in order; "" is translated as "", and is not used as context.
        """
        lists = python_text.lists_of_texts(documents, "documents")
        sentences = [sentence for document in lists for sentence in document]
        sees = self._translator.context_sentences
        contexts = [context for document in lists for context in Follower(sees, "one").take(document)]
        translations = iter(self.translate(sentences, contexts=contexts, documents="none"))
        return [[next(translations) for _ in document] for document in lists]

    def follow(self, documents: Followed = "blank") -> FollowedText:
        """Return a translator for a text whose lines arrive over time, such as subtitles or a conversation."""
        return FollowedText(self.translate, Follower(self._translator.context_sentences, _checked(documents)))

    def nbest(
        self,
        sentences: Iterable[str],
        prefixes: Iterable[str] = (),
        contexts: Iterable[Iterable[str]] = (),
        documents: Followed | None = None,
        glossary: Terms | None = None,
        keep: Sequence[Keep] = (),
        memory: Pairs | None = None,
    ) -> list[list[TranslatedSentence]]:
        """Return the n-best list of each sentence, best first: with "search.nbest=N" up to N different texts.

        Args:
            sentences: one line of text each, in a list, a tuple, an iterator, an array or a column of a table, by
                position.
            prefixes: the beginning of each translation, "" for no prefix; () for no prefixes at all.
            contexts: the context of each sentence, see the class; () for none.
            documents: instead of contexts, how sentences form documents: "one", or "blank" with an empty sentence after
                each. "none" translates sentences one by one; None, too, with a warning for runs with context.
            glossary: terms that translations must use: a file (.tsv, .csv or .tbx), or a mapping of source terms to a
                target term or a list of its forms. docs/glossary.md explains them.
            keep: kinds of text that stay untranslated: "placeholders", "numbers".
            memory: a translation memory: a file (.tmx, .tsv or another format of training data), or a mapping. Its
                sources get their translations unchanged; the attribute `remembered` marks such translations.

        Raises:
            TypeError: an item is not text; the message names it: "sentences[3]: a float, not text."
            UserError: a sentence has a line break, the number of prefixes or contexts is not that of the sentences, the
                model has no pieces for a prefix or a term, or the glossary or memory is invalid.
        """
        return self._nbest(sentences, prefixes, contexts, documents, glossary, keep, memory)

    def _nbest(
        self,
        sentences: Iterable[str],
        prefixes: Iterable[str],
        contexts: Iterable[Iterable[str]],
        documents: Followed | None,
        glossary: Terms | None,
        keep: Sequence[Keep],
        memory: Pairs | None,
        tags: str = "none",
    ) -> list[list[TranslatedSentence]]:
        lines, beginnings = python_text.texts(sentences, "sentences"), python_text.texts(prefixes, "prefixes")
        if beginnings and tags != "none":
            raise UserError(f"tags={tags} and prefixes cannot be combined. Give one of them.")
        texts = lines if tags == "none" else [plain_text(line) for line in lines]
        if beginnings and len(beginnings) != len(lines):
            raise UserError(f"There are {len(beginnings)} prefixes for {len(lines)} sentences. Give one for each.")
        for name, given in (("glossary", glossary), ("memory", memory)):
            python_text.check_mapping(given, name)
        seen = self._contexts(texts, contexts, documents)
        terms = Path(glossary) if isinstance(glossary, str) else glossary
        opened = open_glossary(terms, keep, self._translator.tokenizer.target, self._languages)
        if opened is not None and not self._translator.attends:
            warnings.warn("decoder=none has no attention, so terms may be misplaced.", stacklevel=3)
        pairs = open_memory(memory, self._languages)
        rows = zip(lines, beginnings or repeat(""), seen or repeat(()), strict=False)
        requests, translate = [Request(*each, glossary=opened, memory=pairs) for each in rows], self._translate
        nbest_lists = translate(requests) if tags == "none" else translate_tagged(requests, translate, self._linker)
        if self._doubts is not None and tags == "none":
            nbest_lists = self._doubts.add(self._translator, nbest_lists)
        for line, ranked in enumerate(nbest_lists, 1):
            _warn(line, ranked)
        return [[TranslatedSentence(*translation) for translation in ranked] for ranked in nbest_lists]

    def documents(
        self,
        sentences: Iterable[str],
        include: Sequence[str] = ("alignment",),
        contexts: Iterable[Iterable[str]] = (),
    ) -> list[dict[str, Any]]:
        """Translate; return values that `json.dump` can write. docs/translation-json.md describes them.

        Args:
            sentences: one line of text each; see `nbest`.
            include: "alignment", "weights", "self_weights", "alternatives", "stages", "vectors", "beam", "doubt".
            contexts: see `nbest`.

        Raises:
            UserError: a detail is unknown, or the contexts do not match the sentences; see `nbest`.
        """
        from nmt.inspection.details import documented, included, searched

        details, style = included(include), self._style("alignment" in include)
        lines = python_text.texts(sentences, "sentences")
        documents: list[dict[str, Any]] = []
        for request in self._with_beginnings(requests_of(lines, self._contexts(lines, contexts, None))):
            ranked, beam = searched(self._translator, request, tree="beam" in details)
            _warn(1 + len(documents), ranked)
            documents.append(documented(self._translator, ranked, style, details, beam=beam))
        return documents

    def inspect(self, sentence: str, context: Sequence[str] = ()) -> Inspection:
        """Translate a sentence and keep all details; a notebook displays them in the viewer.

        Args:
            sentence: one line.
            context: see the class.
        """
        from nmt.inspection.details import DETAILS

        return Inspection(self.documents([python_text.text(sentence, "sentence")], sorted(DETAILS), [context])[0])

    def explain(
        self,
        sentence: str,
        translation: str | None = None,
        context: Sequence[str] = (),
        word: int | str | None = None,
        head: Head | None = None,
    ) -> Explanation:
        """Explain each word of a translation by attention, gradient times input and erasure.

        Args:
            sentence: one line with words.
            translation: a translation to explain; None for the translator's own translation.
            context: see the class.
            word: a word of the translation, by its number from 0 or its spelling; None for all words.
            head: the attention head, see `TranslatedSentence.heatmap`; None for the head of the links in `documents`.

        Raises:
            UserError: a text is blank or too long, or the head or word does not exist.
        """
        from nmt.inspection.explanation import explain

        sentence = python_text.text(sentence, "sentence")
        translation = None if translation is None else python_text.text(translation, "translation")
        (context,) = self._contexts([sentence], [context], None)
        style = self._style() if head is None else replace(self._style(), head=head_name(head))
        asked = self._translator, sentence, translation, style
        return Explanation(explain(*asked, context=context, word=word, keeps=self._keeps_words))

    def what_if(
        self,
        sentence: str,
        *,
        text: str | None = None,
        prefix: str = "",
        pins: Pins | None = None,
        sweep: int | Sequence[int] | None = None,
        context: Sequence[str] = (),
        changed_context: Sequence[str] | None = None,
        keep_words: bool = True,
        temperature: tuple[int, float] | None = None,
    ) -> WhatIf:
        """Translate a sentence without and with a change of text, prefix, context or attention, and compare both.

        Args:
            sentence: one line with words.
            text: the changed sentence; None for the same sentence.
            prefix: the beginning of the changed translation.
            pins: for steps of the translation, from 0, the only source pieces to attend to, or `nmt.Pin(pieces,
                weight)` to give them a share of the weight from 0 to 1. Numbers after the last source piece are pieces
                of the context, if the decoder attends to the context.
            sweep: a step that attends to each source piece in turn, or the steps of a word, which attend to each word.
            context, changed_context: see the class; None for the same context in the changed translation.
            keep_words: whether the words before the first pinned step stay unchanged. With False, and with a prefix,
                the search is unconstrained before this step, and another word may move to it.
            temperature: a step, and the divisor of the energies of all its heads before the normaliser.

        Raises:
            UserError: the sentence is blank or too long, a step does not exist, or the model has no attention to pin or
                no pieces for the prefix.
        """
        from nmt.inspection.details import DETAILS
        from nmt.inspection.whatif import Edits, what_if

        sentence, prefix = python_text.text(sentence, "sentence"), python_text.text(prefix, "prefix")
        text = None if text is None else python_text.text(text, "text")
        both = [context, context if changed_context is None else changed_context]
        context, changed = self._contexts([sentence] * 2, both, None)
        edits = Edits(text, prefix, pins or {}, None if changed_context is None else changed, keep_words)
        include, style = DETAILS - {"beam", "vectors"}, self._style()
        asked = self._translator, sentence, edits, style, include, sweep, context, "", temperature
        return WhatIf(what_if(*asked, keeps=self._keeps_words))

    def _with_beginnings(self, requests: Iterable[Request]) -> list[Request]:
        return keep_words(self._translator, [*requests]) if self._keeps_words else [*requests]

    def _translate(self, requests: Iterable[Request]) -> list[list[Translation]]:
        return self._translator.translate_chunk(self._with_beginnings(requests))

    def _contexts(
        self, sentences: Sequence[str], of_each: Iterable[Iterable[str]], documents: Followed | None
    ) -> Sequence[Sequence[str]]:
        """The given contexts, or contexts from the order of the sentences in `documents`; see `nbest`."""
        sees, lists = self._translator.context_sentences, python_text.lists_of_texts(of_each, "contexts")
        contexts = [[sentence for sentence in context if not shows_nothing(sentence)] for context in lists]
        if contexts and len(contexts) != len(sentences):
            raise UserError(f"There are {len(contexts)} contexts for {len(sentences)} sentences. Give one for each.")
        if any(contexts) and not any(model.context_sentences for model in self._translator.models):
            raise UserError(
                "This run sees single sentences. Leave the context out, or load a run with context.sentences=N."
            )
        if documents is not None:
            if contexts and _checked(documents) != "none":
                raise UserError(f"contexts and documents={documents} cannot be combined. Give one of them.")
            return contexts or Follower(sees, _checked(documents)).take(sentences)
        if sees and not contexts and sum(not shows_nothing(sentence) for sentence in sentences) > 1:
            warnings.warn(
                f"This run sees the {sees} sentences before each one, but these {len(sentences)} are translated alone. "
                'Give documents="one" or "blank", contexts=[...], or documents="none" for this.',
                stacklevel=4,
            )
        return contexts

    def _style(self, aligned: bool = True) -> "Style":
        from nmt.inspection.details import described_search
        from nmt.inspection.document import Style

        vocabulary, search = self._translator.tokenizer.target, described_search(self._translator)
        return Style(vocabulary, self._head, aligned=aligned, search=search, doubts=self._doubts)

    def look(self, translation: Translation) -> Views:
        """Return a translation with the weights of each kind of attention, each with a `heatmap`.

        `encoder` and `decoder` are self-attention, `cross` is attention to the source; None if the model has none. An
        ensemble shows its first run.

        Raises:
            UserError: the translation is empty, or joined from the parts of a long line.
        """
        (views,) = self._translator.look([translation])
        if views is None:
            raise UserError("look needs the translation of a line that is not empty and was not translated in parts.")
        return Views(*(None if view is None else TranslatedSentence(*view) for view in views))


def _warn(line: int, ranked: Sequence[Translation]) -> None:
    """Issue the notes on a line as Python warnings."""
    for note in ranked[0].notes:
        warnings.warn(f"line {line} {note}", stacklevel=4)


def _checked(documents: Followed) -> Followed:
    if documents not in get_args(Followed):
        raise UserError(f"documents={documents}: must be one of {', '.join(get_args(Followed))}.")
    return documents
