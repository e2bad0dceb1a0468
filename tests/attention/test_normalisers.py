"""Normalisers: numbers worked by hand, the package `entmax`, masks, types, and one that no fast form knows."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.attention import Attention, Normaliser
from nmt.attention.normalisers import Entmax, Sink, Softmax, Sparsemax
from nmt.attention.reads import draw
from nmt.data.batch import make_batch
from nmt.kernels.energies import masked_softmax
from nmt.model import Seq2Seq, Source
from nmt.training.loss import batch_loss
from tests.catalogue import NORMALISERS, attention, model, sentences

F64 = torch.float64
#: Each yaml file, and settings that make another computation.
VARIANTS: dict[str, dict[str, Any]] = {
    **{choice: {"normaliser": choice} for choice in NORMALISERS},
    "cooler": {"normaliser": "softmax", "temperature": 0.5},
    "temperature": {"normaliser": "softmax", "temperature": None},
    "alpha 1.3": {"normaliser": "entmax", "alpha": 1.3},
    "alpha 3": {"normaliser": "entmax", "alpha": 3.0},
    "learned": {"normaliser": "entmax", "alpha": None},
}
each = pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))


def normaliser(variant: dict[str, Any], heads: int = 3) -> Normaliser:
    return attention("dot", heads=heads, **variant).normaliser


def everything(*shape: int) -> Tensor:
    return torch.ones(shape, dtype=torch.bool)


@pytest.mark.parametrize(
    ("made", "energies", "shares"),
    [
        (Softmax(), [0, math.log(3)], [1 / 4, 3 / 4]),
        (Softmax(2.0), [0, 2 * math.log(3)], [1 / 4, 3 / 4]),
        # exp(0) in the sink: 1 / (1 + 1 + 2) and 2 / (1 + 1 + 2)
        (Sink(), [0, math.log(2)], [1 / 4, 1 / 2]),
        # theta = (0.5 + 0.1 - 1) / 2 = -0.2
        (Sparsemax(), [0.5, 0.1, -0.3], [0.7, 0.3, 0]),
        (Sparsemax(), [5, 3.5, 1], [1, 0, 0]),
        # z = e / 2 = (0.4, 0, -1); with two slots the mean is 0.2, the sum of squares about it 0.08, and
        # theta = 0.2 - sqrt((1 - 0.08) / 2)
        (Entmax(), [0.8, 0, -2], [(0.2 + math.sqrt(0.46)) ** 2, (math.sqrt(0.46) - 0.2) ** 2, 0]),
        (Entmax(2.0), [0.5, 0.1, -0.3], [0.7, 0.3, 0]),
        # z = 2 e: sqrt(1 - theta) + sqrt(0 - theta) = 1 with theta = 0
        (Entmax(3.0), [0.5, 0, -1], [1, 0, 0]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Normaliser) else str(value),
)
def test_by_hand(made: Normaliser, energies: list[float], shares: list[float]) -> None:
    found = made.double()(torch.tensor([[[energies]]], dtype=F64), everything(1, len(energies)))
    torch.testing.assert_close(found.flatten(), torch.tensor(shares, dtype=F64))
    assert [value == 0 for value in found.flatten().tolist()] == [value == 0 for value in shares]


def test_a_learned_alpha_starts_at_one_and_a_half() -> None:
    energies = torch.randn(2, 3, 4, 9, dtype=F64)
    torch.testing.assert_close(
        Entmax(None, heads=3).double()(energies, everything(4, 9)), Entmax()(energies, everything(4, 9))
    )


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0, 1000.0])
def test_shares_and_gradients_are_those_of_the_package_entmax(spread: float) -> None:
    package = pytest.importorskip("entmax", reason="the package entmax is not installed: pip install -e '.[dev]'")
    generator = torch.Generator().manual_seed(2)
    energies = (torch.randn(2, 3, 5, 17, generator=generator, dtype=F64) * spread).requires_grad_()
    upstream = torch.randn(2, 3, 5, 17, generator=generator, dtype=F64)
    learned = Entmax(None, heads=3).double()
    with torch.no_grad():
        learned.get_parameter("z").copy_(torch.tensor([-1.0, 0.3, 2.0]))
    alphas = (1 + torch.sigmoid(learned.get_parameter("z")))[:, None, None].expand(2, 3, 5, 1)
    pairs = [
        (Sparsemax(), package.sparsemax(energies, -1)),
        (Entmax(), package.entmax15(energies, -1)),
        (Entmax(1.2), package.entmax_bisect(energies, 1.2, -1)),
        (learned, package.entmax_bisect(energies, alphas, -1)),
    ]
    for made, theirs in pairs:
        ours = made(energies, everything(5, 17))
        torch.testing.assert_close(ours, theirs)
        inputs = [energies, *made.parameters()]
        gradients = (torch.autograd.grad((shares * upstream).sum(), inputs) for shares in (ours, theirs))
        for mine, wanted in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-8)


@each
def test_gradients_agree_with_finite_differences(variant: dict[str, Any]) -> None:
    made = normaliser(variant)
    energies = torch.randn(2, 3, 2, 5, dtype=F64, generator=torch.Generator().manual_seed(4)).requires_grad_()
    visible = torch.tensor([[True, True, False, True, True], [True, False, True, True, False]])
    assert torch.autograd.gradcheck(lambda own, *_: made(own, visible), (energies, *made.parameters()))


@each
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_masks_and_lowest_energies_give_exact_zeros_in_every_type(variant: dict[str, Any], kind: torch.dtype) -> None:
    made = normaliser(variant).float()
    energies = (30 * torch.randn(2, 3, 4, 9, generator=torch.Generator().manual_seed(5))).to(kind)
    energies[..., 2] = -torch.inf
    energies.requires_grad_()
    visible = torch.rand(4, 9, generator=torch.Generator().manual_seed(6)) > 0.4
    visible[1] = False
    shares = made(energies, visible)
    assert shares.dtype is torch.float32
    seen = visible & (torch.arange(9) != 2)
    assert not shares[..., ~seen].any()
    sums, wanted = shares.sum(-1), seen.any(-1).float().expand(2, 3, 4)
    if made.sums_to_one:
        torch.testing.assert_close(sums, wanted)
    assert (sums <= wanted + 1e-6).all()
    gradients = torch.autograd.grad(shares.square().sum(), [energies, *made.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)


@each
def test_nan_is_passed_on(variant: dict[str, Any]) -> None:
    energies = torch.tensor([1.0, math.nan, 2.0], dtype=F64).expand(1, 3, 1, 3)
    assert normaliser(variant)(energies, everything(1, 3)).isnan().any()


@each
def test_every_parameter_has_a_first_value(variant: dict[str, Any]) -> None:
    made = normaliser(variant)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.fill_(torch.nan)
    made.reset_parameters()
    assert not any(parameter.isnan().any() for parameter in made.parameters())


@pytest.mark.parametrize("choice", ["sparsemax", "entmax"])
def test_a_draw_is_of_the_support(choice: str) -> None:
    made = attention("dot", read="hard", normaliser=choice, expected=0.0).train()
    values = torch.randn(2, 7, 10, dtype=F64)
    memory = made.remember(values, everything(2, 7))
    queries, steps = torch.randn(2, 200, 10, dtype=F64) / 3, torch.zeros(2, 200, dtype=torch.int64)
    attended = made(queries, memory, steps)
    assert (attended.weights == 0).any()
    drawn = (attended.context.unsqueeze(2) == values.unsqueeze(1)).all(-1)  # [B, T, S]
    assert (drawn.sum(-1) == 1).all()
    assert (attended.weights[:, 0][drawn] > 0).all()
    assert all(term.isfinite().all() for term in attended.terms.values())


def test_a_draw_is_never_of_a_slot_without_a_share() -> None:
    slots = draw(torch.tensor([0.0, 1e-30, 0.0]).expand(500, 3))
    assert (slots == 1).all()


class Squares(Normaliser):
    """a_j = (1 + e_j^2) / sum_i (1 + e_i^2): a normaliser that no fast form can know."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads)
        self.calls = 0

    def forward(self, energies: Tensor, visible: Tensor) -> Tensor:
        self.calls += 1
        squares = (1 + energies**2).masked_fill(~visible, 0.0)
        return squares / squares.sum(-1, keepdim=True).clamp(min=1)


