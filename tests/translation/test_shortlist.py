"""Search among candidates: what they are, and that nothing else changes."""

import numpy as np
import pytest
import torch

from nmt.errors import UserError
from nmt.search import BeamSearch, GreedySearch, Limits, Search
from nmt.text.lexicon import TRANSLATIONS, Lexicon
from nmt.translation import shortlist as module
from nmt.translation.shortlist import Shortlist
from nmt.translation.stepping import Stepper
from tests.catalogue import DECODERS, model, sentences

BOS, EOS = 2, 3
PIECES = 23


def lexicon() -> Lexicon:
    """Piece n gives n + 1 and n + 2; piece 20 gives nothing."""
    translations = np.full((PIECES, TRANSLATIONS), -1, dtype=np.int32)
    translations[:20, 0], translations[:20, 1] = np.arange(1, 21), np.arange(2, 22)
    return Lexicon(translations, np.array([9, 7], dtype=np.int32))


def test_candidates_are_specials_common_pieces_and_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    source = torch.tensor([[12, 14, EOS], [20, EOS, 0]])
    assert Shortlist(lexicon(), 1, joint=False).candidates(source).tolist() == [0, 1, 2, 3, 4, 7, 9, 13, 15]
    assert Shortlist(lexicon(), 2, joint=False).candidates(source).tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 13, 14, 15, 16]
    assert Shortlist(lexicon(), 1, joint=True).candidates(source).tolist() == [
        *(0, 1, 2, 3, 4, 7, 9, 12, 13, 14, 15, 20)
    ]
    monkeypatch.setattr(module, "COMMON", 1)
    assert Shortlist(lexicon(), 1, joint=False).candidates(source).tolist() == [0, 1, 2, 3, 4, 9, 13, 15]


@pytest.mark.parametrize("count", [-1, TRANSLATIONS + 1])
def test_there_are_only_so_many_translations(count: int) -> None:
    with pytest.raises(UserError, match=f"shortlist={count}: must be from 1 to {TRANSLATIONS}, or 0"):
        Shortlist(lexicon(), count, joint=True)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(4, nbest=3)], ids=["greedy", "beam"])
@pytest.mark.parametrize("wiring", DECODERS)
def test_the_search_sees_the_model_without_all_other_pieces(wiring: str, search: Search) -> None:
    """As if the softmax had never had more rows: the whole search with their logits at minus infinity."""
    models = [model(f"decoder={wiring}", f"seed={seed}") for seed in (1, 2)]
    source, mask, counts = sentences([5, 2, 7], PIECES, 4)
    ids = torch.tensor([0, 1, 2, 3, 5, 8, 13, 21])
    most = torch.tensor([9, 4, 12])
    stepper = Stepper(models)
    with torch.inference_mode():
        found = search(stepper, stepper.start(source, mask, counts, ids), Limits(BOS, EOS, (0, 1, BOS), most, mask))
        others = torch.ones(29, dtype=torch.bool)
        others[ids] = False
        for made in models:
            bias: torch.Tensor = made.output.bias
            bias[others] = float("-inf")
        expected = search(stepper, stepper.start(source, mask, counts), Limits(BOS, EOS, (0, 1, BOS), most, mask))
    for ours, theirs in zip(found, expected, strict=True):
        for own, other in zip(ours, theirs, strict=True):
            assert ids[own.tokens].tolist() == other.tokens
            assert own.log_prob == pytest.approx(other.log_prob, abs=1e-4)


def test_under_autocast_the_rows_are_cast_once() -> None:
    made = model().float()
    source, mask, counts = sentences([5, 2], PIECES, 4)
    stepper = Stepper([made])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        state = stepper.start(source, mask, counts, torch.arange(7))
        assert state.candidates is not None
        assert [part.dtype for part in state.candidates.outputs[0]] == [torch.bfloat16, torch.float32]
        log_probs, _, _ = stepper(torch.tensor([BOS, BOS]), state)
    assert log_probs.shape == (2, 7)
    assert log_probs.dtype is torch.float32
