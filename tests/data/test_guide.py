"""Word links over the pieces of a batch: by hand, under subword sampling, and for pairs that were dropped."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batch import make_batch
from nmt.data.cache import prepare
from nmt.data.dataset import Split
from nmt.data.guide import Guide
from nmt.data.pairs import SampledPairs, encode_blocks, held
from nmt.data.token_batches import TokenBatches
from nmt.text.tokenizer import Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer
from tests.small import pairs

ROWS = pairs(80)


def trained(kind: str) -> Tokenizer:
    source, target = zip(*ROWS, strict=True)
    return TokenizerTrainer(kind, 320).train(source, target)[0]


def test_spread_by_hand() -> None:
    """Characters: (mark e i) (mark r) and (mark o) (mark d n); word 0 of the target is linked to word 1 of the source,
    word 1 to both.
    """
    tokenizer = trained("char")
    split = Split("train", ["ei r"], ["o dn"], ["1-0 0-1 1-1 0p0"])
    source, target = tokenizer.source.encode(split.source), tokenizer.target.encode(split.target)
    assert tokenizer.source.pieces(source[0]) == ["\u2581", "e", "i", "\u2581", "r"]
    assert tokenizer.target.pieces(target[0]) == ["\u2581", "o", "\u2581", "d", "n"]
    found = Guide(split, tokenizer)(make_batch(source, target)).links
    first = [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]  # the last column is the end of sentence
    second = [0.2, 0.2, 0.2, 0.2, 0.2, 0.0]
    expected = torch.tensor([[first, first, second, second, second, [0.0] * 6]])
    torch.testing.assert_close(found, expected)


def test_links_stay_with_their_pairs_whatever_is_dropped(tmp_path: Path) -> None:
    """A pair of k words links its last ones, k - 1 to k - 1; empty and long pairs are left out."""
    tokenizer = trained("unigram")
    source = ["", *(row[0] for row in ROWS[:20]), "eins " * 99, *(row[0] for row in ROWS[20:])]
    target = ["x", *(row[1] for row in ROWS[:20]), "one " * 99, *(row[1] for row in ROWS[20:])]
    lasts = [len(sentence.split()) - 1 for sentence in source]
    split = Split("train", source, target, [f"{last}-{last}" if last >= 0 else "" for last in lasts])
    limits = {"max_source_length": 60, "max_target_length": 60}
    guide = Guide(split, tokenizer)
    for kept in (held(encode_blocks(split, tokenizer, **limits)), prepare(split, tokenizer, cache=tmp_path, **limits)):
        assert len(kept) == len(ROWS)
        batches = TokenBatches(kept, tokens_per_batch=300, seed=3, guide=guide)
        for batch in batches.epoch(0):
            for at, row in enumerate(batch.rows.tolist()):
                words = tokenizer.source.words(batch.source[at, : batch.source_lengths[at] - 1].tolist())
                linked = [words[place] for place in batch.links[at].sum(0).nonzero().flatten().tolist()]
                assert set(linked) == {lasts[row]}
        plan = batches.plan(1)
        assert batches.collate(plan[0], 1).links.sum() > 0


@pytest.mark.parametrize(("kind", "alpha"), [("unigram", 0.1), ("bpe", 0.3)])
def test_links_follow_the_pieces_of_each_epoch(kind: str, alpha: float) -> None:
    tokenizer = trained(kind)
    split = Split(
        "train",
        [row[0] for row in ROWS],
        [row[1] for row in ROWS],
        [" ".join(f"{at}-{at}" for at in range(len(row[0].split()))) for row in ROWS],
    )
    sampled = SampledPairs(split, tokenizer, alpha=alpha, seed=5, max_source_length=200, max_target_length=200)
    shapes = set()
    for epoch in (0, 1):
        for batch in TokenBatches(sampled, tokens_per_batch=10_000, seed=5, guide=Guide(split, tokenizer)).epoch(epoch):
            shapes.add(batch.links.shape)
            for at in range(len(batch.rows)):
                sources = tokenizer.source.words(batch.source[at, : batch.source_lengths[at] - 1].tolist())
                length = int(batch.target_mask[at].sum()) - 1
                targets = tokenizer.target.words(batch.target_out[at, :length].tolist())
                same = np.equal.outer(targets, sources)
                expected = same / same.sum(1, keepdims=True)
                np.testing.assert_allclose(batch.links[at, :length, : len(sources)], expected, rtol=1e-6)
                assert batch.links[at, length:].sum() == batch.links[at, :, len(sources) :].sum() == 0
    assert len(shapes) > 1, "the epochs cut the words in different ways"


def test_a_pair_whose_pieces_show_other_words_is_left_alone() -> None:
    odd = "eins\u200czwei"  # a non-joiner becomes a space
    tokenizer = TokenizerTrainer("unigram", 320, normalization="nmt_nfkc").train(*zip(*ROWS, strict=True))[0]
    split = Split("train", ["eins zwei", odd], ["one two", "one two"], ["0-0 1-1", "0-0"])
    source = tokenizer.source.encode(split.source)
    assert [max(tokenizer.source.words(own)) + 1 for own in source] == [2, 2] != [2, len(odd.split())]
    found = Guide(split, tokenizer)(make_batch(source, tokenizer.target.encode(split.target))).links
    assert found[0].sum() > 0
    assert found[1].sum() == 0
