"""N-best lists are of different texts, and the best is that of a search for one."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.model import Seq2Seq
from nmt.search import BeamSearch, SamplingSearch
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.translation.nbest import join
from nmt.translation.shortlist import Shortlist
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from tests.catalogue import model

WORDS = ["das", "ist", "eins", "und", "ein", "in", "nein"]
TEXT = [" ".join(words) for words in itertools.product(WORDS, repeat=2)]
TOKENIZER = TokenizerTrainer(vocabulary_size=300).train(TEXT, TEXT)[0]


def of_few_pieces(seed: int) -> Seq2Seq:
    """A network that writes a word in many ways: whole, in parts, and letter by letter."""
    size = TOKENIZER.source.size
    network = model(f"seed={seed}", pieces=(size, size))
    allowed = {3, *(token for line in TEXT for token in TOKENIZER.target.encode([line])[0])}
    allowed |= {token for token, piece in enumerate(TOKENIZER.target.pieces(range(size))) if piece in {*"einsd"}}
    bias: torch.Tensor = network.output.bias
    with torch.no_grad():
        bias[[token for token in range(size) if token not in allowed]] = -1e4
    return network


def texts(ranked: list[Translation]) -> list[str]:
    return [" ".join(translation.text.split()) for translation in ranked]


@settings(max_examples=12)
@given(st.integers(0, 99), st.integers(2, 6), st.integers(0, 2), st.sampled_from([0.0, 0.3]), st.booleans())
def test_nbest_lists_are_of_different_texts(seed: int, nbest: int, more: int, coverage: float, shortened: bool) -> None:
    network, size = of_few_pieces(seed), TOKENIZER.source.size
    whole = Lexicon(torch.arange(size).repeat(TRANSLATIONS, 1).T.int().numpy(), torch.arange(size).int().numpy())
    found = []
    for count in (1, nbest):
        search = BeamSearch(nbest + more, coverage_penalty=coverage, nbest=count)
        shortlist = Shortlist(whole, 1, size, joint=True) if shortened else None
        translator = Translator([network], TOKENIZER, search, extra_length=3, shortlist=shortlist)
        found.append(list(translator.translate([*TEXT[:5], " "])))
    for (single,), ranked in zip(*found, strict=True):
        assert ranked[0].text == single.text
        assert ranked[0].score == pytest.approx(single.score, abs=1e-5)
        assert len({*texts(ranked)}) == len(ranked) <= nbest
        scores = [translation.score for translation in ranked]
        assert scores == sorted(scores, reverse=True)
        for translation in ranked[: len(single.text)]:
            assert translation.weights is not None
            assert translation.weights.shape[1] == len(translation.pieces) == len(translation.spans)
    assert sum(map(len, found[1])) > 2 * len(TEXT[:5]), "there are others"


def test_equal_samples_are_one_translation() -> None:
    search = SamplingSearch(nbest=30, temperature=0.1)
    translator = Translator([of_few_pieces(1)], TOKENIZER, search, length_ratio=0.5, extra_length=1)
    for ranked in translator.translate(TEXT[:4]):
        assert 1 <= len({*texts(ranked)}) == len(ranked) < 30


@given(st.lists(st.lists(st.integers(-9, 0), min_size=1, max_size=4), min_size=2, max_size=4))
def test_parts_are_joined_to_the_best_combinations(parts: list[list[int]]) -> None:
    lists = [
        [Translation("x", str(score), score, score, ["</s>"], ["</s>"], [None], [None], None)
         for score in sorted(scores, reverse=True)]
        for scores in parts
    ]  # fmt: skip
    joined = join("x", lists)
    most = max(map(len, parts))
    expected = sorted(map(sum, itertools.product(*parts)), reverse=True)[:most]
    assert [translation.score for translation in joined] == expected
    assert all(sum(map(int, translation.text.split())) == translation.score for translation in joined)
