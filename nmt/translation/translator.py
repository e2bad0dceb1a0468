"""The translator: sentences in, Translations out, in the same order; internally batched by length."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import torch

from nmt.attention import Pins, Slots, pins_of
from nmt.compute import CPU, Compute
from nmt.data.batch import Batch, make_batch
from nmt.data.document_lines import context_tensor
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.processes import ALONE
from nmt.search import Hypothesis, Limits, Penalties, Prefix, Search, SearchState, Step
from nmt.text.canonical import shows_nothing
from nmt.text.spans import Span, words_of
from nmt.text.tokenizer import BOS, EOS, SPECIAL_PIECES, Tokenizer
from nmt.translation import contexts as of_context
from nmt.translation import forcing
from nmt.translation.different import search_for_texts
from nmt.translation.joining import ends_of_parts, join
from nmt.translation.lengths import excess_of_source, excess_of_target
from nmt.translation.looking import view_all
from nmt.translation.sharing import search_batches, split
from nmt.translation.shortlist import Shortlist
from nmt.translation.stepping import Stepper, evaluating
from nmt.translation.types import ContextSentence, Translation, Views

END = SPECIAL_PIECES[EOS]
LENGTH_RATIO, EXTRA_LENGTH = 2.0, 10  # of the longest translation, if the run does not store them
FORCED_PLACES = 100_000  # limit on sentences times longest length squared in a batch of forced decoding
#: Wraps a step function and its first state, to see what a search does with them.
Watch = Callable[[Step, SearchState], tuple[Step, SearchState]]


class Translator:
    """Translates with one model or an ensemble of several that share a tokenizer."""

    def __init__(
        self,
        models: Sequence[Seq2Seq],
        tokenizer: Tokenizer,
        search: Search,
        *,
        compute: Compute = CPU,
        batch_sentences: int = 64,
        length_ratio: float = LENGTH_RATIO,
        extra_length: int = EXTRA_LENGTH,
        max_source_length: int = 250,
        long_lines: str = "split",
        warn: Callable[[str], None] | None = None,
        weights: bool = True,
        shortlist: Shortlist | None = None,
        slots: Slots | None = None,
        context_sentences: int | None = None,
    ) -> None:
        """Build a translator.

        Args:
            models: set to evaluation mode while translating, and set back afterwards.
            tokenizer: the tokenizer of all models.
            search: greedy, beam or sampling.
            compute: the device of the models, and the type of matrix products.
            batch_sentences: sentences per batch.
            length_ratio, extra_length: a translation has at most ratio * source pieces + extra pieces.
            max_source_length: pieces; `long_lines` says what happens to longer lines.
            long_lines: "split" translates a long line in parts, "truncate" translates its beginning only.
            warn: called with a warning for each line that is split, truncated, or too long for the model, and with the
                progress on lines that are split.
            weights: whether translations have attention weights; a line of thousands of pieces has millions.
            shortlist: selects the pieces for search; None for the whole vocabulary.
            slots: the slots that each step may attend to, in every sentence; None for all.
            context_sentences: previous sentences that the models see; None for as many as in training.

        Raises:
            UserError: the model has no attention, `slots` are invalid, or there are too many previous sentences.
        """
        self.models = list(models)
        self.pins: Pins = {} if slots is None else pins_of(slots)
        for model in models if slots is not None else ():
            model.check_attends()
        self.tokenizer, self.search = tokenizer, search
        self.compute = compute
        self.batch_sentences = batch_sentences
        self.length_ratio, self.extra_length = length_ratio, extra_length
        self.max_source_length, self.long_lines = max_source_length, long_lines
        self.warn, self.weights, self.shortlist = warn, weights, shortlist
        # Called in place of `warn`, with the number of a line and what it exceeds.
        self.too_long: Callable[[int, str], None] | None = None
        self.processes = ALONE  # which share the batches
        trained = max(model.context_sentences for model in self.models)
        self.context_sentences = of_context.checked(context_sentences, trained)
        self._joined = any(model.context is not None and not model.context.only_slots for model in self.models)
        self.stepper = Stepper(self.models, compute, weights=weights or search.needs_weights)

    def _tell(self, line: int, excess: str) -> None:
        if excess and self.too_long is not None:
            self.too_long(line, excess)
        elif excess and self.warn is not None:
            self.warn(f"line {line} {excess}")

    def translate(
        self, sentences: Iterable[str], chunk: int = 2000, contexts: Iterable[Sequence[str]] = ()
    ) -> Iterator[list[Translation]]:
        """Yield the n-best list of each sentence, in order; hold `chunk` sentences at a time."""
        source, before = iter(sentences), iter(contexts)
        first = 1
        while lines := list(islice(source, chunk)):
            yield from self.translate_chunk(lines, first, contexts=list(islice(before, len(lines))))
            first += len(lines)

    def translate_chunk(
        self,
        sentences: Sequence[str],
        first_line: int = 1,
        prefixes: Sequence[str] = (),
        contexts: Sequence[Sequence[str]] = (),
        *,
        max_lengths: Sequence[int | None] = (),
        penalties: Sequence[Penalties] = (),
        pins: Sequence[Pins] = (),
        watch: Watch | None = None,
    ) -> list[list[Translation]]:
        """The n-best lists of these sentences, whose first is line `first_line` of the input.

        Each translation begins with its prefix, unless the prefix is blank. A blank sentence stays empty. `contexts`
        are the sentences before each one in its document, the nearest one last; the models see as many as they can.

        Args:
            max_lengths: the most target pieces of each sentence, or of each part of a long one, if not None.
            penalties: of each sentence, in place of those of a beam search.
            pins: of each sentence, in place of the translator's `slots`.
            watch: wraps the step function and the first state of each search; several threads may call it at once.

        Raises:
            UserError: the model has no pieces for a prefix, or no attention to pin.
        """
        own: dict[str, Sequence[Any]] = {"max_length": max_lengths, "penalties": penalties, "pins": pins}
        parts = [
            part._replace(**{name: values[part.sentence] for name, values in own.items() if values})
            for part in self._parts(sentences, first_line, prefixes, contexts)
        ]
        order = sorted(range(len(parts)), key=lambda part: -len(parts[part].tokens))
        searches = self.compute.parallel_searches
        batches = split(order, self.batch_sentences, searches)
        with evaluating(self.stepper.models):
            found = search_batches(
                [[parts[row] for row in rows] for rows in batches],
                lambda batch: self.search_batch(batch, watch),
                self.processes,
                searches,
                self.warn if len(parts) > len(sentences) else None,
            )
        nbest_lists: list[list[Hypothesis]] = [[] for _ in parts]
        for row, hypotheses in zip(chain(*batches), chain(*found), strict=True):
            nbest_lists[row] = hypotheses
            most = max(len(hypothesis.tokens) for hypothesis in hypotheses)
            self._tell(first_line + parts[row].sentence, excess_of_target(self.models, most))
        results: list[list[list[Translation]]] = [[] for _ in sentences]
        for part, hypotheses in zip(parts, nbest_lists, strict=True):
            sentence = sentences[part.sentence]
            seen = self._seen(contexts, part.sentence, part.context)
            ranked = [self._translation(sentence, part.tokens, part.spans, each, seen) for each in hypotheses]
            results[part.sentence].append([each._replace(pins=part.pins) for each in ranked])
        joined = []
        for line, (sentence, parts_of_sentence) in enumerate(zip(sentences, results, strict=True), first_line):
            joined.append(join(sentence, parts_of_sentence) if parts_of_sentence else [empty(sentence)])
            lost = bool(parts_of_sentence) and joined[-1][0].weights is None
            if lost and parts_of_sentence[0][0].weights is not None and self.warn is not None:
                self.warn(f"line {line} is too long for attention weights: it gets no word links and no picture.")
        return joined

    def _parts(
        self,
        sentences: Sequence[str],
        first_line: int,
        prefixes: Sequence[str],
        contexts: Sequence[Sequence[str]] = (),
    ) -> list["_Part"]:
        """What is searched for the sentences that are not blank, with a warning for each that is cut or too long."""
        parts: list[_Part] = []
        before = self._before(contexts or [()] * len(sentences))
        for index, tokens in enumerate(self.tokenizer.source.encode(sentences)):
            if shows_nothing(sentences[index]):
                continue
            spans = self.tokenizer.source.spans(tokens, sentences[index])
            ends = [0, len(tokens)]
            if len(tokens) > self.max_source_length:
                words = words_of(sentences[index], spans)
                ends = ends_of_parts(words, self.max_source_length, cut=self.long_lines == "truncate")
                if self.warn is not None:
                    action = f"translated in {len(ends) - 1:,} parts" if self.long_lines == "split" else "cut"
                    self.warn(
                        f"line {first_line + index} has {len(tokens):,} pieces, more than max_source_length="
                        f"{self.max_source_length}. It is {action}."
                    )
            longest = max(end - start for start, end in pairwise(ends))
            longest += self._joined * sum(len(context) + 1 for context in before[index])
            self._tell(first_line + index, excess_of_source(self.models, longest))
            prefix = self._prefix(prefixes[index], first_line + index) if prefixes else ()
            parts.extend(
                _Part(index, tokens[start:end], spans[start:end], () if start else prefix, before[index], self.pins)
                for start, end in pairwise(ends)
            )
        return parts

    def _seen(self, contexts: Sequence[Sequence[str]], row: int, tokens: of_context.Tokens) -> list[ContextSentence]:
        return of_context.context_sentences(self.tokenizer, contexts[row], tokens) if tokens else []

    def _before(self, contexts: Sequence[Sequence[str]]) -> list[of_context.Tokens]:
        return of_context.encoded(self.tokenizer, contexts, self.context_sentences, self.max_source_length)

    def force(
        self, sources: Sequence[str], targets: Sequence[str], contexts: Sequence[Sequence[str]] = ()
    ) -> list[Translation]:
        """Forced decoding of `targets` by the first model: one Translation per sentence, with attention weights."""
        with self.compute.autocast():
            return self._force(sources, targets, forcing.attention, contexts)

    def saliency(
        self, sources: Sequence[str], targets: Sequence[str], contexts: Sequence[Sequence[str]] = ()
    ) -> list[Translation]:
        """As `force`, with the saliency of source pieces instead of weights, one head; see `forcing`."""
        # In float32: saliency depends on small differences.
        return self._force(sources, targets, forcing.saliency, contexts)

    def look(self, translations: Sequence[Translation]) -> list[Views | None]:
        """Each translation with the weights of every attention of the first model, which predicts its pieces again.

        None for an empty line, and for a long line that was translated in parts.
        """
        with evaluating(self.models):
            return view_all(self.models[0], self.tokenizer, translations, self.compute)

    def _force(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        look: Callable[[Seq2Seq, Batch, Sequence[Pins]], forcing.Forced],
        contexts: Sequence[Sequence[str]] = (),
    ) -> list[Translation]:
        before = self._before(contexts or [()] * len(sources))
        source_tokens = self.tokenizer.source.encode(sources)
        target_tokens = self.tokenizer.target.encode(targets)
        lengths = [1 + max(map(len, pair)) for pair in zip(source_tokens, target_tokens, strict=True)]
        order = sorted(range(len(sources)), key=lambda row: -lengths[row])
        results: list[Translation | None] = [None] * len(sources)
        with evaluating(self.models):
            start = 0
            while start < len(order):
                size = max(1, min(self.batch_sentences, FORCED_PLACES // lengths[order[start]] ** 2))
                rows = order[start : start + size]
                start += size
                batch = make_batch([source_tokens[row] for row in rows], [target_tokens[row] for row in rows], rows)
                batch = batch._replace(context=context_tensor([before[row] for row in rows]))
                forced = look(self.models[0], batch.to(self.compute.device), [self.pins] * len(rows))
                totals = forced.log_probs.sum(1).tolist()
                log_probs, best = forced.log_probs.tolist(), forced.best.tolist()
                weights = None if forced.weights is None else forced.weights.float().cpu().numpy()
                for at, row in enumerate(rows):
                    tokens = [*target_tokens[row], EOS]
                    # A copy, so that a short line does not keep the whole batch in memory.
                    seen = None if weights is None else weights[at, :, : len(tokens)].copy()
                    hypothesis = Hypothesis(tokens, totals[at], totals[at], seen)
                    spans = self.tokenizer.source.spans(source_tokens[row], sources[row])
                    sees = self._seen(contexts, row, before[row])
                    results[row] = self._translation(
                        sources[row], source_tokens[row], spans, hypothesis, sees
                    )._replace(
                        text=targets[row],
                        spans=self.tokenizer.target.spans(tokens, targets[row]),
                        log_probs=log_probs[at][: len(tokens)],
                        best_log_probs=best[at][: len(tokens)],
                        pins=self.pins,
                    )
        return [result for result in results if result is not None]

    def _prefix(self, text: str, line: int) -> Prefix:
        """The allowed tokens of a translation that begins with the text."""
        if shows_nothing(text):
            return ()
        vocabulary = self.tokenizer.target
        try:
            prefix = vocabulary.beginnings(text)
        except UserError as error:
            raise UserError(f"prefix of line {line}: {error}") from error
        written = vocabulary.decode(vocabulary.encode([text])[0])
        if written != text and self.warn is not None:
            self.warn(f"prefix of line {line}: the model writes '{text}' as '{written}'.")
        return prefix

    def search_batch(self, parts: Sequence["_Part"], watch: Watch | None = None) -> list[list[Hypothesis]]:
        """The n-best list of each part, searched at once by models in evaluation mode. Threads may call it at once."""
        return search_for_texts(
            lambda parts, shows: self._search(parts, None if shows else watch, shows),
            *(parts, self.search, self.tokenizer.target),
        )

    def _search(self, parts: Sequence["_Part"], watch: Watch | None, shows: Sequence[bytes]) -> list[list[Hypothesis]]:
        """The n-best list of each part; with what each token shows, of one hypothesis for each text."""
        sources, prefixes = [part.tokens for part in parts], [part.prefix for part in parts]
        with torch.inference_mode(), self.compute.autocast():
            batch = make_batch(sources, None, list(range(len(sources))))
            batch = batch._replace(context=context_tensor([part.context for part in parts])).to(self.compute.device)
            lengths = [len(part.prefix) + self._most_pieces(part) for part in parts]
            fast = all(model.fast for model in self.models)
            most = torch.tensor(lengths, device=self.compute.device)
            penalties = [part.penalties for part in parts if part.penalties is not None]
            few, forbidden = self.compute.compiles_shapes, self.tokenizer.target.forbidden
            limits = Limits(
                BOS, EOS, forbidden, most, batch.source_mask, fast, prefixes, penalties, few, sources, shows
            )
            candidates = None if self.shortlist is None else self.shortlist.candidates(batch.source, prefixes)
            if candidates is not None:
                limits = candidates.limits(limits)
            source, pins = (batch.source, batch.source_mask, batch.source_lengths), [part.pins for part in parts]
            state = self.stepper.start(*source, candidates, batch.context, pins)
            step, first = (self.stepper, state) if watch is None else watch(self.stepper, state)
            nbest_lists = self.search(step, first, limits)
            if candidates is not None:
                nbest_lists = [candidates.named(nbest) for nbest in nbest_lists]
        if any(math.isnan(hypothesis.log_prob) for nbest in nbest_lists for hypothesis in nbest):
            raise UserError(
                "The model computes NaN instead of probabilities: its weights are damaged or far too large. Restore "
                "the run from an intact copy, or train it again."
            )
        nbest_lists = [
            [hypothesis._replace(cut=len(hypothesis.tokens) >= length) for hypothesis in nbest]
            for nbest, length in zip(nbest_lists, lengths, strict=True)
        ]
        if self.weights or not self.search.needs_weights:
            return nbest_lists
        return [[hypothesis._replace(weights=None) for hypothesis in nbest] for nbest in nbest_lists]

    def _most_pieces(self, part: "_Part") -> int:
        """The most pieces of a translation, beside those of its prefix."""
        most = math.ceil(self.length_ratio * len(part.tokens)) + self.extra_length
        return most if part.max_length is None else min(most, max(1, part.max_length - len(part.prefix)))

    def _translation(
        self,
        sentence: str,
        source_tokens: list[int],
        source_spans: list[Span | None],
        hypothesis: Hypothesis,
        context: Sequence[ContextSentence],
    ) -> Translation:
        target, weights, own = self.tokenizer.target, hypothesis.weights, len(source_tokens) + 1
        text, spans = target.spell(hypothesis.tokens)
        return Translation(
            sentence,
            text,
            hypothesis.score,
            hypothesis.log_prob,
            [*self.tokenizer.source.pieces(source_tokens), END],
            target.pieces(hypothesis.tokens),
            [*source_spans, None],
            spans,
            None if weights is None else weights[:, :, :own],
            self.stepper.heads,
            context=context,
            context_weights=of_context.weights_of_context(weights, own, context),
            cut=hypothesis.cut,
        )


class _Part(NamedTuple):
    """A sentence or a part of it: its index, tokens and spans; what its search is told; the sentences before it."""

    sentence: int
    tokens: list[int]
    spans: list[Span | None]
    prefix: Prefix
    context: of_context.Tokens
    pins: Pins
    max_length: int | None = None
    penalties: Penalties | None = None


def empty(sentence: str) -> Translation:
    """The translation of a line without text: an empty line."""
    return Translation(sentence, "", 0.0, 0.0, [END], [END], [None], [None], None)
