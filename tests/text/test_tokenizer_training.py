"""Making a tokenizer: any amount of text will do, the same text gives the same model, and what is adjusted is said."""

import io
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.system.errors import UserError
from nmt.system.limits import checked
from nmt.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, UNK
from nmt.text.tokenizer_trainer import MODEL_TYPES, TokenizerTrainer

SOURCE = [
    f"Der {a} {b} ist {c}." for a in ("rote", "grüne") for b in ("Hund", "Kater") for c in ("groß", "klein", "alt")
]
TARGET = [f"The {a} {b} is {c}." for a in ("red", "green") for b in ("dog", "cat") for c in ("big", "small", "old")]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_the_same_text_gives_the_same_model(model_type: str) -> None:
    trainer = TokenizerTrainer(model_type, vocabulary_size=320)
    first, notes = trainer.train(SOURCE, TARGET)
    second, _ = trainer.train(tuple(SOURCE), tuple(TARGET))
    assert first.source.model == second.source.model
    assert first.joint
    assert first.source is first.target
    assert notes[0].startswith("Tokenizer: one joint vocabulary of")
    assert "24 sentences" in notes[0]


def test_separate_vocabularies_see_their_own_side() -> None:
    tokenizer, notes = TokenizerTrainer("char", joint=False).train(SOURCE, TARGET)
    assert not tokenizer.joint
    assert len(notes) == 2
    assert "ü" in tokenizer.source.pieces(range(tokenizer.source.size))
    assert "ü" not in tokenizer.target.pieces(range(tokenizer.target.size))


@pytest.mark.parametrize("model_type", ["unigram", "word"])
def test_a_vocabulary_too_large_for_the_text_is_adjusted_and_said(model_type: str) -> None:
    tokenizer, notes = TokenizerTrainer(model_type, vocabulary_size=30_000).train(SOURCE, TARGET)
    assert 260 < tokenizer.source.size < 1000
    assert f"{tokenizer.source.size} pieces." in notes[1]
    assert "tokenizer.vocabulary_size=30000 is too large for this text" in notes[1]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_too_small_for_the_characters_is_adjusted_and_said(model_type: str) -> None:
    tokenizer, notes = TokenizerTrainer(model_type, vocabulary_size=10).train(SOURCE, TARGET)
    # Every character of the text, with U+2581 for the space, has a piece beside the 4 specials and 256 bytes.
    characters = len(set("".join(SOURCE + TARGET)))
    assert tokenizer.source.size == 260 + characters
    assert "tokenizer.vocabulary_size=10 is too small" in notes[1]
    assert tokenizer.source.decode(tokenizer.source.encode(SOURCE)[0]) == SOURCE[0]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_any_text_will_do(model_type: str) -> None:
    @settings(max_examples=25)
    @given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=8), max_size=4))
    def will_do(lines: list[str]) -> None:
        text = [*lines, "a b"]
        tokenizer, _ = TokenizerTrainer(model_type).train(text, text)
        assert UNK not in {token for tokens in tokenizer.source.encode(text) for token in tokens}

    will_do()


@pytest.mark.parametrize("lines", [[], [""], ["", "  ", "\t"]])
def test_no_text_is_an_error(lines: list[str]) -> None:
    with pytest.raises(UserError, match="training text is empty"):
        TokenizerTrainer().train(lines, lines)


def test_what_sentencepiece_refuses_is_an_error() -> None:
    with pytest.raises(UserError, match="cannot train a unigram vocabulary"):
        TokenizerTrainer().train(["\u2585"], ["\u2585"])  # SentencePiece keeps this character to itself


