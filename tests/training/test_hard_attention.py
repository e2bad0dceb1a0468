"""Hard attention's two objectives against enumeration: the gradient of the bound, the marginal, how they compare."""

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from nmt.attention import reads
from nmt.attention.reads import Soft
from nmt.data.batch import Batch, make_batch
from nmt.model import Seq2Seq, Source, Words, seq2seq
from nmt.model.recurrent.attentive import RecurrentMemory
from nmt.model.recurrent.recurrent_decoder import RecurrentState
from nmt.search import BeamSearch, GreedySearch, Limits, Search
from nmt.text.tokenizer import BOS, EOS, PAD, UNK
from nmt.training import loss
from nmt.training.loss import batch_loss
from nmt.translation import forced_passes
from nmt.translation.stepper import Stepper
from tests.catalogue import WITH_ATTENTION, attentive, model, started, thinned

STEPS, SLOTS = 2, 3  # with the ends of the sentences
HARD = ("attention/read=hard", "attention.read.entropy=0", "attention.read.reward=1", "attention.read.expected=0")
WIRINGS = [
    *((f"decoder={wiring}",) for wiring in WITH_ATTENTION),
    ("decoder=luong", "decoder.input_feeding=false"),
    ("decoder=bahdanau", "attention.coverage=true"),
    ("decoder=bahdanau", "attention/window=local_p", "attention.window.radius=2"),
    ("decoder=conditional", "attention.heads=2", "decoder.layers=2"),
    *((f"decoder={wiring}", "decoder.layers=2", "decoder.multi_step=true") for wiring in WITH_ATTENTION),
    # Step by step, as slots are drawn here.
    (
        "decoder=luong",
        "decoder.layers=2",
        "decoder.multi_step=true",
        "decoder.input_feeding=false",
        "model.fast=false",
    ),
]
ENUMERABLE = [own for own in WIRINGS if not {"attention.heads=2", "decoder.multi_step=true"} & set(own)]
every_wiring = pytest.mark.parametrize("overrides", thinned(WIRINGS, 2), ids=" ".join)


def one_pair(slots: int = SLOTS) -> Batch:
    return make_batch([[4, 6][: slots - 1]], [[5]])


def small(*overrides: str) -> Seq2Seq:
    return model(*overrides, pieces=(7, 6), train=True)


class Draws:
    """Stands in for the draw: gives what it was told to."""

    def __init__(self) -> None:
        self.left: Iterator[int] = iter(())

    def __call__(self, shares: Tensor) -> Tensor:
        rows = shares.flatten(0, -2).shape[0]
        return torch.tensor([next(self.left) for _ in range(rows)]).view(*shares.shape[:-1], 1)


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    made = Draws()
    monkeypatch.setattr(reads, "draw", made)
    return made


def log_likelihood(made: Seq2Seq, batch: Batch) -> tuple[Tensor, Tensor]:
    """sum_t log p(y_t | draws), and the probability of the draws under the weights, by hand."""
    decoded = made(Source.of(batch), batch.target_in)
    log_probs = torch.log_softmax(made.logits(decoded.features), -1)
    return log_probs.gather(2, batch.target_out.unsqueeze(2)).sum(), decoded.weights[0]  # [H, T, S]


def enumerate_draws(slots: int = SLOTS, heads: int = 1) -> Iterator[tuple[int, ...]]:
    """Every way to draw a slot for each step and, within it, each head."""
    return itertools.product(range(slots), repeat=STEPS * heads)


def probability(weights: Tensor, chosen: tuple[int, ...]) -> Tensor:
    """Of drawing these slots from weights [H, T, S]."""
    shares = (weights / weights.sum(-1, keepdim=True)).transpose(0, 1).flatten(0, 1)
    return torch.stack([row[slot] for row, slot in zip(shares, chosen, strict=True)]).prod()


