"""Search over real models of every wiring and score: greedy, beam, exhaustive, batches and ensembles."""

import itertools
import math

import pytest
import torch

from nmt.model import Seq2Seq, Source
from nmt.search import BeamSearch, GreedySearch, Hypothesis, Limits, Search
from nmt.system.compute import Compute
from nmt.translation.stepper import Stepper
from tests.catalogue import ATTENTIVE, SCORES, WITH_ATTENTION, model, searched, sentences

BOS, EOS = 2, 3
COMBINATIONS = [
    *((f"decoder={decoder}",) for decoder in ATTENTIVE),
    *((f"decoder={wiring}", f"attention/score={own}") for wiring, own in zip(itertools.cycle(WITH_ATTENTION), SCORES)),
    ("decoder=luong", "decoder.input_feeding=false"),
    ("decoder=bahdanau", "attention.heads=3"),
    ("decoder=bahdanau", "attention.coverage=true"),
    ("decoder=luong", "attention/window=local_p", "attention/read=hard"),
    ("decoder=luong", "attention/read=hard", "attention.read.objective=enumerate"),
    ("decoder=none",),
    ("decoder=transformer", "attention.coverage=true"),
    ("encoder=conv", "decoder=conv", "attention/score=dot"),
    ("decoder=conv", "attention.coverage=true"),
    ("decoder=transformer", "encoder=transformer", "decoder/positions=relative", "decoder/window=local_m"),
]
every = pytest.mark.parametrize("overrides", COMBINATIONS, ids=" ".join)


def search_with(
    made: Search, models: list[Seq2Seq], lengths: list[int], most: list[int], pieces: int, seed: int = 2
) -> list[list[Hypothesis]]:
    source, mask, counts = sentences(lengths, pieces, seed)
    stepper = Stepper(models)
    limits = Limits(BOS, EOS, (0, 1, BOS), torch.tensor(most), mask)
    with torch.inference_mode():
        return made(stepper, stepper.start(Source(source, mask, counts)), limits)