def test_identity_normalisation_is_the_default_and_others_can_be_had() -> None:
    text = [*SOURCE, "½ ﬁ"]
    plain = TokenizerTrainer().train(text, TARGET)[0].source
    assert plain.decode(plain.encode(["½  ﬁ"])[0]) == "½  ﬁ"
    folded = TokenizerTrainer(normalization="nfkc_cf").train(text, TARGET)[0].source
    assert folded.decode(folded.encode(["DER  ﬁ"])[0]) == "der fi"
    assert folded.folds_case
    assert not plain.folds_case


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"model_type": "unigran"}, r"tokenizer\.model_type=unigran: must be unigram.*Did you mean 'unigram'"),
        ({"normalization": "NFKC"}, r"tokenizer\.normalization=NFKC: must be identity"),
        ({"vocabulary_size": 0}, r"tokenizer\.vocabulary_size=0: must be from 1 to 1,000,000"),
        ({"character_coverage": 1.5}, r"tokenizer\.character_coverage=1\.5: must be from 0\.98 to 1"),
        ({"model_type": "bpe", "sampling": 1.5}, r"tokenizer\.sampling=1\.5: must be from 0 to 1"),
        ({"model_type": "char", "sampling": 0.1}, r"one segmentation only.*tokenizer=unigram"),
        ({"model": ["a", "b", "c"]}, r"tokenizer\.model takes one file"),
    ],
)
def test_wrong_settings_are_named_with_the_cure(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        checked(TokenizerTrainer, settings_, "tokenizer")()


def foreign_model(model_type: str) -> bytes:
    """A model as SentencePiece makes it when nobody asks for anything else: <unk> 0, <s> 1, </s> 2, no <pad>."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SOURCE + TARGET), model_writer=model, vocab_size=330, minloglevel=3, byte_fallback=True,
        hard_vocab_limit=False, model_type=model_type,
    )  # fmt: skip
    return model.getvalue()


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_model_from_elsewhere_is_renumbered_and_cuts_as_before(model_type: str, tmp_path: Path) -> None:
    model = foreign_model(model_type=model_type)
    (tmp_path / "mine.model").write_bytes(model)
    before = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer, notes = TokenizerTrainer(model=str(tmp_path / "mine.model")).train([], [])
    assert tokenizer.joint
    assert tokenizer.source.size == before.get_piece_size() + 1  # <pad> is new
    assert tokenizer.source.pieces([PAD, UNK, BOS, EOS]) == list(SPECIAL_PIECES)
    for sentence in [*SOURCE, "Æ 数"]:
        (tokens,) = tokenizer.source.encode([sentence])
        assert tokenizer.source.pieces(tokens) == before.encode(sentence, out_type=str)
        assert tokenizer.source.decode(tokens) == sentence
    assert "mine.model" in notes[0]


def test_our_own_models_are_taken_as_they_are(tmp_path: Path) -> None:
    one = TokenizerTrainer(vocabulary_size=320).train(SOURCE, TARGET)[0]
    other = TokenizerTrainer("bpe", vocabulary_size=320).train(SOURCE, TARGET)[0]
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    files = [str(tmp_path / name / "tokenizer.model") for name in ("one", "other")]
    both, _ = TokenizerTrainer(model=files).train([], [])
    assert not both.joint
    assert (both.source.fingerprint, both.target.fingerprint) == (one.source.fingerprint, other.source.fingerprint)


def test_unusable_model_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no\.model: No such file"):
        TokenizerTrainer(model=str(tmp_path / "no.model")).train([], [])
    (tmp_path / "bad.model").write_bytes(b"hello")
    with pytest.raises(UserError, match=r"bad\.model is not a SentencePiece model"):
        TokenizerTrainer(model=str(tmp_path / "bad.model")).train([], [])
    (tmp_path / "char.model").write_bytes(foreign_model(model_type="char"))
    with pytest.raises(UserError, match=r"tokenizer\.sampling=0"):
        TokenizerTrainer(model=str(tmp_path / "char.model"), sampling=0.1).train([], [])


def test_long_texts_are_sampled() -> None:
    trainer = TokenizerTrainer("char", sample_sentences=50)
    _, notes = trainer.train([f"Satz {number}" for number in range(5000)], TARGET)
    assert notes[0].endswith(
        "from 62 sentences, a sample (tokenizer.sample_sentences, tokenizer.sample_characters) of 5,012."
    )


@pytest.mark.parametrize("count", [0, 3, 20, 60])
def test_a_sample_keeps_order_and_number(count: int) -> None:
    lines = [str(number) for number in range(count)]
    trainer = TokenizerTrainer(sample_sentences=20)
    sample, total = trainer._sample(["", *lines, " "])
    assert total == count
    assert len(sample) == min(count, 20)
    assert sample == sorted(set(sample), key=int) == trainer._sample(lines)[0]


def test_a_sample_of_long_sentences_has_fewer_of_them() -> None:
    trainer = TokenizerTrainer(sample_sentences=50, sample_characters=1000)
    assert len(trainer._sample(["x" * 10] * 200)[0]) == 50
    assert len(trainer._sample(["x" * 40, " "] * 200)[0]) == 25
    assert trainer._sample(["x" * 4000] * 3) == (["x" * 4000], 3)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_digits_are_pieces_of_their_own_unless_asked_otherwise(model_type: str) -> None:
    text = [f"in 1987 and {number} and 1987" for number in range(300)]

    def longest(split_digits: bool) -> int:
        trainer = TokenizerTrainer(model_type, 400, split_digits=split_digits)
        tokens = trainer.train(text, text)[0].source.encode(["in 1987 and 1987"])[0]
        pieces = trainer.train(text, text)[0].source.pieces(tokens)
        return max(sum(character.isdigit() for character in piece) for piece in pieces)

    assert longest(True) == 1
    assert longest(False) > 1


def test_words_of_text_without_spaces_are_warned_of() -> None:
    chinese, english = ["我明天去东京。", "早上好。", "我爱你。"] * 20, ["Good morning."] * 60
    _, notes = TokenizerTrainer("word", 400, joint=False).train(chinese, english)
    (warning,) = [note for note in notes if "tokenizer=word" in note]
    assert "source vocabulary has no spaces between words. Use tokenizer=unigram." in warning


def test_a_vocabulary_is_never_smaller_than_its_characters() -> None:
    characters = "".join(map(chr, range(0x4E00, 0x4E00 + 800)))
    tokenizer, notes = TokenizerTrainer("unigram", 500, joint=False).train([characters] * 3, ["one two"] * 20)
    assert tokenizer.source.size >= 260 + 800
    assert all(len(tokens) <= 2 for tokens in tokenizer.source.encode(list(characters))), "no character in bytes"
    assert any("tokenizer.vocabulary_size=500 is too small for 260 specials" in note for note in notes)
    assert tokenizer.target.size < 500


@pytest.mark.parametrize(("rule", "told"), [("nmt_nfkc", True), ("nfkc", False), ("identity", False)])
def test_a_rule_that_changes_the_spelling_of_persian_is_told(rule: str, told: bool) -> None:
    text = ["می\u200cخواهم", "می\u200cروم"] * 20
    tokenizer, notes = TokenizerTrainer(vocabulary_size=300, normalization=rule).train(text, text)
    assert any("zero width joiners and non-joiners as spaces" in note for note in notes) == told
    assert ("\u200c" in tokenizer.source.decode(tokenizer.source.encode(text[:1])[0])) != told