@every_wiring
@pytest.mark.parametrize("baseline", [0.0, -7.5, None], ids=["none", "constant", "soft"])
def test_the_mean_sampled_gradient_is_that_of_the_bound(
    overrides: tuple[str, ...], baseline: float | None, draws: Draws
) -> None:
    """With any baseline, also that of soft attention."""
    if baseline is None:
        overrides, baseline = (*overrides, "attention.read.baseline=soft"), 0.0
    made = small(*overrides, *HARD)
    heads = len(made.decoder.heads)
    slots = 2 if heads == 2 else SLOTS
    batch = one_pair(slots)
    assert batch.source.shape == (1, slots)
    parameters = dict(made.named_parameters())
    mean = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    bound = torch.zeros((), dtype=torch.float64)
    total = 0.0
    for chosen in enumerate_draws(slots, heads):
        draws.left = iter(chosen)
        gain, weights = log_likelihood(made, batch)
        share = probability(weights, chosen)
        bound = bound + share * gain
        total += share.item()
        draws.left = iter(chosen)
        found = torch.autograd.grad(batch_loss(made, batch, baseline=baseline).total, list(parameters.values()))
        for name, gradient in zip(parameters, found, strict=True):
            mean[name] += share.detach() * gradient
    assert total == pytest.approx(1)
    expected = torch.autograd.grad(-bound, list(parameters.values()))
    for name, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(mean[name], gradient, atol=2e-5, rtol=1e-4, msg=name)  # the loss is float32
    scores = [name for name in parameters if "attention" in name]
    assert max(mean[name].abs().max() for name in scores) > 1e-3, "the attention learns"


# Unlike soft attention, hard attention normalises the weights that local-p's factor has shrunk.
@pytest.mark.parametrize("overrides", [own for own in WIRINGS if "attention/window=local_p" not in own], ids=" ".join)
def test_the_soft_baseline_is_the_likelihood_under_soft_attention(overrides: tuple[str, ...]) -> None:
    """Of the same parameters, step by step, without dropout; the model is left as it was."""
    settings = (*overrides, "model.dropout=0.5")
    batch = make_batch([[4, 6], [5]], [[5, 4], [3]])
    hard, soft = small(*settings, *HARD), small(*settings).eval()
    rewards = loss.soft_rewards(hard, batch)
    decoded = soft(Source.of(batch), batch.target_in)
    log_probs = torch.log_softmax(soft.logits(decoded.features), -1)
    expected = log_probs.gather(2, batch.target_out.unsqueeze(2)).squeeze(2) * batch.target_mask
    torch.testing.assert_close(rewards, expected, check_dtype=False, atol=1e-5, rtol=1e-5)
    assert hard.training
    assert not any(module.softly for module in hard.modules() if isinstance(module, reads.Hard))


def test_draws_by_hand() -> None:
    """A draw is pushed by what it gained over the baseline, in later steps too where it has a say in them."""
    log_prob = torch.tensor([[-1.0, -2.0, -3.0]], requires_grad=True)
    gains, mask = torch.tensor([[-0.5, -0.25, 0.0]]), torch.tensor([[True, True, False]])
    for baseline, carried, expected in (
        (-1.0, False, [-0.5, -0.75, 0]),  # the third place is padding
        (-1.0, True, [-1.25, -0.75, 0]),
        (0.0, True, [0.75, 0.25, 0]),
    ):
        added = loss.score_function(log_prob, gains, mask, baseline, carried)
        assert added.item() == 0, "the loss that is shown stays the likelihood's"
        assert torch.autograd.grad(added, log_prob)[0].tolist() == [expected]


def test_the_entropy_is_raised() -> None:
    """The same draws with a weight of the entropy: the loss is smaller by the weight times the entropy."""
    totals = []
    for weight in (0, 2):
        made = small("decoder=bahdanau", *HARD, f"attention.read.entropy={weight}")
        torch.manual_seed(4)
        totals.append(batch_loss(made, one_pair()).total.item())
    made = small("decoder=bahdanau", *HARD)
    torch.manual_seed(4)
    weights = log_likelihood(made, one_pair())[1]
    assert totals[0] - totals[1] == pytest.approx(-2 * (weights * weights.log()).sum().item(), abs=1e-5)


