"""Trains the tokenizer of a run on its training text, or uses an existing SentencePiece model.

This happens once, before anything is tokenised. The run folder stores the result.
"""

import io
import itertools
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import sentencepiece

from nmt.system.errors import SettingError, UserError
from nmt.system.limits import between, one_of
from nmt.text.canonical import canonical, shows_nothing
from nmt.text.scripts import lengths
from nmt.text.tokenizer import (
    BOS,
    CANONICAL,
    EOS,
    PAD,
    SPECIAL_PIECES,
    UNK,
    Tokenizer,
    Vocabulary,
    protect,
    read_model,
)

MODEL_TYPES = ("unigram", "bpe", "char", "word")
NORMALIZATIONS = ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf")

#: Sums in unigram training depend in their last digits on the number of threads: a fixed number gives the same model
#: for the same text on every machine.
_THREADS = 2
#: Bytes; SentencePiece ignores longer sentences in training.
_LONGEST = 1 << 16
_SAMPLED = "a sample (tokenizer.sample_sentences, tokenizer.sample_characters) of"
#: The 4 specials, the 256 bytes, and a few pieces; SentencePiece gives no usable message for a smaller size.
_SMALLEST = 264


@dataclass
class TokenizerTrainer:
    """Trains SentencePiece on the training text.

    Args:
        model_type: "unigram" (Kudo 2018), "bpe" (Sennrich et al. 2016), "char" or "word".
        vocabulary_size: pieces per model, including the 4 specials and the 256 bytes; increased if the characters of
            the text need more pieces, reduced if the text has too few.
        joint: one model for both languages instead of one per side.
        canonical: read canonically equivalent text as equal, without invisible characters (`nmt.text.canonical`).
        normalization: SentencePiece's normalisation of text before segmentation; "identity" leaves it unchanged.
        character_coverage: share of the text's characters that get pieces; bytes spell the others.
        sample_sentences: maximum number of sentences per side to train on; more are sampled with a fixed seed.
        sample_characters: approximate maximum of characters per side; training takes some 25 bytes each.
        split_digits: make every digit a piece (unigram and BPE), so that unseen numbers are copied too.
        sampling: subword sampling while the translator trains (see `Vocabulary.sample`); 0 for none.
        model: an existing model file for both sides, or a list of two, source and target, instead of training.

    Raises:
        UserError: a setting is unknown or out of range.
    """

    model_type: Annotated[str, one_of(*MODEL_TYPES)] = "unigram"
    vocabulary_size: Annotated[int, between(1, 1_000_000)] = 4000
    joint: bool = True
    canonical: bool = True
    normalization: Annotated[str, one_of(*NORMALIZATIONS)] = "identity"
    character_coverage: Annotated[float, between(0.98, 1)] = 1.0
    sample_sentences: Annotated[int, between(1, 10**9)] = 250_000
    sample_characters: Annotated[int, between(1, 10**11)] = 4_000_000
    split_digits: bool = True
    sampling: Annotated[float, between(0, 10)] = 0.0
    model: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.model_type == "bpe" and self.sampling > 1:
            raise SettingError("sampling", self.sampling, "must be from 0 to 1: it is a probability for bpe.")
        if self.sampling and self.model is None and self.model_type in ("char", "word"):
            raise UserError(
                f"tokenizer.sampling={self.sampling} is not available: {self.model_type} pieces have one segmentation "
                "only. Use tokenizer=unigram or tokenizer=bpe, or set tokenizer.sampling=0."
            )
        self.models = [self.model] if isinstance(self.model, str) else list(map(str, self.model or ()))
        if len(self.models) > 2:
            raise UserError("tokenizer.model takes one file for both sides, or a list of two (source, target).")

    @property
    def identity(self) -> str:
        """The settings and the version of SentencePiece: with the same text, they give the same model."""
        return json.dumps([sentencepiece.__version__, _THREADS, _LONGEST, vars(self)], sort_keys=True)

    def train(self, source: Sequence[str], target: Sequence[str]) -> tuple[Tokenizer, list[str]]:
        """Train the tokenizer; returns it with notes for the user on its size and adjustments.

        The same sentences and settings give the same model, byte by byte.

        Raises:
            UserError: there is no text, SentencePiece rejects it, or an existing model cannot be read.
        """
        if self.models:
            return self._existing()
        if self.joint:
            (ours, count), (theirs, others) = self._sample(source), self._sample(target)
            vocabulary, notes = self._fit(ours + theirs, "one joint vocabulary", count + others)
            return Tokenizer(vocabulary, vocabulary, joint=True), notes
        lines, count = self._sample(source)
        first, source_notes = self._fit(lines, "source vocabulary", count)
        lines, count = self._sample(target)
        second, target_notes = self._fit(lines, "target vocabulary", count)
        return Tokenizer(first, second, joint=False), source_notes + target_notes

    def _existing(self) -> tuple[Tokenizer, list[str]]:
        """Read the models in the files of `model`; also returns notes for the user."""
        vocabularies, notes = list[Vocabulary](), list[str]()
        for path in self.models:
            vocabulary = Vocabulary(self._marked(renumber(read_model(Path(path).expanduser()), path)), path)
            if self.sampling and not vocabulary.can_sample:
                raise UserError(f"{path} has only one segmentation of each text: set tokenizer.sampling=0.")
            vocabularies.append(vocabulary)
            notes.append(f"Tokenizer: {vocabulary.size:,} pieces from {path}.")
        return Tokenizer(vocabularies[0], vocabularies[-1], joint=len(vocabularies) == 1), notes

    def _sample(self, sentences: Sequence[str]) -> tuple[list[str], int]:
        """The largest allowed sample of the sentences with text, in order, and the number of sentences with text."""
        count = characters = 0
        for line in sentences:
            if not shows_nothing(line):
                count, characters = count + 1, characters + len(line)
        size = min(self.sample_sentences, max(1, self.sample_characters * count // max(1, characters)))
        rows: Iterable[int] = range(count)
        if count > size:
            rows = sorted(random.Random(0).sample(range(count), size))
        # The sentences are read twice, since they may not fit into memory.
        lines = (line for line in sentences if not shows_nothing(line))
        sample, at = [], 0
        for row in rows:
            line = next(itertools.islice(lines, row - at, None))
            sample.append(protect(canonical(line) if self.canonical else line))
            at = row + 1
        return sample, count

    def _fit(self, sentences: list[str], what: str, of: int) -> tuple[Vocabulary, list[str]]:
        """Train a model, with its size adjusted to the text; `sentences` are a sample of `of` sentences."""
        if not sentences:
            raise UserError("The training text is empty: a vocabulary needs text.")
        wanted = self.vocabulary_size
        size = max(wanted, _SMALLEST)
        while True:
            try:
                vocabulary = Vocabulary(self._run(sentences, size))
                break
            except RuntimeError as error:
                allowed = _allowed_size(str(error), size)
                if allowed is None or allowed == size:
                    # Without its source file and line.
                    reason = re.sub(r"^\w+: \S+\(\d+\) ", "", str(error)).strip() or "no reason given"
                    raise UserError(
                        f"SentencePiece cannot train a {self.model_type} vocabulary on this text "
                        f"({reason}). Check the text, or try tokenizer=unigram|bpe|char|word."
                    ) from error
                size = allowed
        notes = [
            f"Tokenizer: {what} of {vocabulary.size:,} {self.model_type} pieces from {len(sentences):,} sentences"
            f"{f', {_SAMPLED} {of:,}' if of > len(sentences) else ''}."
        ]
        if vocabulary.size < wanted and self.model_type != "char":
            notes.append(
                f"tokenizer.vocabulary_size={wanted} is too large for this text: reduced to {vocabulary.size:,} pieces."
            )
        elif vocabulary.size > wanted:
            notes.append(
                f"tokenizer.vocabulary_size={wanted} is too small for 260 specials and bytes and the characters: "
                f"increased to {vocabulary.size:,} pieces (fewer with a tokenizer.character_coverage below 1)."
            )
        joined = sum("\u200c" in line or "\u200d" in line for line in sentences)
        if joined and self.normalization.startswith("nmt_"):
            notes.append(
                f"tokenizer.normalization={self.normalization} writes zero width joiners and non-joiners as spaces: "
                f"{joined:,} sentences for the {what} have some. To keep them: tokenizer.normalization=nfkc."
            )
        if self.model_type == "word" and lengths(sentences).unit == "characters":
            notes.append(
                f"tokenizer=word makes pieces of whole sentences here: the text of the {what} has no spaces between "
                "words. Use tokenizer=unigram."
            )
        return vocabulary, notes

    def _run(self, sentences: Iterable[str], size: int) -> bytes:
        """Train and serialise a model (RuntimeError if SentencePiece rejects the text)."""
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=self.model_type,
            vocab_size=size,
            # A text that is too small for this size gives a smaller model instead of an error.
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=float(self.character_coverage),
            split_digits=self.split_digits and self.model_type in ("unigram", "bpe"),
            normalization_rule_name=self.normalization,
            # With identity normalisation, decoding restores the text exactly, double spaces included.
            remove_extra_whitespaces=self.normalization != "identity",
            max_sentence_length=_LONGEST,
            num_threads=_THREADS,
            minloglevel=3,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            pad_piece=SPECIAL_PIECES[PAD],
            unk_piece=SPECIAL_PIECES[UNK],
            bos_piece=SPECIAL_PIECES[BOS],
            eos_piece=SPECIAL_PIECES[EOS],
        )
        return self._marked(model.getvalue())

    def _marked(self, model: bytes) -> bytes:
        """The model with the mark `CANONICAL` if `canonical`, otherwise without it."""
        return model.removesuffix(CANONICAL) + CANONICAL * self.canonical


def renumber(model: bytes, name: str) -> bytes:
    """Renumber a SentencePiece model of another project, so that it has the special ids of this project.

    Raises:
        UserError: `model` is not a SentencePiece model, or has no piece for unknown text.
    """
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model) if model else None
    except (RuntimeError, UnicodeDecodeError):
        processor = None
    if processor is None:
        raise UserError(f"{name} is not a SentencePiece model, or is damaged.")
    ids = [processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()]
    if ids == [PAD, UNK, BOS, EOS]:
        return model
    # Imported here: needs protobuf, and is rarely used.
    import sentencepiece.sentencepiece_model_pb2 as generated

    messages: Any = generated  # it has no type information
    proto = messages.ModelProto.FromString(model)
    ordinary = [piece for token, piece in enumerate(proto.pieces) if token not in ids]
    kind = messages.ModelProto.SentencePiece
    specials = [
        kind(piece=text, score=0.0, type=kind.UNKNOWN if token == UNK else kind.CONTROL)
        for token, text in enumerate(SPECIAL_PIECES)
    ]
    clash = {piece.piece for piece in ordinary} & set(SPECIAL_PIECES)
    if clash:
        raise UserError(f"{name} uses {', '.join(sorted(clash))} as ordinary pieces: train a tokenizer instead.")
    del proto.pieces[:]
    proto.pieces.extend(specials + ordinary)
    specification = proto.trainer_spec
    specification.vocab_size = len(proto.pieces)
    specification.pad_id, specification.unk_id, specification.bos_id, specification.eos_id = PAD, UNK, BOS, EOS
    specification.pad_piece, specification.unk_piece = SPECIAL_PIECES[PAD], SPECIAL_PIECES[UNK]
    specification.bos_piece, specification.eos_piece = SPECIAL_PIECES[BOS], SPECIAL_PIECES[EOS]
    return bytes(proto.SerializeToString(deterministic=True))


def _allowed_size(message: str, size: int) -> int | None:
    """The valid size that SentencePiece's message about `size` states or implies; None if size is not the problem."""
    if match := re.search(r"required_chars\. \d+ vs (\d+)|value <= (\d+)", message):
        return int(match[1] or match[2])
    if "vocab_size" in message and size < 512:  # char and word models: no room for the bytes
        return 512
    return None
