"""Text to tokens and back: nothing is lost, nothing breaks a line, and every token knows its word."""

import pickle
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import UserError
from nmt.text.canonical import canonical
from nmt.text.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, Vocabulary, load_tokenizer
from nmt.text.tokenizer_trainer import MODEL_TYPES, TokenizerTrainer

WORDS = ["the", "a", "dog", "cat", "red", "house", "runs", "under", "and", "Straße", "Häuser", "naïve", "42", "3,14"]
AWKWARD = [
    *("", " ", "  ", " a", "a ", "a  b", "a\tb", "a\rb", "\ta", "\u00a0a\u00a0b", "a\u200bb", "a\u2028b", "a\u0085b"),
    *("\u2581", "\u2581a", "a\u2581b", " \u2581 ", "½…ﬁ", "\uff26\uff11", "e\u0301", "数据 😀", "عربي", "\ufeffa"),
    *("a\ufffd", "\x00", "<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "\u2585", "\u2047", "\U0010ffff", "\ufdd1"),
    "\u3000a",
]


def sentences(count: int = 300) -> list[str]:
    """Sentences of known words, the same every time."""
    generator = random.Random(7)
    return [" ".join(generator.choices(WORDS, k=generator.randint(1, 9))) + "." for _ in range(count)]


def vocabulary(model_type: str) -> Vocabulary:
    """A small vocabulary of this kind."""
    if model_type not in _made:
        trainer = TokenizerTrainer(model_type, vocabulary_size=330)
        _made[model_type] = trainer.train(sentences(), sentences(40))[0].source
    return _made[model_type]


_made: dict[str, Vocabulary] = {}
# No line feed, which ends a line; no surrogates, which UTF-8 has not; not the noncharacter that stands for U+2581.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\ufdd0"), max_size=12)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_text_comes_back_as_it_went_in(model_type: str) -> None:
    pieces = vocabulary(model_type)

    @given(TEXT)
    def comes_back(text: str) -> None:
        (tokens,) = pieces.encode([text])
        assert UNK not in tokens
        assert pieces.decode(tokens) == canonical(text)

    comes_back()
    for text in [*AWKWARD, *sentences(20)]:
        (tokens,) = pieces.encode([text])
        assert pieces.decode(tokens) == canonical(text)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_whatever_search_may_produce_is_one_line(model_type: str) -> None:
    pieces = vocabulary(model_type)
    allowed = [token for token in range(pieces.size) if token not in pieces.forbidden]
    assert {PAD, UNK, BOS} <= set(pieces.forbidden)
    assert EOS in allowed
    assert [pieces.pieces([token])[0] for token in pieces.forbidden[3:]] == ["<0x0A>", "<0x0D>"]

    @given(st.lists(st.sampled_from(allowed), max_size=20))
    def is_one_line(tokens: list[int]) -> None:
        text = pieces.decode(tokens)
        assert "\n" not in text
        assert "\r" not in text
        assert "\u2581" not in text
        text.encode()  # no half characters, whatever the bytes

    is_one_line()


def test_forbidden_tokens_cannot_break_a_line_either() -> None:
    pieces = vocabulary("unigram")
    line_feed = pieces.pieces(range(pieces.size)).index("<0x0A>")
    (word,) = pieces.encode(["cat"])
    assert pieces.decode([*word, line_feed, *word]) == "cat  cat"


def test_a_piece_that_holds_a_line_end_is_forbidden() -> None:
    trained, _ = TokenizerTrainer("unigram", vocabulary_size=300).train(["a\rb"] * 30, ["a b"])
    holding = [token for token in range(trained.source.size) if "\r" in trained.source.pieces([token])[0]]
    assert holding
    assert set(holding) <= set(trained.source.forbidden)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_visible_character_belongs_to_its_word(model_type: str) -> None:
    pieces = vocabulary(model_type)

    @given(st.lists(TEXT, max_size=4).map(" ".join))
    def words_are_whole(text: str) -> None:
        (tokens,) = pieces.encode([text])
        owners = pieces.words(tokens)
        words = pieces.decode(tokens).split()
        assert len(owners) == len(tokens)
        # Every word owns some token, words come in order, and no token claims a word that does not exist.
        owned = [owner for owner in owners if owner >= 0]
        assert owned == sorted(owned)
        if model_type == "char":  # no token holds more than one word
            assert sorted(set(owned)) == list(range(len(words)))
        assert all(owner < len(words) for owner in owned)

    words_are_whole()


def test_words_by_hand() -> None:
    pieces = vocabulary("char")
    (tokens,) = pieces.encode(["a  dog 数"])
    #                              a   ' '  ' '  dog     ' ' three bytes
    assert pieces.pieces(tokens)[:3] == ["\u2581", "a", "\u2581"]
    assert pieces.words([*tokens, EOS]) == [0, 0, -1, 1, 1, 1, 1, 2, 2, 2, 2, -1]


def test_broken_bytes_become_replacement_characters_and_keep_their_words() -> None:
    pieces = vocabulary("unigram")
    names = pieces.pieces(range(pieces.size))
    byte = {int(name[3:5], 16): token for token, name in enumerate(names) if name.startswith("<0x")}
    (dog,) = pieces.encode(["dog"])
    tokens = [*dog, byte[0xE2], byte[0xE2], byte[0x82], byte[0xAC], byte[0xFF]]  # half a character, €, no character
    assert pieces.decode(tokens) == "dog\ufffd€\ufffd"
    assert set(pieces.words(tokens)) == {0}


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_what_no_piece_spells_is_named(model_type: str) -> None:
    assert [*vocabulary(model_type).unknown(["the red dog.", "", "a мяу and мяу"])] == [[], [], ["м", "я", "у"]]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_sampling_cuts_at_random_but_keeps_the_text(model_type: str) -> None:
    pieces = vocabulary(model_type)
    text = sentences(50)
    drawn = pieces.sample(text, alpha=0.3, seed=1)
    assert drawn == pieces.sample(text, alpha=0.3, seed=1)
    assert drawn != pieces.sample(text, alpha=0.3, seed=2)
    assert drawn != pieces.encode(text)
    assert [pieces.decode(tokens) for tokens in drawn] == text
    assert pieces.sample(text, alpha=0.0, seed=1) == pieces.encode(text)


def test_sampling_gives_the_same_in_another_process() -> None:
    pieces = vocabulary("unigram")
    # What was drawn before, and the other process's own state, must not matter.
    pieces.sample(sentences(5), 0.5, 99)
    program = (
        "import pickle, sys; pieces, text = pickle.load(sys.stdin.buffer); "
        "sys.stdout.buffer.write(pickle.dumps(pieces.sample(text, 0.3, 11)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps((pieces, sentences(20))),
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert pickle.loads(done.stdout) == pieces.sample(sentences(20), 0.3, 11)


@pytest.mark.parametrize("model_type", ["char", "word"])
def test_one_segmentation_leaves_nothing_to_draw(model_type: str) -> None:
    pieces = vocabulary(model_type)
    assert not pieces.can_sample
    assert pieces.sample(["the dog"], alpha=0.5, seed=1) == pieces.encode(["the dog"])


def test_a_saved_tokenizer_comes_back(tmp_path: Path) -> None:
    one, other = vocabulary("unigram"), vocabulary("bpe")
    for tokenizer in (Tokenizer(one, one, joint=True), Tokenizer(one, other, joint=False)):
        folder = tmp_path / str(tokenizer.joint)
        tokenizer.save(folder)
        loaded = load_tokenizer(folder)
        assert loaded.joint == tokenizer.joint
        assert loaded.fingerprint == tokenizer.fingerprint
        assert (loaded.source is loaded.target) == tokenizer.joint
        assert loaded.target.encode(["the cat"]) == tokenizer.target.encode(["the cat"])
    assert one.fingerprint != other.fingerprint


def test_damaged_and_missing_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.model is missing: the run is incomplete"):
        load_tokenizer(tmp_path)
    (tmp_path / "source.model").write_bytes(vocabulary("bpe").model)
    with pytest.raises(UserError, match=r"target\.model: No such file"):
        load_tokenizer(tmp_path)
    for damage in (b"", b"no model", vocabulary("bpe").model[:900]):
        (tmp_path / "tokenizer.model").write_bytes(damage)
        with pytest.raises(UserError, match=r"tokenizer\.model is not a SentencePiece model, or is damaged"):
            load_tokenizer(tmp_path)


# Prefixes


def walk(pieces: Vocabulary, prefix: str, generator: random.Random) -> list[int]:
    """Tokens drawn as a search may choose them: through the prefix, and on for a while."""
    states, state, tokens = pieces.beginnings(prefix), 0, []
    while state < len(states):
        token = generator.choice(list(states[state]))
        tokens.append(token)
        state = states[state][token]
    free = [token for token in range(pieces.size) if token not in {EOS, *pieces.forbidden}]
    return tokens + generator.choices(free, k=generator.randint(0, 4))


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "char"])
@given(st.one_of(TEXT, st.sampled_from(AWKWARD), st.sampled_from([s[:cut] for s in sentences(9) for cut in (3, 9)])),
       st.integers(0, 99))  # fmt: skip