def seen(made: Seq2Seq, embedded: Tensor, state: RecurrentState, memory: RecurrentMemory) -> tuple[Tensor, Tensor]:
    """The state that the readout sees and the weights, of one transition."""
    decoder = attentive(made)
    top, _, looked = decoder.transition(decoder.of_words(embedded, memory.products)[0], state, memory, True)
    assert looked.weights is not None
    return top, looked.weights


def marginal(made: Seq2Seq, batch: Batch) -> Tensor:
    """sum_t log sum_j a_tj p(y_t | j) by hand, over the recurrence of the same parameters with a soft read."""
    decoder = attentive(made)
    decoder.attention.read, read = Soft(), decoder.attention.read
    memory, state = started(made, Source.of(batch))
    total = torch.zeros((), dtype=torch.float64)
    for t in range(STEPS):
        embedded = made.target_embedding(batch.target_in[:, t])
        top, weights = seen(made, embedded, state, memory)
        _, state = decoder.step(Words(embedded), state, memory)
        shares = weights[0, 0] / weights[0, 0].sum()
        mixed = torch.zeros((), dtype=torch.float64)
        for slot in range(SLOTS):
            features = decoder.readout(top, embedded, memory.attention.values[:, 0, slot])
            mixed = mixed + shares[slot] * torch.softmax(made.logits(features), -1)[0, batch.target_out[0, t]]
        total = total + mixed.log()
    decoder.attention.read = read
    return total


ENUMERATE = (*HARD, "attention.read.objective=enumerate")


@pytest.mark.parametrize("overrides", ENUMERABLE, ids=" ".join)
def test_enumerate_is_the_log_of_the_mixture(overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    made, batch = small(*overrides, *ENUMERATE), one_pair()
    expected = -marginal(made, batch)
    by_hand = torch.autograd.grad(expected, list(made.parameters()))
    for chunk in (2**24, 1):  # all at once, and a target position at a time
        monkeypatch.setattr(seq2seq, "MIXED_LOGITS", chunk)
        found = batch_loss(made, batch)
        assert found.total.item() == pytest.approx(expected.item(), abs=1e-5)
        assert found.negative_log_likelihood.item() == pytest.approx(expected.item(), abs=1e-5)
        gradients = torch.autograd.grad(found.total, list(made.parameters()))
        for gradient, own, (name, _) in zip(gradients, by_hand, made.named_parameters(), strict=True):
            torch.testing.assert_close(gradient, own, atol=2e-5, rtol=1e-4, msg=name)


def test_enumerate_smooths_the_mixture() -> None:
    made, batch = small("decoder=luong", "decoder.input_feeding=false", *ENUMERATE), one_pair()
    decoded = made(Source.of(batch), batch.target_in)
    probabilities = (
        decoded.mixture.log_weights.exp().unsqueeze(-1) * made.logits(decoded.mixture.features).softmax(-1)
    ).sum(2)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(1, STEPS, dtype=torch.float64))
    right = probabilities.log().gather(2, batch.target_out.unsqueeze(2)).sum()
    expected = -0.8 * right - 0.2 * probabilities.log().mean(-1).sum()
    assert batch_loss(made, batch, 0.2).total.item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("overrides", ENUMERABLE, ids=" ".join)
def test_given_targets_are_scored_by_the_mixture(overrides: tuple[str, ...]) -> None:
    """Validation and forced decoding against the marginal by hand."""
    made, batch = small(*overrides, *ENUMERATE).eval(), one_pair()
    expected = marginal(made, batch).item()
    with torch.inference_mode():
        assert -batch_loss(made, batch).negative_log_likelihood.item() == pytest.approx(expected, abs=1e-5)
    assert forced_passes.attention(made, batch).log_probs.sum().item() == pytest.approx(expected, abs=1e-5)
    assert forced_passes.saliency(made, batch).log_probs.sum().item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("count", [None, 1, 2, 9], ids="searched={}".format)
