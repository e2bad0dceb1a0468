"""Subword sampling against the definitions: every segmentation listed, and SentencePiece's own cut as the limit."""

import math
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from nmt.text.regularisation import MergeSampler, Sampler, Spelling, UnigramSampler
from nmt.text.tokenizer_trainer import TokenizerTrainer

PIECES = {
    "_": (4, -3.0),
    "a": (5, -2.0),
    "b": (6, -2.5),
    "ab": (7, -3.0),
    "_a": (8, -2.2),
    "ba": (9, -4.0),
    "aba": (10, -5.0),
}
SPELLING = Spelling({byte: 100 + byte for byte in range(256)}, 1)
SENTENCES = ["the red dog runs", "a naïve cat and the dog", "under the house 3,14"] * 10


def segmentations(word: str) -> Iterator[list[str]]:
    """Every way to write `word` with PIECES."""
    if not word:
        yield []
    for length in range(1, len(word) + 1):
        if word[:length] in PIECES:
            for rest in segmentations(word[length:]):
                yield [word[:length], *rest]


@pytest.mark.parametrize("alpha", [0.1, 0.7, 1.0])
def test_unigram_draws_each_segmentation_as_often_as_its_probability_says(alpha: float) -> None:
    word, draws = "_ababa", 20_000
    # Kudo 2018, eq. 9: p(x)^alpha, normalised over all segmentations x.
    masses = {
        tuple(PIECES[piece][0] for piece in pieces): math.exp(alpha * sum(PIECES[piece][1] for piece in pieces))
        for pieces in segmentations(word)
    }
    assert len(masses) > 10
    sampler, generator = UnigramSampler(PIECES, SPELLING, "_"), random.Random(3)
    drawn = Counter(tuple(sampler.draw(word, alpha, generator)) for _ in range(draws))
    assert set(drawn) <= set(masses)
    for ids, mass in masses.items():
        probability = mass / sum(masses.values())
        # Five standard deviations of the binomial, and one draw for the rarest.
        assert abs(drawn[ids] - draws * probability) < 5 * math.sqrt(draws * probability) + 1


def test_dropout_by_hand() -> None:
    # "aba": the merge of a+b (score -3) comes before b+a (score -4); "ab"+"a" is "aba".  With p = 1/4 a merge is done
    # with 3/4: [aba] if ab and then aba are taken; a+b left out and b+a taken gives [a, ba], then aba again merges.
    draws, p = 20_000, 0.25
    sampler, generator = MergeSampler(PIECES, SPELLING, "_"), random.Random(4)
    drawn = Counter(tuple(sampler.draw("aba", p, generator)) for _ in range(draws))
    q = 1 - p
    expected = {(7, 5): q * p, (10,): q * q + p * q * q, (5, 9): p * q * p, (5, 6, 5): p * p}
    assert math.isclose(sum(expected.values()), 1.0)
    assert set(drawn) == set(expected)
    for ids, probability in expected.items():
        assert abs(drawn[ids] - draws * probability) < 5 * math.sqrt(draws * probability)


@pytest.mark.parametrize("kind", [UnigramSampler, MergeSampler])
def test_characters_without_a_piece_are_spelt(kind: type[Sampler]) -> None:
    sampler = kind(PIECES, SPELLING, "_")
    assert sampler.sample(["ü"], 0.5, 1) == [[100 + 0xC3, 100 + 0xBC]]
    assert kind(PIECES, Spelling({}, 1), "_").sample(["ü"], 0.5, 1) == [[1]]
    assert sampler.sample(["", "_"], 0.5, 1) == [[], [4]]


@pytest.mark.parametrize(("model_type", "limit"), [("unigram", 1000.0), ("bpe", 1e-9)])
def test_with_no_chance_left_it_cuts_as_sentencepiece_does(model_type: str, limit: float) -> None:
    pieces = TokenizerTrainer(model_type, vocabulary_size=310).train(SENTENCES, SENTENCES)[0].source
    text = [*SENTENCES[:3], " two  spaces ", "数 \u2581 x", "", "catcat", "the\tdog"]
    best = pieces.encode(text)
    assert pieces.sample(text, limit, seed=1) == best


@pytest.mark.parametrize("kind", [UnigramSampler, MergeSampler])
def test_symbols_are_never_cut(kind: type[Sampler]) -> None:
    sampler = kind({**PIECES, "aba": (10, -50.0), "abab": (11, -50.0)}, SPELLING, "_", ["aba", "abab"])
    (ids, *_) = drawn = sampler.sample(["_babab_abaab"] * 50, 0.5, 1)
    assert all(each[-4:].count(10) == 1 and each.count(11) == 1 for each in drawn), ids


@pytest.mark.parametrize("kind", [UnigramSampler, MergeSampler])
def test_pieces_that_cross_words_are_drawn_too(kind: type[Sampler]) -> None:
    crossing = {**PIECES, "a_": (11, -0.5), "a_a": (12, -0.6)}
    drawn = kind(crossing, SPELLING, "_").sample(["_a_a"] * 50, 0.5, 1)
    assert any({11, 12} & set(ids) for ids in drawn)


@pytest.mark.parametrize("kind", [UnigramSampler, MergeSampler])
def test_a_very_long_word_is_cut_and_keeps_its_text(kind: type[Sampler]) -> None:
    texts = {token: piece for piece, (token, _) in PIECES.items()}
    word = "_" + "ab" * 20_000
    (ids,) = kind(PIECES, SPELLING, "_").sample([word], 0.5, 1)
    assert "".join(texts[token] for token in ids) == word
