"""The translator: returns the translations of requests in their order; batches them by length internally."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain, islice, pairwise, repeat

import torch

from nmt.attention import Pins, Slots, pins_of
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq, Source
from nmt.search import Edges, Hypothesis, Limits, Prefix, Search, SearchState, Step
from nmt.search.replayed import Replays
from nmt.system.compute import CPU, Compute
from nmt.system.errors import UserError
from nmt.system.graphs import Graphs
from nmt.system.processes import ALONE, Processes
from nmt.system.terminal import print_message
from nmt.text.canonical import shows_nothing
from nmt.text.spans import Span, words_of
from nmt.text.tokenizer import BOS, EOS, SPECIAL_PIECES, Tokenizer
from nmt.text.word_edges import word_edges
from nmt.translation import batch_sizes, forced_passes
from nmt.translation import contexts as of_context
from nmt.translation.batches import search_batches
from nmt.translation.glossary import constraints_of
from nmt.translation.named_heads import Heads
from nmt.translation.nbest import ends_of_parts, join, search_for_texts
from nmt.translation.notes import excess_of_source, excess_of_target, limits_of, noted
from nmt.translation.predictions import Look, Pair, predictions
from nmt.translation.request import Request, SourcePart
from nmt.translation.shortlist import Shortlist
from nmt.translation.stepper import Stepper, cast_once, evaluating, heads_of, no_check
from nmt.translation.types import ContextSentence, Translation, Views
from nmt.translation.views import view_all

END = SPECIAL_PIECES[EOS]
LENGTH_RATIO, EXTRA_LENGTH = 2.0, 10  # default length limit of translations, for runs that store none
#: Wraps a step function and its first state, to observe a search.
Watch = Callable[[Step, SearchState], tuple[Step, SearchState]]


@dataclass(frozen=True, eq=False)
class Translator:
    """Translates with one model or an ensemble of several that share a tokenizer.

    `dataclasses.replace` makes a translator with another search that shares the models.

    Attributes:
        models: set to evaluation mode while translating, and set back afterwards.
        tokenizer: the tokenizer of all models.
        search: greedy, beam or sampling.
        compute: the device of the models, and the type of matrix products.
        batch_sentences: sentences per batch; a maximum with `fits` on a GPU.
        fits: whether batches are reduced to the number of sentences for which a GPU has free memory.
        length_ratio, extra_length: a translation has at most ratio * source pieces + extra pieces.
        max_source_length: maximum number of source pieces; `long_lines` applies to longer lines.
        long_lines: "split" translates a long line in parts, "truncate" translates its beginning only.
        weights: whether translations have attention weights; a line of thousands of pieces has millions.
        shortlist: selects the target pieces for search; None for the whole vocabulary.
        slots: the source slots that each step may attend to, in every sentence; None for all.
        context_sentences: number of previous sentences that the models see; -1 for as many as in training.
        trained_head: the selection of heads that guided alignment has trained; None without guided alignment.
        processes: the processes that share the batches.
        check: called between the steps of a search, by any thread; an error that it raises ends the search.
        cast_models: the models in the precision of searches; made from `models` if empty.
        replays: recorded beam searches of fixed shapes on a GPU; translators with the same models share them.

    Raises:
        UserError: `slots` are invalid or the model has no attention for them, or `context_sentences` is too large.
    """

    models: Sequence[Seq2Seq]
    tokenizer: Tokenizer
    search: Search
    _: KW_ONLY
    compute: Compute = CPU
    batch_sentences: int = 64
    fits: bool = False
    length_ratio: float = LENGTH_RATIO
    extra_length: int = EXTRA_LENGTH
    max_source_length: int = 250
    long_lines: str = "split"
    weights: bool = True
    shortlist: Shortlist | None = None
    slots: Slots | None = None
    context_sentences: int = -1
    trained_head: str | None = None
    processes: Processes = ALONE
    check: Callable[[], None] = no_check
    cast_models: Sequence[Seq2Seq] = ()
    replays: Replays | None = None

    def __post_init__(self) -> None:
        for model in self.models if self.pins else ():
            model.check_attends()
        trained = max(model.context_sentences for model in self.models)
        object.__setattr__(self, "context_sentences", of_context.checked(self.context_sentences, trained))
        if not self.cast_models:
            object.__setattr__(self, "cast_models", [cast_once(model, self.compute) for model in self.models])
        if self.replays is None and self.compute.on_gpu:
            object.__setattr__(self, "replays", Replays(Graphs(True, print_message, "Searches")))

    @property
    def pins(self) -> Pins:
        """The source slots that single steps may attend to, by step."""
        return {} if self.slots is None else pins_of(self.slots)

    @property
    def stepper(self) -> Stepper:
        """The step function of the models."""
        return self._stepper(self.weights)

    def _stepper(self, weights: bool) -> Stepper:
        return Stepper(self.cast_models, weights=weights or self.search.needs_weights, check=self.check)

    @cached_property
    def heads(self) -> Heads:
        """The heads whose weights translations have; none without attention."""
        return Heads(heads_of(self.models), self.trained_head)

    @property
    def attends(self) -> bool:
        """Whether all models have attention weights."""
        return all(model.decoder.heads for model in self.models)

    def translate(self, requests: Iterable[Request | str], chunk: int = 2000) -> Iterator[list[Translation]]:
        """Yield the n-best list of each request, in order; at most `chunk` requests are in memory at a time."""
        rest = iter(requests)
        first = 1
        while lines := list(islice(rest, chunk)):
            yield from self.translate_chunk(lines, first)
            first += len(lines)

    def translate_chunk(
        self,
        requests: Sequence[Request | str],
        first_line: int = 1,
        *,
        watch: Watch | None = None,
        begins: Callable[[], None] = no_check,
        report: Callable[[str], None] | None = None,
    ) -> list[list[Translation]]:
        """Return the n-best list of each request.

        Args:
            requests: requests; a plain text is a request without settings.
            first_line: line number of the first request in the input, for messages.
            watch: wraps the step function and the first state of each search; several threads may call it at once.
            begins: called at the start of each batch's search; several threads may call it at once.
            report: called with the progress if long lines are translated in parts.

        Raises:
            UserError: the model has no pieces for a prefix, or no attention to pin.
        """
        asked = [Request(each) if isinstance(each, str) else each for each in requests]
        answers = self._remembered(asked)
        parts, notes = self._parts(asked, first_line, answers)
        order = sorted(range(len(parts)), key=lambda row: (bool(parts[row].constraints), -len(parts[row].tokens)))
        batches = batch_sizes.batches_of(self, [len(part.tokens) for part in parts], order)

        def search(batch: Sequence[SourcePart]) -> list[list[Hypothesis]]:
            begins()
            return self.search_batch(batch, watch)

        with evaluating(self.cast_models):
            nbest_by_batch = search_batches(
                [[parts[row] for row in rows] for rows in batches],
                search,
                self.processes,
                self.compute.parallel_searches,
                report if len(parts) > len(asked) else None,
            )
        nbest_lists = dict(zip(chain(*batches), chain(*nbest_by_batch), strict=True))
        ranked: list[list[list[Translation]]] = [[] for _ in asked]
        limits = limits_of(self.models)
        for row, part in enumerate(parts):
            request, nbest = asked[part.sentence], nbest_lists[row]
            notes[part.sentence].append(excess_of_target(limits, max(len(each.tokens) for each in nbest)))
            about = part.tokens, part.spans, self._seen(request.context, part.context), part.pins
            ranked[part.sentence].append([self._translation(request.text, each, *about) for each in nbest])
        return [
            noted(join(request.text, of_parts), of_parts, of_line)
            if of_parts
            else [answers.get(at) or empty(request.text)]
            for at, (request, of_parts, of_line) in enumerate(zip(asked, ranked, notes, strict=True))
        ]

    def _remembered(self, requests: Sequence[Request]) -> dict[int, Translation]:
        """Translations from translation memories by index of the request, with weights from forced decoding."""
        texts = {at: text for at, request in enumerate(requests) if (text := request.remembered) is not None}
        if not texts:
            return {}
        asked = [requests[at] for at in texts]
        contexts = [request.context for request in asked]
        forced = self.force([request.text for request in asked], [*texts.values()], contexts)
        return {at: each._replace(remembered=True) for at, each in zip(texts, forced, strict=True)}

    def _parts(
        self, requests: Sequence[Request], first_line: int, answered: Container[int]
    ) -> tuple[list[SourcePart], list[list[str]]]:
        """The parts of all requests that are neither blank nor answered, and the notes for each request."""
        parts: list[SourcePart] = []
        notes: list[list[str]] = [[] for _ in requests]
        before, limits = self._before([request.context for request in requests]), limits_of(self.models)
        reads_context = any(model.context is not None and not model.context.only_slots for model in self.models)
        for index, tokens in enumerate(self.tokenizer.source.encode([request.text for request in requests])):
            request = requests[index]
            if index in answered or shows_nothing(request.text):
                continue
            spans = self.tokenizer.source.spans(tokens, request.text)
            ends = [0, len(tokens)]
            if len(tokens) > self.max_source_length:
                words = words_of(request.text, spans)
                ends = ends_of_parts(words, self.max_source_length, cut=self.long_lines == "truncate")
                action = f"translated in {len(ends) - 1:,} parts" if self.long_lines == "split" else "cut"
                notes[index].append(
                    f"has {len(tokens):,} pieces, more than max_source_length={self.max_source_length}. It is {action}."
                )
            longest = max(end - start for start, end in pairwise(ends))
            if reads_context:
                longest += sum(len(context) + 1 for context in before[index])  # the encoder reads them with the source
            notes[index].append(excess_of_source(limits, longest))
            prefix, note = (request.begins, "") if request.begins else self._prefix(request.prefix, first_line + index)
            notes[index].append(note)
            pins = self.pins if request.pins is None else request.pins
            matches = request.glossary.find(request.text) if request.glossary is not None else ()
            of_search = before[index], pins, request.max_length
            parts.extend(
                SourcePart(
                    *(index, tokens[start:end], spans[start:end], () if start else prefix, *of_search),
                    constraints=constraints_of(matches, request.text, spans[start:end], self.tokenizer.target),
                )
                for start, end in pairwise(ends)
            )
        return parts, notes

    def _seen(self, context: Sequence[str], tokens: of_context.Tokens) -> list[ContextSentence]:
        return of_context.context_sentences(self.tokenizer, context, tokens) if tokens else []

    def _before(self, contexts: Sequence[Sequence[str]]) -> list[of_context.Tokens]:
        return of_context.encoded(self.tokenizer, contexts, self.context_sentences, self.max_source_length)

    def force(
        self, sources: Sequence[str], targets: Sequence[str], contexts: Sequence[Sequence[str]] = ()
    ) -> list[Translation]:
        """Force-decode `targets` with the first model; return one Translation with attention weights per sentence."""
        with self.compute.autocast():
            return self._force(sources, targets, forced_passes.attention, contexts)

    def saliency(
        self, sources: Sequence[str], targets: Sequence[str], contexts: Sequence[Sequence[str]] = ()
    ) -> list[Translation]:
        """Like `force`, with the saliency of source pieces as the weights of one head; see `forced_passes`."""
        # In float32: saliency depends on small differences.
        return self._force(sources, targets, forced_passes.saliency, contexts)

    def look(self, translations: Sequence[Translation]) -> list[Views | None]:
        """Force-decode translations with the first model; return the weights of every kind of attention for each.

        The views of an empty line, and of a long line that was translated in parts, are None.
        """
        with evaluating(self.models):
            return view_all(self.models[0], self.tokenizer, translations, self.compute)

    def _force(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        look: Look,
        contexts: Sequence[Sequence[str]] = (),
    ) -> list[Translation]:
        before = self._before(contexts or [()] * len(sources))
        source_tokens = self.tokenizer.source.encode(sources)
        target_tokens = self.tokenizer.target.encode(targets)
        pairs = list(map(Pair, source_tokens, target_tokens, before, repeat(self.pins)))
        results: list[Translation | None] = [None] * len(sources)
        for row, forced in predictions(self, pairs, look):
            tokens, spans = [*target_tokens[row], EOS], self.tokenizer.source.spans(source_tokens[row], sources[row])
            hypothesis = Hypothesis(tokens, forced.log_prob, forced.log_prob, forced.weights)
            sees = self._seen(contexts[row], before[row]) if contexts else []
            about = source_tokens[row], spans, sees, self.pins
            results[row] = self._translation(sources[row], hypothesis, *about)._replace(
                text=targets[row],
                heads=self.models[0].decoder.heads,
                spans=self.tokenizer.target.spans(tokens, targets[row]),
                log_probs=forced.log_probs,
                best_log_probs=list(map(max, forced.log_probs, forced.others)),
            )
        return [result for result in results if result is not None]

    def _prefix(self, text: str, line: int) -> tuple[Prefix, str]:
        """The prefix for a translation that begins with the text, and a note if the model writes another text."""
        if shows_nothing(text):
            return (), ""
        vocabulary = self.tokenizer.target
        try:
            prefix = vocabulary.beginnings(text)
        except UserError as error:
            raise UserError(f"prefix of line {line}: {error}") from error
        written = vocabulary.decode(vocabulary.encode([text])[0])
        return prefix, "" if written == text else f"has the prefix '{text}', which the model writes as '{written}'."

    def search_batch(self, parts: Sequence[SourcePart], watch: Watch | None = None) -> list[list[Hypothesis]]:
        """Search a batch; return the n-best list of each part. Models must be in evaluation mode. Thread-safe.

        If the memory of a GPU is full, the halves of the batch are searched one after the other.
        """
        try:
            return search_for_texts(
                lambda parts, shows: self._search(parts, None if shows else watch, shows),
                *(parts, self.search, self.tokenizer.target),
            )
        except torch.OutOfMemoryError:
            if len(parts) == 1:
                raise
        torch.cuda.empty_cache()
        halves = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        return [nbest for half in halves for nbest in self.search_batch(half, watch)]

    def _search(
        self, parts: Sequence[SourcePart], watch: Watch | None, shows: Sequence[bytes]
    ) -> list[list[Hypothesis]]:
        """The n-best list of each part; if `shows` has the bytes of each token, with one hypothesis per text."""
        sources, prefixes = [part.tokens for part in parts], [part.prefix for part in parts]
        room = batch_sizes.room_for(self, parts) if watch is None and not shows else None
        # Plain kernels if one of the models is not `fast`.
        kernels = min(self.models, key=lambda model: model.fast).kernels()
        with torch.inference_mode(), self.compute.autocast(), kernels:
            batch = batch_sizes.padded_batch(sources, room)
            batch = batch._replace(context=context_tensor([part.context for part in parts])).to(self.compute.device)
            lengths = [part.longest(self.length_ratio, self.extra_length) for part in parts]
            most = torch.tensor([*lengths, *[1] * (len(batch.source) - len(lengths))], device=self.compute.device)
            few, forbidden = self.compute.compiles_shapes, self.tokenizer.target.forbidden
            limits = Limits(BOS, EOS, forbidden, most, batch.source_mask, prefixes, few, sources, shows)
            constraints = [part.constraints for part in parts]
            if constrained := any(constraints):
                edges, heads = Edges(*word_edges(self.tokenizer.target)), self.heads.select(self.heads.default)
                limits = limits._replace(constraints=constraints, edges=edges, heads=heads)
            shortlist = self.shortlist
            candidates = None if shortlist is None else shortlist.candidates(batch.source, prefixes, constraints)
            if candidates is not None:
                limits = candidates.limits(limits)
            stepper = self._stepper(self.weights or constrained)
            steps = None if room is None else room.steps
            state = stepper.start(Source.of(batch, [part.pins for part in parts]), candidates, steps)
            step, first = (stepper, state) if watch is None else watch(stepper, state)
            if room is not None and self.replays is not None:
                nbest_lists = self.replays(self.search, stepper, first, limits, room, max(lengths))[: len(parts)]
            else:
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
        if self.weights or not (self.search.needs_weights or constrained):
            return nbest_lists
        return [[hypothesis._replace(weights=None) for hypothesis in nbest] for nbest in nbest_lists]

    def _translation(
        self,
        sentence: str,
        hypothesis: Hypothesis,
        source_tokens: list[int],
        source_spans: list[Span | None],
        context: Sequence[ContextSentence],
        pins: Pins,
    ) -> Translation:
        target, weights, slots = self.tokenizer.target, hypothesis.weights, len(source_tokens) + 1
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
            None if weights is None else weights[:, :, :slots],
            self.heads.names,
            context=context,
            context_weights=of_context.weights_of_context(weights, slots, context),
            cut=hypothesis.cut,
            pins=pins,
        )


def empty(sentence: str) -> Translation:
    """The translation of a line without text."""
    return Translation(sentence, "", 0.0, 0.0, [END], [END], [None], [None], None)
