"""What must hold for every mechanism of the catalogue, found through its yaml."""

import itertools
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attended, Attention, Memory, Score, View, Window
from nmt.attention.head_parameters import HeadLinear
from nmt.kernels import plain
from tests.catalogue import NORMALISERS, READS, SCORES, WINDOWS, attention, thinned

B, T, S, D = 3, 5, 7, 10
LENGTHS = [7, 4, 1]
# Windows that hide something, and a table that ends before the longest sentence.
NARROW: dict[str, Any] = {"radius": 2, "slots": [0, [1, 2], None, 3], "positions": 5}

MECHANISMS: list[dict[str, Any]] = [
    {"score": score, "window": window, "read": read, "heads": heads}
    for heads in (1, 2)
    for score, window, read in itertools.product(SCORES, WINDOWS, READS)
    # Reads see nothing of the score but its weights: with several heads it is enough to cross each with one score.
    if heads == 1 or "additive" in score or read == "soft"
]
MECHANISMS += [
    {"score": "additive", "window": window, "read": read, "heads": heads, "coverage": True}
    for window, read, heads in itertools.product(WINDOWS, READS, (1, 2))
]
MECHANISMS += [{"score": "additive", "window": window, "read": "hard", "objective": "enumerate"} for window in WINDOWS]
MECHANISMS += [{"window": "relative", "values": True, "distance": 1, "heads": heads} for heads in (1, 2)]
MECHANISMS += [{"score": score, "project": project} for score in SCORES for project in (False, True)]
# Normalisers see energies and what is visible.
SPARSE = [normaliser for normaliser in NORMALISERS if normaliser != "softmax"]
MECHANISMS += [
    {"score": "dot", "window": window, "read": read, "normaliser": normaliser, "heads": heads}
    for normaliser, window, read, heads in itertools.product(SPARSE, WINDOWS, READS, (1, 2))
    if read == "soft" or window == "local_p"
]
MECHANISMS += [{"score": score, "normaliser": normaliser} for score, normaliser in itertools.product(SCORES, SPARSE)]
MECHANISMS += [{"score": "additive", "normaliser": normaliser, "coverage": True} for normaliser in SPARSE]


def named(mechanism: dict[str, Any]) -> str:
    return " ".join(str(value) if isinstance(value, str) else f"{key}={value}" for key, value in mechanism.items())


every = pytest.mark.parametrize("mechanism", thinned(MECHANISMS, 2), ids=named)
# With coverage a step depends on the ones before it, and all are never taken at once.
at_once = [own for own in MECHANISMS if "coverage" not in own]
every_at_once = pytest.mark.parametrize("mechanism", thinned(at_once, 2), ids=named)