FAMILIES = [
    *(["decoder=bahdanau", f"attention/score={score}"] for score in ("additive", "dot", "general", "concat")),
    *(["decoder=luong", f"attention/score={score}"] for score in ("additive", "general")),
    ["decoder=luong", "decoder.input_feeding=false"],
    ["decoder=conditional", "attention/score=additive"],
    ["decoder=conv", "encoder=conv", "attention/score=scaled_dot"],
    ["decoder=transformer", "encoder=transformer", "attention/score=scaled_dot", "attention.size=null"],
    ["decoder=luong", "context=hierarchical", "context.sentences=2"],
    ["decoder=luong", "context=hierarchical", "context.sentences=2", "context.words=over_attention"],
]


def planted(made: Seq2Seq) -> list[Squares]:
    """Put `Squares` into every attention of a model."""
    squares = []
    for part in made.modules():
        if isinstance(part, Attention):
            part.normaliser = Squares(part.heads)
            squares.append(part.normaliser)
    return squares


@pytest.mark.parametrize("words", FAMILIES, ids=" ".join)
def test_no_fast_form_computes_another_normaliser(words: list[str]) -> None:
    batch = make_batch([[5, 6, 7], [8], [9, 4]], [[9, 4], [5, 6, 7, 8, 9], [4]])
    if "context.sentences=2" in words:
        batch = batch._replace(context=torch.randint(4, 20, (3, 2, 4), generator=torch.Generator().manual_seed(1)))
    results, losses = [], []
    for fast in ("true", "false"):
        made = model(*words, f"model.fast={fast}", train=True)
        losses.append(batch_loss(made, batch).total.item())
        squares = planted(made)
        loss = batch_loss(made, batch).total
        gradients = torch.autograd.grad(loss, list(made.parameters()))
        assert all(each.calls for each in squares), "each attention asks its normaliser"
        results.append([loss, *gradients, *searched(made)])
    for fast, plain in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    assert abs(losses[0] - results[0][0].item()) > 1e-4, "the softmax gives another loss"