def test_whatever_comes_after_the_prefix_the_text_begins_with_it(model_type: str, prefix: str, seed: int) -> None:
    pieces = vocabulary(model_type)
    if prefix and not set("\r") & set(prefix):
        assert pieces.decode(walk(pieces, prefix, random.Random(seed))).startswith(canonical(prefix))


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "word"])
def test_a_prefix_may_end_within_a_piece(model_type: str) -> None:
    pieces = vocabulary(model_type)
    [[house]] = pieces.encode(["house"])
    for prefix in ("h", "hou", "house"):
        assert pieces.beginnings(prefix)[0][house] == len(pieces.beginnings(prefix))
    # After a space a new word begins: with all that it may begin with.
    states = pieces.beginnings("the red ")
    assert house in states[2]
    assert states[0].keys() == {pieces.encode(["the"])[0][0]}


def test_a_prefix_without_pieces_is_refused() -> None:
    with pytest.raises(UserError, match="cannot begin a translation: the model has no pieces for some"):
        vocabulary("unigram").beginnings("a\rb")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_flipped_bit_makes_another_model_or_a_message(kind: str) -> None:
    """A model without a checksum: whatever has changed in it, there is no other error."""
    lines = [f"der {word} Hund {number} läuft" for number in range(60) for word in ("rote", "alte", "kleine")]
    model = TokenizerTrainer(kind, vocabulary_size=320).train(lines, lines)[0].source.model
    generator = random.Random(1)
    outcomes = Counter[bool]()
    for _ in range(150):
        damaged = bytearray(model)
        bit = generator.randrange(8 * len(damaged))
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            vocabulary = Vocabulary(bytes(damaged))
            for tokens in vocabulary.encode([*lines[:3], "xyz é", ""]):
                vocabulary.decode(tokens)
                vocabulary.words(tokens)
            vocabulary.sample(lines[:2], 0.1, 1)
            outcomes[True] += 1
        except UserError:
            outcomes[False] += 1
    assert min(outcomes.values()) > 20