def inputs(seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, values, mask, steps."""
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(B, T, D, generator=generator, dtype=torch.float64)
    values = torch.randn(B, S, D, generator=generator, dtype=torch.float64)
    mask = torch.arange(S) < torch.tensor(LENGTHS)[:, None]
    steps = torch.arange(T).expand(B, T)
    return queries, values, mask, steps


class Seen(NamedTuple):
    """What was attended to, the weights included."""

    context: Tensor
    weights: Tensor
    terms: dict[str, Tensor]


def attend(made: Attention, queries: Tensor, values: Tensor, mask: Tensor, steps: Tensor) -> Seen:
    """All steps at once, or one by one where they depend on each other."""
    memory = made.remember(values, mask)
    state = made.start(memory)
    if state:
        return attend_stepwise(made, queries, memory, steps)
    attended: Attended = made(queries, memory, steps)
    assert attended.weights is not None
    return Seen(attended.context, attended.weights, attended.terms)


def attend_stepwise(made: Attention, queries: Tensor, memory: Memory, steps: Tensor) -> Seen:
    state = made.start(memory)
    found = []
    for t in range(queries.shape[1]):
        found.append(made(queries[:, t : t + 1], memory, steps[:, t : t + 1], state))
        state = found[-1].state
    contexts, weights = torch.cat([now.context for now in found], 1), torch.cat([now.weights for now in found], 2)
    return Seen(contexts, weights, {})


@every
def test_padding_changes_nothing(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    before = attend(made, queries, values, mask, steps)
    other = torch.where(mask.unsqueeze(-1), values, torch.full_like(values, 123.0))
    after = attend(made, queries, other, mask, steps)
    torch.testing.assert_close(before.context, after.context, rtol=0, atol=0)
    torch.testing.assert_close(before.weights, after.weights, rtol=0, atol=0)
    assert (before.weights.masked_select(~mask[:, None, None]) == 0).all()


@every
def test_weights_are_a_distribution_over_visible_slots(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    weights = attend(made, queries, values, mask, steps).weights
    assert weights.shape == (B, made.heads, T, S)
    assert (weights >= 0).all()
    view: View = made.window(made.split(made.query, queries), steps.unsqueeze(1), mask.unsqueeze(1))
    visible = view.visible.expand(B, made.heads, T, S)
    if made.score.max_positions is not None:
        visible = visible & (torch.arange(S) < made.score.max_positions)
    assert (weights.masked_select(~visible) == 0).all()
    shares = weights if view.factor is None else weights / view.factor.where(visible, 1)
    if made.normaliser.sums_to_one:
        torch.testing.assert_close(shares.sum(-1), visible.any(-1).double())
    assert (shares.sum(-1) < 1 + 1e-9).all()


@every
def test_a_row_with_nothing_to_look_at_gives_zeros(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism)
    queries, values, mask, steps = inputs()
    mask = mask.clone()
    mask[1] = False
    values.requires_grad_()
    for training in (False, True):
        attended = attend(made.train(training), queries, values, mask, steps)
        assert (attended.weights[1] == 0).all()
        assert (attended.context[1] == 0).all()
        wanted = attended.context.sum() + sum(term.sum() for term in attended.terms.values())
        inwards = torch.autograd.grad(wanted, [values, *made.parameters()], allow_unused=True)
        assert all(torch.isfinite(gradient).all() for gradient in inwards if gradient is not None)
        assert all((term[1] == 0).all() for term in attended.terms.values())


@every_at_once
def test_steps_one_by_one_equal_all_at_once(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    whole = attend(made, queries, values, mask, steps)
    stepwise = attend_stepwise(made, queries, made.remember(values, mask), steps)
    torch.testing.assert_close(stepwise.context, whole.context)
    torch.testing.assert_close(stepwise.weights, whole.weights)


@every
def test_a_batch_equals_its_sentences_one_by_one(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    whole = attend(made, queries, values, mask, steps)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        alone = attend(made, queries[one], values[one, :length], mask[one, :length], steps[one])
        torch.testing.assert_close(alone.context[0], whole.context[row])
        torch.testing.assert_close(alone.weights[0], whole.weights[row, ..., :length])


@every
def test_gradients_agree_with_finite_differences(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    queries, values = queries[:2, :2].clone().requires_grad_(), values[:2, :4].clone().requires_grad_()

    def found(own_queries: Tensor, own_values: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        attended = attend(made, own_queries, own_values, mask[:2, :4], steps[:2, :2])
        return attended.context, attended.weights

    # Along random directions, in which a wrong entry shows as surely as alone.
    assert torch.autograd.gradcheck(found, (queries, values, *made.parameters()), fast_mode=True)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("score", "coverage", "normaliser"),
    [
        *((score, False, "softmax") for score in SCORES),
        ("additive", True, "softmax"),
        *(("general", False, normaliser) for normaliser in SPARSE),
    ],
    ids=lambda value: str(value),
)
def test_heads_are_mechanisms_of_one_head_side_by_side(
    score: str, coverage: bool, normaliser: str, window: str
) -> None:
    heads, size = 3, 4
    settings = {"normaliser": normaliser, "coverage": coverage, **NARROW}
    made = attention(score, window, heads=heads, size=heads * size, **settings)
    queries, values, mask, steps = inputs()
    whole = attend(made, queries, values, mask, steps)
    head_queries, head_values = made.split(made.query, queries), made.split(made.value, values)
    head_keys = head_values if made.key is None else made.split(made.key, values)  # unused where there is no projection
    contexts = []
    for head in range(heads):
        alone = attention(score, window, query_size=size, value_size=size, size=size, project=False, **settings)
        for name, parameter in alone.named_parameters():
            parameter.data = made.get_parameter(name).chunk(heads)[head]
        memory = alone.remember(head_values[:, head], mask, head_keys[:, head])
        attended = attend_stepwise(alone, head_queries[:, head], memory, steps)
        torch.testing.assert_close(whole.weights[:, head], attended.weights[:, 0])
        contexts.append(attended.context)
    assert made.out is not None
    torch.testing.assert_close(whole.context, made.out(torch.cat(contexts, -1)))


@every
def test_weights_are_left_out_where_nobody_wants_them(mechanism: dict[str, Any]) -> None:
    made = attention(**mechanism, **NARROW)
    queries, values, mask, steps = inputs()
    mask[1] = False  # nothing to look at
    memory = made.remember(values, mask)
    state = made.start(memory)
    queries, steps = (queries[:, :1], steps[:, :1]) if state else (queries, steps)
    full: Attended = made(queries, memory, steps, state)
    lean: Attended = made(queries, memory, steps, state, weights=False)
    assert lean.weights is None
    torch.testing.assert_close(lean._replace(weights=full.weights, stages=full.stages), full)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("window", ["global", "causal", "biased"])
@pytest.mark.parametrize("score", ["dot", "general", "scaled_dot"])
def test_a_projected_product_without_weights_is_torchs(
    score: str, window: str, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = attention(score, "causal" if window == "causal" else "global", heads=heads, project=True)
    queries, values, mask, steps = inputs()
    mask[1] = False
    if window == "biased":
        made.window = Biased(made.window.query_size)
    memory = made.remember(values.requires_grad_(), mask)
    whole = made(queries, memory, steps).context
    gradient = torch.autograd.grad(whole.square().sum(), values, retain_graph=True)

    def never(*_: object) -> Tensor:
        raise AssertionError("all weights were computed")

    monkeypatch.setattr("nmt.attention.normalisers.masked_softmax", never)
    lean = made(queries, memory, steps, weights=False).context
    torch.testing.assert_close(lean, whole)
    torch.testing.assert_close(torch.autograd.grad(lean.square().sum(), values), gradient)
    with plain(), pytest.raises(AssertionError, match="all weights"):
        made(queries, memory, steps, weights=False)


class Biased(Window):
    """All real positions, later ones preferred."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        return View(mask.unsqueeze(-2), bias=torch.arange(mask.shape[-1]) / 3.0)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("score", SCORES)
def test_every_parameter_has_a_first_value(score: str, window: str) -> None:
    made = attention(score, window, heads=2, coverage=score == "additive")
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.fill_(torch.nan)
    for part in made.modules():
        if isinstance(part, Score | Window | HeadLinear | nn.Linear):
            part.reset_parameters()
    assert [name for name, parameter in made.named_parameters() if parameter.isnan().any()] == []