def searched(made: Seq2Seq) -> list[Tensor]:
    """Log-probabilities and weights of two steps of search."""
    source, mask, lengths = sentences([4, 2], 23)
    results: list[Tensor] = []
    with torch.inference_mode():
        memory, state = made.eval().encode(Source(source, mask, lengths), searching=True)
        for tokens in ([1, 1], [5, 9]):
            stepped = made.step(torch.tensor(tokens), state, memory)
            state = stepped.state
            assert stepped.weights is not None
            results += [stepped.log_probs, stepped.weights]
    return results


def test_without_weights_torchs_form_is_for_the_softmax_alone() -> None:
    queries, values, steps = torch.randn(2, 5, 10), torch.randn(2, 7, 10), torch.arange(5).expand(2, 5)
    for choice in NORMALISERS:
        made = attention("scaled_dot", normaliser=choice).float()
        memory = made.remember(values, everything(2, 7))
        full, lean = (made(queries, memory, steps, weights=weights).context for weights in (True, False))
        torch.testing.assert_close(full, lean)


def test_masked_softmax_is_the_softmax_of_the_kernels() -> None:
    assert [choice for choice in NORMALISERS if normaliser({"normaliser": choice}).is_softmax] == ["softmax"]
    assert not Softmax(0.5).is_softmax
    assert not Softmax(None).is_softmax
    energies = torch.randn(1, 1, 3, 5)
    torch.testing.assert_close(Softmax()(energies, everything(3, 5)), masked_softmax(energies, everything(3, 5)))