@pytest.mark.parametrize("overrides", ENUMERABLE, ids=" ".join)
def test_a_step_of_search_is_the_sum_over_slots_by_hand(overrides: tuple[str, ...], count: int | None) -> None:
    """Over all slots, or over the heaviest ones with their weights normalised; also of a shortlist of pieces."""
    searched = "null" if count is None else count
    made, batch = small(*overrides, *ENUMERATE, f"attention.read.searched={searched}").eval(), one_pair()
    memory, state = started(made, Source.of(batch))
    embedded = made.target_embedding(batch.target_in[:, 0])
    top, weights = seen(made, embedded, state, memory)
    heaviest = weights[0, 0].argsort(descending=True)[:count].tolist()
    mixed = torch.zeros(1, made.output.out_features, dtype=torch.float64)
    of_some, some = torch.zeros(1, 2, dtype=torch.float64), [5, 3]
    for slot in heaviest:
        logits = made.logits(attentive(made).readout(top, embedded, memory.attention.values[:, 0, slot]))
        share = weights[0, 0, slot] / weights[0, 0, heaviest].sum()
        mixed += share * torch.softmax(logits, -1)
        of_some += share * torch.softmax(logits[:, some], -1)
    step = made.step(batch.target_in[:, 0], state, memory)
    torch.testing.assert_close(step.log_probs.double(), mixed.log(), atol=1e-5, rtol=1e-5)
    output = made.output.weight[some], made.output.bias[some].unsqueeze(0)
    step = made.step(batch.target_in[:, 0], state, memory, output)
    torch.testing.assert_close(step.log_probs.double(), of_some.log(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(4, nbest=2)], ids=["greedy", "beam"])
@pytest.mark.parametrize("overrides", ENUMERABLE, ids=" ".join)
def test_search_ranks_by_what_was_trained(overrides: tuple[str, ...], search: Search) -> None:
    """The log-probability of each hypothesis is the negative loss of its tokens."""
    made = small(*overrides, *ENUMERATE).eval()
    batch = one_pair()
    stepper, limits = Stepper([made]), Limits(BOS, EOS, (PAD, UNK, BOS), torch.tensor([3]), batch.source_mask)
    with torch.inference_mode():
        [found] = search(stepper, stepper.start(Source.of(batch)), limits)
        for hypothesis in found:
            given = make_batch([batch.source[0, :-1].tolist()], [hypothesis.tokens[:-1]])
            assert hypothesis.log_prob == pytest.approx(-batch_loss(made, given).total.item(), abs=1e-4)


@every_wiring
def test_translation_reads_the_most_probable_slot(overrides: tuple[str, ...], draws: Draws) -> None:
    """In evaluation the sampled objective is what training would have been, had it drawn the heaviest slots."""
    made, batch = small(*overrides, *HARD), one_pair()
    arguments = (Source.of(batch), batch.target_in)
    evaluated = made.eval()(*arguments)
    assert evaluated.terms == {}
    draws.left = iter(evaluated.weights[0].argmax(-1).t().flatten().tolist())
    drawn = made.train()(*arguments)
    torch.testing.assert_close(evaluated.features, drawn.features)
    torch.testing.assert_close(evaluated.weights, drawn.weights)


def test_an_enumerating_model_carries_the_soft_context_on_in_translation_too() -> None:
    for wiring in WITH_ATTENTION:
        soft, made = small(f"decoder={wiring}").eval(), small(f"decoder={wiring}", *ENUMERATE).eval()
        batch = one_pair()
        memory, state = started(made, Source.of(batch))
        _, own = started(soft, Source.of(batch))
        for t in range(STEPS):
            embedded = made.target_embedding(batch.target_in[:, t])
            top, weights = seen(soft, embedded, own, memory)
            mixture = attentive(made).step(Words(embedded), state, memory)[0].mixture
            assert mixture is not None
            _, own = soft.decoder.step(Words(embedded), own, memory)
            _, state = made.decoder.step(Words(embedded), state, memory)
            torch.testing.assert_close(state.hidden, own.hidden)
            torch.testing.assert_close(state.feed, own.feed)
            heaviest = memory.attention.values[:, 0, int(weights.argmax())]
            alone = mixture.heaviest(1)
            torch.testing.assert_close(alone.features[:, 0], attentive(made).readout(top, embedded, heaviest))
            assert alone.log_weights.tolist() == [[0]]
