"""Strings to token ids and back. Besides `tokenizer_trainer.py`, only this module uses SentencePiece.

A `Vocabulary` is the SentencePiece model of one side; a `Tokenizer` is the pair of both sides.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from nmt.system.errors import UserError
from nmt.system.files import write_bytes
from nmt.system.integrity import check
from nmt.text.canonical import canonical, in_original
from nmt.text.piece_text import around_unknown, characters
from nmt.text.regularisation import MergeSampler, Sampler, Spelling, UnigramSampler
from nmt.text.spans import Span, words_of

#: The first four ids of every vocabulary.
PAD, UNK, BOS, EOS = 0, 1, 2, 3
#: How the four are written in `pieces`.
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")

#: SentencePiece writes the space as U+2581. This character in a text would be decoded as a space, so it is replaced by
#: a noncharacter, which Unicode excludes from text.
SPACE = "\u2581"
_LITERAL = "\ufdd0"

#: Appended to the model of a tokenizer that reads canonical text: a protobuf field that SentencePiece ignores.
CANONICAL = b"\xc2\x3e\x09canonical"


def protect(sentence: str) -> str:
    """Replace U+2581 in a sentence for SentencePiece; see `SPACE`."""
    return sentence.replace(SPACE, _LITERAL) if SPACE in sentence else sentence


class Vocabulary:
    """One SentencePiece model.

    Args:
        model: the serialised model, with the ids PAD, UNK, BOS, EOS (see `tokenizer_trainer.py`).
        name: name of the model in error messages.

    Raises:
        UserError: `model` is not a SentencePiece model, or has other special ids.
    """

    def __init__(self, model: bytes, name: str = "The SentencePiece model") -> None:
        try:
            if not model:
                raise RuntimeError("empty")
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._pieces: list[str] = [processor.id_to_piece(token) for token in range(processor.get_piece_size())]
        except (RuntimeError, UnicodeDecodeError) as error:
            raise UserError(f"{name} is not a SentencePiece model, or is damaged.") from error
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise UserError(
                f"{name} numbers <pad> <unk> <s> </s> as {ids}, but they must be {(PAD, UNK, BOS, EOS)}. "
                "Give the model as tokenizer.model=FILE in training, which renumbers it."
            )
        self.model = model
        self.canonical = model.endswith(CANONICAL)
        self._processor = processor
        self.size = len(self._pieces)
        # The byte of each token; -1 for tokens that are not bytes.
        self._bytes = np.array(
            [int(piece[3:-1], 16) if processor.is_byte(token) else -1 for token, piece in enumerate(self._pieces)]
        )
        # The text of each token: empty for specials, a mark for the unknown token, otherwise the piece itself.
        self._texts = [
            "" if processor.is_control(token) or processor.is_unused(token) else piece
            for token, piece in enumerate(self._pieces)
        ]
        self._texts[UNK] = f"{SPACE}\u2047{SPACE}"
        self.forbidden: tuple[int, ...] = tuple(
            token
            for token, piece in enumerate(self._pieces)
            if (self._texts[token] == "" and token != EOS)
            or token == UNK
            or self._bytes[token] in (0x0A, 0x0D)
            or "\n" in piece
            or "\r" in piece
        )

    def __reduce__(self) -> tuple[type["Vocabulary"], tuple[bytes]]:
        return Vocabulary, (self.model,)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the serialised model."""
        return hashlib.sha256(self.model).hexdigest()

    @cached_property
    def folds_case(self) -> bool:
        """Whether decoded text is always in lower case (`tokenizer.normalization=nmt_nfkc_cf`)."""
        return "A" not in str(self._processor.normalize("A"))

    @property
    def can_sample(self) -> bool:
        """Whether a word can have more than one segmentation (unigram and BPE; not char or word)."""
        return self._sampler is not None

    @cached_property
    def _sampler(self) -> Sampler | None:
        # Imported here, since it needs protobuf, and only training with subword sampling uses it.
        import sentencepiece.sentencepiece_model_pb2 as generated

        messages: Any = generated  # it has no type information
        proto = messages.ModelProto.FromString(self.model)
        kind, user_defined = proto.trainer_spec.model_type, messages.ModelProto.SentencePiece.USER_DEFINED
        samplers = {messages.TrainerSpec.UNIGRAM: UnigramSampler, messages.TrainerSpec.BPE: MergeSampler}
        if kind not in samplers:
            return None
        pieces = {
            piece: (token, self._processor.get_score(token))
            for token, piece in enumerate(self._pieces)
            if self._texts[token] == piece and self._bytes[token] < 0
        }
        byte_ids = {byte: token for token, byte in enumerate(self._bytes.tolist()) if byte >= 0}
        symbols = [each.piece for each in proto.pieces if each.type == user_defined]
        return samplers[kind](pieces, Spelling(byte_ids, UNK), SPACE, symbols)

    def plain(self, sentence: str) -> str:
        """The sentence as the model reads and writes it: canonical if the model is marked so."""
        return canonical(sentence) if self.canonical else sentence

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The token ids of each sentence, without BOS and EOS; the same whatever `threads` is."""
        lines = [protect(self.plain(sentence)) for sentence in sentences]
        if threads <= 1:  # encoding a list starts a thread, which takes longer than encoding a hundred short lines
            return list(map(self._processor.encode, lines))
        encoded: list[list[int]] = self._processor.encode(lines, num_threads=threads)
        return encoded

    def unknown(self, sentences: Sequence[str]) -> Iterator[list[str]]:
        """Yield the distinct parts of each sentence without a piece: characters spelt as bytes, and unknown words."""
        for sentence, tokens in zip(sentences, self.encode(sentences), strict=True):
            at = [number for number, token in enumerate(tokens) if token == UNK or self._bytes[token] >= 0]
            spans = self.spans(tokens, sentence) if at else []
            texts = (sentence[slice(*span)] for number in at if (span := spans[number]))
            yield list(dict.fromkeys(filter(None, texts)))

    def sample(self, sentences: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """Subword regularisation: encode with random segmentations, the same for the same arguments.

        Unigram models draw from all segmentations in proportion to p(x)^alpha (Kudo 2018): the smaller `alpha`, the
        more varied; 0.2 to 0.5 is usual. BPE models drop each merge with probability `alpha` (Provilkov et al. 2020):
        the larger, the more varied; 0.1 is usual. 0 turns it off; character and word models have one segmentation.
        """
        if alpha <= 0 or self._sampler is None:
            return self.encode(sentences)
        lines: list[str] = self._processor.normalize([protect(self.plain(line)) for line in sentences])
        return self._sampler.sample(lines, alpha, seed)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, without line feeds for any tokens; specials have no text.

        `decode(encode([x])[0]) == plain(x)` for every line of text under identity normalisation with byte fallback.
        """
        return self._spell(tokens)[0].removeprefix(" ")

    def beginnings(self, prefix: str) -> list[dict[int, int]]:
        """The tokens with which a text may begin that has the prefix `prefix`: state -> {token: next state}.

        State n follows the first n tokens of `encode(prefix)`. It allows the next of these tokens, or any token whose
        text begins with the rest of the prefix and leads beyond the last state: a prefix may end within a token.

        Raises:
            UserError: the model has no pieces for the prefix.
        """
        prefix = self.plain(prefix)
        (tokens,) = self.encode([prefix])
        if not set(tokens).isdisjoint(self.forbidden):
            raise UserError(
                f"'{prefix}' cannot begin a translation: the model has no pieces for some of its characters."
            )
        states = [{token: state + 1} for state, token in enumerate(tokens)]
        text = self._processor.normalize(protect(prefix))
        begins = self._spell(tokens)[1]
        for state in reversed(range(len(tokens))):
            rest = text[begins[state] :]
            if len(rest) > self.longest:
                break
            if state and begins[state] == begins[state - 1]:  # within the bytes of a character
                continue
            for piece, token in self._sorted[bisect_left(self._sorted, (rest, 0)) :]:
                if not piece.startswith(rest):
                    break
                states[state].setdefault(token, len(tokens))
        return states

    @cached_property
    def _sorted(self) -> list[tuple[str, int]]:
        """The sorted texts of all tokens that may be produced and are not bytes, each with its token."""
        hidden = {EOS, *self.forbidden}
        return sorted(
            (text, token) for token, text in enumerate(self._texts) if token not in hidden and self._bytes[token] < 0
        )

    @cached_property
    def longest(self) -> int:
        """The number of characters of the longest piece."""
        return max((len(text) for text, _ in self._sorted), default=0)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The subword string of each token; U+2581 marks the start of a word, <0x41> a byte."""
        return [self._pieces[token] for token in tokens]

    def ids(self, pieces: Sequence[str]) -> list[int]:
        """The token of each subword string: the inverse of `pieces`."""
        return [self._ids[piece] for piece in pieces]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {piece: token for token, piece in enumerate(self._pieces)}

    def words(self, tokens: Sequence[int]) -> list[int]:
        """For each token the index in `decode(tokens).split()` of the word it belongs to; see `spans.words_of`."""
        return words_of(*self.spell(tokens))

    def spell(self, tokens: Sequence[int]) -> tuple[str, list[Span | None]]:
        """`decode(tokens)`, and the span of each token in this text; None for specials.

        The bytes of a character share its span. White space at the ends of a token is not part of its span: a lone
        U+2581 has an empty span after its space.
        """
        text, begins, ends = self._spell(tokens)
        sentence = text.removeprefix(" ")
        return sentence, self._placed(tokens, sentence, begins, ends, len(text) - len(sentence))

    def spans(self, tokens: Sequence[int], sentence: str) -> list[Span | None]:
        """The span of each token in `sentence`, as in `spell`; `tokens` are its encoding, or the beginning of it.

        If the model normalises text, pieces that come from one character share its span.
        """
        plain = self.plain(sentence)
        if plain != sentence:
            return in_original(self.spans(tokens, plain), sentence)
        text, begins, ends = self._spell(tokens)
        offset = text.startswith(" ")
        if sentence.startswith(text[offset:]) and UNK not in tokens:
            return self._placed(tokens, sentence, begins, ends, offset)
        normal, offsets_of_normal = self._processor.normalize(protect(sentence), with_offsets=True)
        if unknown := [number for number, token in enumerate(tokens) if token == UNK]:
            begins, ends = around_unknown(unknown, text, begins, ends, _readable(normal))
        offsets, first, last = np.array(offsets_of_normal), np.array(begins, np.intp), np.array(ends, np.intp)
        # If normalisation makes several characters of one, all but the last have equal offsets at both ends.
        shared = (first < last) & (last < len(normal)) & (offsets[last] == offsets[first])
        last = np.where(shared, np.searchsorted(offsets[: len(normal)], offsets[first], side="right"), last)
        return self._trimmed(tokens, sentence, offsets[first].tolist(), offsets[last].tolist())

    def _placed(
        self, tokens: Sequence[int], text: str, begins: Sequence[int], ends: Sequence[int], offset: int
    ) -> list[Span | None]:
        """A faster `_trimmed` for a `text` that the tokens spell themselves, if each begins with at most one space."""
        leads = [self._leads[token] for token in tokens]
        if None in leads:
            return self._trimmed(tokens, text, begins, ends, offset)
        places = zip(leads, begins, ends, strict=True)
        return [
            None if lead is None or lead < 0 else (begin + lead - offset, end - offset) for lead, begin, end in places
        ]

    def _trimmed(
        self, tokens: Sequence[int], text: str, begins: Sequence[int], ends: Sequence[int], offset: int = 0
    ) -> list[Span | None]:
        """The spans of tokens in `text`, without the white space at their ends; None for specials.

        `begins` and `ends` count from `offset` characters before the text.
        """
        spans: list[Span | None] = []
        for token, begin, end in zip(tokens, begins, ends, strict=True):
            if not self._texts[token]:
                spans.append(None)
                continue
            end = max(end - offset, 0)
            begin = min(max(begin - offset, 0), end)
            part = text[begin:end]
            begin += len(part) - len(part.lstrip())
            spans.append((begin, begin + len(part.strip())))
        return spans

    def _spell(self, tokens: Sequence[int]) -> tuple[str, list[int], list[int]]:
        """The text, with SentencePiece's space at the beginning, and the begin and the end of each token in it.

        The bytes of a character share its place.
        """
        parts = [self._texts_without_bytes[token] for token in tokens]
        places: list[int] = []
        if not self._are_bytes.isdisjoint(tokens):
            places = [place for place, token in enumerate(tokens) if token in self._are_bytes]
            values = self._bytes[[tokens[place] for place in places]]
            symbols, first = characters(values, np.diff(places, prepend=-2) > 1)
            for place, character in zip(np.array(places)[first].tolist(), symbols, strict=True):
                parts[place] = character
        ends = list(accumulate(map(len, parts)))
        begins = [end - len(part) for end, part in zip(ends, parts, strict=True)]
        for place in places:
            begins[place] = ends[place] - 1
        return _readable("".join(parts)), begins, ends

    @cached_property
    def shows(self) -> list[bytes]:
        """The bytes, in UTF-8, that each token adds to a text."""
        texts = zip(self._texts, self._bytes.tolist(), strict=True)
        return [text.replace(SPACE, " ").encode() if byte < 0 else bytes([byte]) for text, byte in texts]

    @cached_property
    def _texts_without_bytes(self) -> list[str]:
        """The text of each token; "" for bytes, which only together make a character."""
        return [text if byte < 0 else "" for text, byte in zip(self._texts, self._bytes.tolist(), strict=True)]

    @cached_property
    def _leads(self) -> list[int | None]:
        """The number of leading spaces of each token; -1 without text, None for bytes and tokens with other spaces."""

        def lead(token: int, text: str) -> int | None:
            if not self._texts[token]:
                return -1
            return text.startswith(" ") if text and "".join(text.split()) == text.removeprefix(" ") else None

        return [lead(token, text.replace(SPACE, " ")) for token, text in enumerate(self._texts_without_bytes)]

    @cached_property
    def _are_bytes(self) -> frozenset[int]:
        return frozenset(np.flatnonzero(self._bytes >= 0).tolist())


def _readable(text: str) -> str:
    """Replace the marks of SentencePiece by ordinary characters, and line feeds by spaces."""
    return text.replace(SPACE, " ").replace(_LITERAL, SPACE).replace("\n", " ")


class Tokenizer(NamedTuple):
    """The vocabularies of both sides; `joint` if both are the same model."""

    source: Vocabulary
    target: Vocabulary
    joint: bool

    @property
    def fingerprint(self) -> str:
        """The fingerprints of both models."""
        return f"{self.source.fingerprint}-{self.target.fingerprint}"

    def save(self, folder: Path) -> None:
        """Write tokenizer.model, or source.model and target.model, into `folder` (UserError if that fails)."""
        if self.joint:
            write_bytes(folder / "tokenizer.model", self.source.model)
        else:
            write_bytes(folder / "source.model", self.source.model)
            write_bytes(folder / "target.model", self.target.model)


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer that `Tokenizer.save` wrote into `folder`.

    Raises:
        UserError: a file is missing or damaged.
    """
    joint, sides = folder / "tokenizer.model", (folder / "source.model", folder / "target.model")
    if joint.is_file():
        vocabulary = load_vocabulary(joint)
        return Tokenizer(vocabulary, vocabulary, joint=True)
    if not any(path.is_file() for path in sides):
        raise UserError(f"{joint} is missing: the run is incomplete. Restore it from an intact copy, or train again.")
    return Tokenizer(load_vocabulary(sides[0]), load_vocabulary(sides[1]), joint=False)


def load_vocabulary(path: Path) -> Vocabulary:
    """Read a model with this project's special ids (UserError if it is missing, damaged or has other ids)."""
    return Vocabulary(read_model(path), str(path))


def read_model(path: Path) -> bytes:
    """The bytes of a model file (UserError if it cannot be read, or if a run's checksum shows that it is damaged)."""
    check(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"Cannot read the tokenizer model {path}: {error.strerror}.") from error
