"""Strings to token ids and back; with `train.py`, the only file that knows SentencePiece.

A `Vocabulary` is the SentencePiece model of one side, a `Tokenizer` the pair of them.
"""

import codecs
import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece

from nmt.errors import UserError
from nmt.files import write_bytes
from nmt.text.sampling import MergeSampler, Sampler, Spelling, UnigramSampler
from nmt.text.spans import Span, words_of

#: The first four ids of every vocabulary.
PAD, UNK, BOS, EOS = 0, 1, 2, 3
#: How the four are written in `pieces`.
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")

#: SentencePiece writes the space as U+2581. This character in a text would be decoded as a space, so it is replaced by
#: a noncharacter, which Unicode excludes from text.
SPACE = "\u2581"
_LITERAL = "\ufdd0"


def protect(sentence: str) -> str:
    """The sentence for SentencePiece, with U+2581 replaced: see `SPACE`."""
    return sentence.replace(SPACE, _LITERAL) if SPACE in sentence else sentence


class Vocabulary:
    """One SentencePiece model.

    Args:
        model: the serialised model, with the ids PAD, UNK, BOS, EOS (`train.py` trains and converts models).
        name: of the model in error messages.

    Raises:
        UserError: `model` is not a SentencePiece model, or has other special ids.
    """

    def __init__(self, model: bytes, name: str = "The SentencePiece model") -> None:
        try:
            if not model:
                raise RuntimeError("empty")
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise UserError(f"{name} is not a SentencePiece model, or is damaged.") from error
        ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if ids != (PAD, UNK, BOS, EOS):
            raise UserError(
                f"{name} numbers <pad> <unk> <s> </s> as {ids}, but they must be {(PAD, UNK, BOS, EOS)}. "
                "Give the model as tokenizer.model=FILE in training, which renumbers it."
            )
        self.model = model
        self._processor = processor
        self.size: int = processor.get_piece_size()
        self._pieces: list[str] = [processor.id_to_piece(token) for token in range(self.size)]
        self._bytes = [
            int(piece[3:-1], 16) if processor.is_byte(token) else None for token, piece in enumerate(self._pieces)
        ]
        # What the other tokens say: nothing for the specials, a mark for unknown text, else the piece itself.
        self._texts = [
            f"{SPACE}\u2047{SPACE}"
            if processor.is_unknown(token)
            else ""
            if processor.is_control(token) or processor.is_unused(token)
            else piece
            for token, piece in enumerate(self._pieces)
        ]
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
        """sha256 of the serialised model."""
        return hashlib.sha256(self.model).hexdigest()

    @property
    def can_sample(self) -> bool:
        """Whether a word can be cut in more than one way (unigram and BPE; not char, not word)."""
        return self._sampler is not None

    @cached_property
    def _sampler(self) -> Sampler | None:
        # Loaded here only: needs protobuf, and only training with subword sampling comes by.
        import sentencepiece.sentencepiece_model_pb2 as generated

        messages: Any = generated  # it has no type information
        kind = messages.ModelProto.FromString(self.model).trainer_spec.model_type
        samplers = {messages.TrainerSpec.UNIGRAM: UnigramSampler, messages.TrainerSpec.BPE: MergeSampler}
        if kind not in samplers:
            return None
        pieces = {
            piece: (token, self._processor.get_score(token))
            for token, piece in enumerate(self._pieces)
            if self._texts[token] == piece and self._bytes[token] is None
        }
        byte_ids = {byte: token for token, byte in enumerate(self._bytes) if byte is not None}
        return samplers[kind](pieces, Spelling(byte_ids, UNK), SPACE)

    def encode(self, sentences: Sequence[str], threads: int = 1) -> list[list[int]]:
        """The token ids of each sentence, without BOS and EOS; the same whatever `threads` is."""
        lines = [protect(sentence) for sentence in sentences]
        encoded: list[list[int]] = self._processor.encode(lines, num_threads=max(1, threads))
        return encoded

    def sample(self, sentences: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
        """Subword regularisation: `encode` that cuts at random, the same for the same arguments.

        Unigram models draw from all segmentations with probability p(x)^alpha (Kudo 2018): the smaller
        `alpha`, the more varied; 0.2 to 0.5 is usual.  BPE models drop each merge with probability `alpha`
        (Provilkov et al. 2020): the larger, the more varied; 0.1 is usual.  0 turns it off, and character and
        word models have but one segmentation.
        """
        if alpha <= 0 or self._sampler is None:
            return self.encode(sentences)
        lines: list[str] = self._processor.normalize([protect(sentence) for sentence in sentences])
        return self._sampler.sample(lines, alpha, seed)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, one line: no line feed is in it, whatever the tokens; specials say nothing.

        `decode(encode([x])[0]) == x` for every line of text under identity normalisation with byte fallback.
        """
        return self.spell(tokens)[0]

    def beginnings(self, prefix: str) -> list[dict[int, int]]:
        """What texts that begin with `prefix` may begin with: state -> {token: next state}.

        State n follows the first n tokens of `encode(prefix)`. There the next one may come, or any token that shows
        the rest of the prefix and more, which leads beyond the last state; so a prefix may end within a token.

        Raises:
            UserError: the model has no pieces for the prefix.
        """
        (tokens,) = self.encode([prefix])
        if not set(tokens).isdisjoint(self.forbidden):
            raise UserError(
                f"'{prefix}' cannot begin a translation: the model has no pieces for some of its characters."
            )
        states = [{token: state + 1} for state, token in enumerate(tokens)]
        text = self._processor.normalize(protect(prefix))
        begins = [begin for begin, _ in self._spell(tokens)[1]]
        for state in reversed(range(len(tokens))):
            rest = text[begins[state] :]
            if len(rest) > self._longest:
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
        """What each token shows that is no byte and may be produced, sorted, with the token."""
        hidden = {EOS, *self.forbidden}
        return sorted(
            (text, token)
            for token, text in enumerate(self._texts)
            if token not in hidden and self._bytes[token] is None
        )

    @cached_property
    def _longest(self) -> int:
        return max((len(text) for text, _ in self._sorted), default=0)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """The subword string of each token; U+2581 marks the start of a word, <0x41> a byte."""
        return [self._pieces[token] for token in tokens]

    def words(self, tokens: Sequence[int]) -> list[int]:
        """For each token the index in `decode(tokens).split()` of the word it belongs to; see `spans.words_of`."""
        return words_of(*self.spell(tokens))

    def spell(self, tokens: Sequence[int]) -> tuple[str, list[Span | None]]:
        """`decode(tokens)`, and the characters of it that each token shows; None for specials.

        The bytes of a character share it. White space around what a token shows is not part of its span: a lone
        U+2581 is empty, after its space.
        """
        text, places = self._spell(tokens)
        offset = text.startswith(" ")
        shown = text[offset:]
        spans = [_trimmed(shown, max(begin - offset, 0), max(end - offset, 0)) for begin, end in places]
        return shown, self._of_text(tokens, spans)

    def spans(self, tokens: Sequence[int], sentence: str) -> list[Span | None]:
        """As `spell`, the characters of the `sentence` that `tokens`, or these and more, are the encoding of.

        Where the model normalises, pieces that come from one character share it.
        """
        text, shown = self.spell(tokens)
        if sentence.startswith(text) and UNK not in tokens:
            return shown
        text, places = self._spell(tokens)
        normal, offsets = self._processor.normalize(protect(sentence), with_offsets=True)
        if UNK in tokens:
            places = _around_unknown(tokens, text, places, _readable(normal))
        spans = []
        for begin, end in places:
            # Of several characters that come from one, all but the last have no length.
            while begin < end < len(normal) and offsets[end] == offsets[begin]:
                end += 1
            spans.append(_trimmed(sentence, offsets[begin], offsets[end]))
        return self._of_text(tokens, spans)

    def _of_text(self, tokens: Sequence[int], spans: Sequence[Span]) -> list[Span | None]:
        return [span if self._texts[token] else None for token, span in zip(tokens, spans, strict=True)]

    def _spell(self, tokens: Sequence[int]) -> tuple[str, list[Span]]:
        """The text, with the space that SentencePiece puts before it, and each token's [begin, end) there.

        The bytes of a character share its place.
        """
        parts: list[str] = []
        spans: list[Span] = []
        length = 0
        index, count = 0, len(tokens)
        while index < count:
            if self._bytes[tokens[index]] is None:
                part = self._texts[tokens[index]]
                spans.append((length, length + len(part)))
                index += 1
            else:
                run = []
                while index < count and (byte := self._bytes[tokens[index]]) is not None:
                    run.append(byte)
                    index += 1
                part, owners = _characters(run)
                spans.extend((length + owner, length + owner + 1) for owner in owners)
            parts.append(part)
            length += len(part)
        return _readable("".join(parts)), spans


def _readable(text: str) -> str:
    """What SentencePiece has written, as people write it, in one line."""
    return text.replace(SPACE, " ").replace(_LITERAL, SPACE).replace("\n", " ")


def _trimmed(text: str, begin: int, end: int) -> Span:
    """The span without the white space at its ends."""
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


def _around_unknown(tokens: Sequence[int], text: str, places: Sequence[Span], normal: str) -> list[Span]:
    """The places in the normalised sentence, where unknown tokens are as long as what lies between the known ones."""
    unknown = [at for at, token in enumerate(tokens) if token == UNK]
    moved: list[Span] = []
    offset = 0
    for at, (begin, end) in enumerate(places):
        if tokens[at] != UNK:
            moved.append((begin + offset, end + offset))
            continue
        after = next((places[other][0] for other in unknown if other > at), len(text))
        known = text[end:after]
        stop = normal.find(known, begin + offset + 1) if known else -1
        if stop < 0:
            stop = len(normal) if at == unknown[-1] else begin + offset + 1
        moved.append((begin + offset, stop))
        offset = stop - end
    return [(min(begin, len(normal)), min(end, len(normal))) for begin, end in moved]


def _characters(run: list[int]) -> tuple[str, list[int]]:
    """The text that the bytes of `run` spell (U+FFFD where it is not UTF-8), and each byte's character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = ""
    owners: list[int] = []
    for byte in run:
        text += decoder.decode(bytes([byte]))
        pending = bool(decoder.getstate()[0])
        owners.append(len(text) if pending else len(text) - 1)
    return text + decoder.decode(b"", final=True), owners


class Tokenizer(NamedTuple):
    """The vocabularies of both sides; `joint` where they are one and the same model."""

    source: Vocabulary
    target: Vocabulary
    joint: bool

    @property
    def fingerprint(self) -> str:
        """Changes when either model does."""
        return f"{self.source.fingerprint}-{self.target.fingerprint}"

    def save(self, folder: Path) -> None:
        """Write tokenizer.model, or source.model and target.model, into `folder` (or raises UserError)."""
        if self.joint:
            write_bytes(folder / "tokenizer.model", self.source.model)
        else:
            write_bytes(folder / "source.model", self.source.model)
            write_bytes(folder / "target.model", self.target.model)

    @staticmethod
    def load(folder: Path) -> "Tokenizer":
        """Read back what `save` wrote; see `load_tokenizer`."""
        return load_tokenizer(folder)


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
    """Read one model with this project's special ids (UserError if it is missing, damaged or another)."""
    return Vocabulary(read_model(path), str(path))


def read_model(path: Path) -> bytes:
    """The bytes of a model file (UserError if it cannot be read)."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"Cannot read the tokenizer model {path}: {error.strerror}.") from error