@every
def test_greedy_is_a_beam_of_one(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    results = [
        search_with(search, [made], [5, 2, 7, 1], [9, 4, 12, 6], 23)
        for search in (GreedySearch(), BeamSearch(1, length_penalty=1.0))
    ]
    for [greedy], [beam] in zip(*results, strict=True):
        assert greedy.tokens == beam.tokens
        assert greedy.log_prob == pytest.approx(beam.log_prob, abs=1e-4)
        assert (greedy.weights is None) == (beam.weights is None)
        if greedy.weights is not None and beam.weights is not None:
            torch.testing.assert_close(torch.tensor(greedy.weights), torch.tensor(beam.weights))


@every
def test_a_beam_that_keeps_everything_is_exhaustive_search(overrides: tuple[str, ...]) -> None:
    """Six pieces of which two are words: every translation of up to four tokens, scored by forced decoding."""
    made = model(*overrides, pieces=(23, 6))
    longest = 4
    found = search_with(BeamSearch(60, length_penalty=1.0), [made], [5, 3], [longest] * 2, 23)
    source, mask, _ = sentences([5, 3], 23)
    for row in (0, 1):
        best: tuple[float, list[int]] = (-math.inf, [])
        for length in range(longest):
            for words in itertools.product((4, 5), repeat=length):
                target = torch.tensor([[BOS, *words]])
                with torch.inference_mode():
                    decoded = made(Source(source[row : row + 1], mask[row : row + 1]), target)
                    log_probs = searched(made, decoded)[0]
                tokens = [*words, EOS]
                total = sum(log_probs[t, token].item() for t, token in enumerate(tokens))
                best = max(best, (total / ((5 + len(tokens)) / 6), tokens))
        assert found[row][0].tokens == best[1]
        assert found[row][0].score == pytest.approx(best[0], abs=1e-4)


@every
def test_a_batch_equals_its_sentences_one_by_one(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    lengths, most = [5, 2, 7, 1], [9, 4, 12, 6]
    source, mask, counts = sentences(lengths, 23)
    beam = BeamSearch(4, nbest=2)
    together = search_with(beam, [made], lengths, most, 23)
    for row, length in enumerate(lengths):
        stepper = Stepper([made])
        one = slice(row, row + 1)
        own = (source[one, :length], mask[one, :length], counts[one])
        limits = Limits(BOS, EOS, (0, 1, BOS), torch.tensor(most[one]), mask[one, :length])
        with torch.inference_mode():
            [alone] = beam(stepper, stepper.start(Source(*own)), limits)
        for one_alone, one_together in zip(alone, together[row], strict=True):
            assert one_alone.log_prob == pytest.approx(one_together.log_prob, abs=1e-4)
            if one_alone.weights is not None and one_together.weights is not None:
                padded = torch.tensor(one_together.weights)
                assert (padded[..., length:] == 0).all()
                torch.testing.assert_close(torch.tensor(one_alone.weights), padded[..., :length])


@every
def test_log_probs_and_weights_are_those_of_forced_decoding(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    lengths = [5, 2, 7]
    found = search_with(BeamSearch(4, length_penalty=0.7, nbest=3), [made], lengths, [8, 8, 8], 23)
    source, mask, _ = sentences(lengths, 23)
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            target = torch.tensor([[BOS, *hypothesis.tokens[:-1]]])
            with torch.inference_mode():
                decoded = made(Source(source[row : row + 1], mask[row : row + 1]), target)
                log_probs = searched(made, decoded)[0]
            total = log_probs.gather(1, torch.tensor(hypothesis.tokens).unsqueeze(1)).sum()
            assert hypothesis.log_prob == pytest.approx(total.item(), abs=1e-4)
            if decoded.weights is not None:
                torch.testing.assert_close(torch.tensor(hypothesis.weights), decoded.weights[0].float())


def test_an_ensemble_averages_probabilities_and_weights() -> None:
    members = [model("decoder=bahdanau", "seed=1"), model("decoder=luong", "seed=2")]
    source, mask, counts = sentences([4, 2], 23)
    tokens = torch.tensor([BOS, BOS])
    with torch.inference_mode():
        both = Stepper(members)
        log_probs, weights, _ = both(tokens, both.start(Source(source, mask, counts)))
        alone = [Stepper([member])(tokens, Stepper([member]).start(Source(source, mask, counts))) for member in members]
    torch.testing.assert_close(log_probs.exp(), (alone[0][0].exp() + alone[1][0].exp()) / 2)
    assert weights is not None
    assert alone[0][1] is not None
    assert alone[1][1] is not None
    torch.testing.assert_close(weights, (alone[0][1] + alone[1][1]) / 2)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, dtype=weights.dtype))


def test_an_ensemble_of_one_model_twice_is_that_model() -> None:
    made = model()
    once, twice = (search_with(BeamSearch(3), members, [5, 3], [9, 9], 23) for members in ([made], [made, made]))
    for [one], [other] in zip(once, twice, strict=True):
        assert one.tokens == other.tokens
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_members_with_other_numbers_of_heads_share_their_means() -> None:
    members = [model("attention.heads=2"), model("attention.heads=3"), model("decoder=none")]
    found = search_with(BeamSearch(2), members, [5, 3], [9, 9], 23)
    for [best] in found:
        assert best.weights is not None
        assert best.weights.shape[0] == 1
        torch.testing.assert_close(torch.tensor(best.weights.sum(-1)), torch.ones(1, len(best.tokens)))


def test_heads_have_the_names_that_all_members_share() -> None:
    transformer = model("decoder=transformer")
    assert Stepper([transformer, transformer]).heads == ("1.1", "1.2", "2.1", "2.2")
    assert Stepper([transformer, model("decoder=none")]).heads == ("1.1", "1.2", "2.1", "2.2")
    four = model("attention.heads=2", "attention.size=6")
    assert Stepper([four]).heads == ("0", "1")
    members = [transformer, four]
    assert Stepper(members).heads == ("0",)
    found = search_with(BeamSearch(2), members, [5, 3], [9, 9], 23)
    assert {best.weights.shape[0] for [best] in found if best.weights is not None} == {1}


@pytest.mark.parametrize("decoder", ATTENTIVE)
def test_matrices_that_are_cast_once_are_the_ones_that_autocast_would_cast(decoder: str) -> None:
    size = {"transformer": ["model.embedding_size=10"], "conv": []}.get(decoder, ["decoder.readout.size=7"])
    made = model(f"decoder={decoder}", "model.tie_embeddings=target", *size).float()
    source, mask, counts = sentences([5, 2, 7], 23, 4)
    tokens = torch.tensor([5, 11, 4])
    steppers = [Stepper([made]), Stepper([made], Compute(torch.device("cpu"), torch.bfloat16))]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        ours, theirs = (stepper(tokens, stepper.start(Source(source, mask, counts)))[0] for stepper in steppers)
    torch.testing.assert_close(ours, theirs, rtol=0.01, atol=0.01)
    assert {parameter.dtype for parameter in made.parameters()} == {torch.float32}
    assert made.output.weight is made.target_embedding.weight
    own = steppers[1].models[0]
    assert own.output.weight.dtype is torch.bfloat16
    assert own.target_embedding.weight.dtype is torch.float32
