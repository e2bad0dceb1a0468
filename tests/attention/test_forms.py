"""What a part claims of its computation holds, and a subclass with another computation inherits no claim."""

import pytest
import torch
from torch import Tensor

from nmt.attention import AdditiveForm, Product
from nmt.attention.normalisers import Softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Dot, General, ScaledDot
from nmt.attention.windows import Global
from tests.catalogue import NORMALISERS, READS, SCORES, WINDOWS, attention

F64 = torch.float64


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("score", SCORES)
def test_a_form_computes_the_energies_of_its_score(score: str, heads: int) -> None:
    made = attention(score, heads=heads).score
    form = made.form
    queries = torch.randn(2, heads, 5, made.query_size, dtype=F64)
    keys = made.prepare(torch.randn(2, heads, 7, made.key_size, dtype=F64))
    if isinstance(form, Product):
        energies = form.scale * queries @ keys.transpose(-1, -2)
    elif isinstance(form, AdditiveForm):
        weight, v = (part.unflatten(0, (heads, -1)) for part in form)
        projected = torch.einsum("had,bhtd->bhta", weight, queries)
        energies = torch.einsum("bhtsa,ha->bhts", torch.tanh(projected.unsqueeze(3) + keys.unsqueeze(2)), v)
    else:
        return
    torch.testing.assert_close(energies, made(queries, keys))


def test_only_these_parts_claim_a_form() -> None:
    assert [score for score in SCORES if attention(score).score.form is not None] == [
        *("additive", "concat", "dot", "general", "scaled_dot")
    ]
    assert [window for window in WINDOWS if attention(window=window).window.is_everything] == ["global"]
    assert [read for read in READS if attention(read=read).read.is_sum] == ["soft"]
    assert [choice for choice in NORMALISERS if attention(normaliser=choice).normaliser.is_softmax] == ["softmax"]
    assert attention("additive", coverage=True).score.form is None


class Other:
    """Another computation in place of the one of a base."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return inputs[0]


@pytest.mark.parametrize("base", [Additive, Dot, General, ScaledDot, Global, Soft, Softmax])
def test_a_subclass_with_another_computation_inherits_no_claim(base: type) -> None:
    part = type("Mine", (base,), {"forward": Other.forward})
    claims = [getattr(part, name) for name in ("form", "is_everything", "is_sum", "is_softmax") if hasattr(part, name)]
    assert len(claims) == 1
    assert not claims[0]
