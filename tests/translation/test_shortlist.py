"""Search among candidates: what they are, and that nothing else changes."""

import numpy as np
import pytest
import torch

from nmt.model import Source
from nmt.search import BeamSearch, GreedySearch, Limits, Search
from nmt.system.errors import UserError
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.translation import shortlist as module
from nmt.translation.shortlist import Candidates, Shortlist
from nmt.translation.stepper import Stepper
from tests.catalogue import DECODERS, model, sentences

PAD, BOS, EOS = 0, 2, 3
PIECES = 23


def lexicon() -> Lexicon:
    """Piece n gives n + 1 and n + 2; piece 20 gives nothing."""
    translations = np.full((PIECES, TRANSLATIONS), -1, dtype=np.int32)
    translations[:20, 0], translations[:20, 1] = np.arange(1, 21), np.arange(2, 22)
    return Lexicon(translations, np.array([9, 7], dtype=np.int32))


def of_each(count: int, joint: bool) -> list[list[int]]:
    """The candidates of two sentences, the second with a prefix; each alone has the same."""
    source, prefixes = torch.tensor([[12, 14, EOS], [20, EOS, PAD]]), [(), [{22: 1, 2: 0}]]
    selected = Shortlist(lexicon(), count, PIECES, joint)
    ids, own = selected.candidates(source, prefixes)
    assert own.any(0).all()
    sets = [ids[row].tolist() for row in own]
    for row, length in ((0, 3), (1, 2)):
        assert selected.candidates(source[row : row + 1, :length], prefixes[row : row + 1]).ids.tolist() == sets[row]
    return sets


def test_candidates_are_specials_common_pieces_and_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_each(1, joint=False) == [[0, 1, 2, 3, 4, 7, 9, 13, 15], [0, 1, 2, 3, 4, 7, 9, 22]]
    assert of_each(2, joint=False) == [[0, 1, 2, 3, 4, 5, 7, 9, 13, 14, 15, 16], [0, 1, 2, 3, 4, 5, 7, 9, 22]]
    assert of_each(1, joint=True) == [[0, 1, 2, 3, 4, 7, 9, 12, 13, 14, 15], [0, 1, 2, 3, 4, 7, 9, 20, 22]]
    monkeypatch.setattr(module, "COMMON", 1)
    assert of_each(1, joint=False) == [[0, 1, 2, 3, 4, 9, 13, 15], [0, 1, 2, 3, 4, 9, 22]]


@pytest.mark.parametrize("count", [-1, TRANSLATIONS + 1])
def test_there_are_only_so_many_translations(count: int) -> None:
    with pytest.raises(UserError, match=f"shortlist={count}: must be from 1 to {TRANSLATIONS}, or 0"):
        Shortlist(lexicon(), count, PIECES, joint=True)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(4, nbest=3)], ids=["greedy", "beam"])
@pytest.mark.parametrize("wiring", DECODERS)
def test_the_search_sees_the_model_without_all_other_pieces(wiring: str, search: Search) -> None:
    """As if the softmax had never had more rows: each sentence alone, with their logits at minus infinity."""
    models = [model(f"decoder={wiring}", f"seed={seed}") for seed in (1, 2)]
    source, mask, counts = sentences([5, 2, 7], PIECES, 4)
    own = torch.rand(3, 29, generator=torch.Generator().manual_seed(1)) < 0.3
    own[:, : EOS + 1] = True
    ids = own.any(0).nonzero().squeeze(1)
    candidates = Candidates(ids, own[:, ids])
    most = torch.tensor([9, 4, 12])
    stepper = Stepper(models)
    with torch.inference_mode():
        limits = candidates.limits(Limits(BOS, EOS, (0, 1, BOS), most, mask))
        found = search(stepper, stepper.start(Source(source, mask, counts), candidates), limits)
        for row, nbest in enumerate(found):
            biases = [made.output.bias.clone() for made in models]
            for made in models:
                made.output.bias[~own[row]] = float("-inf")
            one = slice(row, row + 1)
            alone = Limits(BOS, EOS, (0, 1, BOS), most[one], mask[one])
            [expected] = search(stepper, stepper.start(Source(source[one], mask[one], counts[one])), alone)
            for made, bias in zip(models, biases, strict=True):
                made.output.bias.copy_(bias)
            for ours, theirs in zip(candidates.named(nbest), expected, strict=True):
                assert ours.tokens == theirs.tokens
                assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)


def test_under_autocast_the_rows_are_cast_once() -> None:
    made = model().float()
    source, mask, counts = sentences([5, 2], PIECES, 4)
    stepper = Stepper([made])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        state = stepper.start(
            Source(source, mask, counts), Candidates(torch.arange(7), torch.ones(2, 7, dtype=torch.bool))
        )
        assert state.members[0].output is not None
        assert [part.dtype for part in state.members[0].output] == [torch.bfloat16, torch.float32]
        log_probs, _, _ = stepper(torch.tensor([BOS, BOS]), state)
    assert log_probs.shape == (2, 7)
    assert log_probs.dtype is torch.float32
