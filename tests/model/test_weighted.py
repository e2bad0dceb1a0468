"""The Weighted Transformer: numbers worked by hand, whole layers against the equations, and what training leaves."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.model.transformer.transformer_decoder import TransformerDecoder
from nmt.model.transformer.transformer_encoder import TransformerEncoder
from nmt.model.transformer.weighted import Branches, branch_weights
from tests.catalogue import model, sentences

WEIGHTED = ("encoder=transformer", "decoder=transformer", "encoder.branches=true", "decoder.branches=true")


def test_two_branches_by_hand() -> None:
    made = Branches(heads=2, context_size=1, size=2, inner_size=2)
    values = {
        "k": [0, math.log(3)],  # kappa = 1/4, 3/4
        "a": [math.log(2), 0],  # alpha = 2/3, 1/3
        "out.weight": [[1], [-1], [2], [0]],
        "inner.weight": [[1, 1], [-1, 5]],
        "inner_bias": [1, 2],
        "outer.weight": [[3], [-1], [7], [7]],
        "outer_bias": [0, 1, 0.5, -2],
    }
    made.load_state_dict({name: torch.tensor(value, dtype=torch.float32) for name, value in values.items()})
    # 2 W_1^O / 4 = (1/2, -1/2), and 1/2 - 1/2 + 1 = 1, of which the first branch makes (3, -1) + (0, 1) = (3, 0).
    # 3 W_2^O 3/4 = (9/2, 0), and max(0, 2 - 9/2) = 0, of which the second branch makes its bias (1/2, -2).
    contexts = torch.tensor([2.0, 3.0]).view(1, 2, 1, 1)
    torch.testing.assert_close(made(contexts), torch.tensor([[[2 + 1 / 6, -2 / 3]]]))


def test_fresh_branches_add_a_share_of_what_they_add_with_weights_of_one() -> None:
    """1 / H^2: kappa and alpha are 1 / H, and a network without biases is homogeneous. The paper's equations say so."""
    made = Branches(heads=4, context_size=3, size=5, inner_size=8)
    contexts = torch.randn(2, 4, 6, 3, generator=torch.Generator().manual_seed(1))
    outer = made.outer(made.inner(made.out(contexts)).relu()).sum(1)
    torch.testing.assert_close(made(contexts), outer / 16)


def branched(made: Branches, contexts: Tensor) -> Tensor:
    """Eq. 3 to 5 for contexts [H, T, d], branch by branch -> [T, D]."""
    heads, size = len(contexts), made.out.weight.shape[0] // len(contexts)
    kappa, alpha = made.k.exp() / made.k.exp().sum(), made.a.exp() / made.a.exp().sum()
    total = torch.zeros(contexts.shape[1], size, dtype=contexts.dtype)
    for i in range(heads):
        out, inner, outer = (part.weight.chunk(heads)[i] for part in (made.out, made.inner, made.outer))
        head = kappa[i] * contexts[i] @ out.T
        hidden = (head @ inner.T + made.inner_bias.chunk(heads)[i]).clamp(min=0)
        total = total + alpha[i] * (hidden @ outer.T + made.outer_bias.chunk(heads)[i])
    return total


def test_whole_layers_are_the_equations() -> None:
    """x + sum_i alpha_i FFN_i(kappa_i head_i W_i^O); the decoder's masked self-attention has no branches."""
    made = model(*WEIGHTED, "attention/score=scaled_dot", "attention.size=null", "encoder.layers=1", "decoder.layers=1")
    assert isinstance(made.encoder, TransformerEncoder)
    assert isinstance(made.decoder, TransformerDecoder)
    (layer,), (decoder_layer,) = made.encoder.layers, made.decoder.layers
    source, mask, lengths = sentences([4], 23)
    steps = torch.arange(4).unsqueeze(0)
    x = made.encoder.entrance(made.source_embedding(source), steps)
    own = layer.self_attention
    inner = layer.around_self.norm(x)
    parts = [part for part in (own.query, own.key, own.value) if part is not None]
    queries, keys, values = (part(inner)[0].unflatten(1, (3, 4)).transpose(0, 1) for part in parts)
    contexts = torch.softmax(queries @ keys.transpose(1, 2) / 2, -1) @ values
    assert isinstance(own.merge, Branches)
    expected = x[0] + branched(own.merge, contexts)
    torch.testing.assert_close(layer(x, mask, steps)[0], expected)
    slots = made.encoder(made.source_embedding(source), mask, lengths).values[0] * made.encoder.size**0.5
    torch.testing.assert_close(slots, made.encoder.norm(expected))
    assert decoder_layer.self_attention.merge is None
    assert isinstance(decoder_layer.attention.merge, Branches)
    assert not hasattr(layer, "feed_forward")
    assert not hasattr(decoder_layer, "feed_forward")


def test_the_branches_share_the_parameters_of_one_network() -> None:
    """Beside kappa and alpha: a bias of the output for each branch, but none of W^O, and one normalisation less."""

    def count(*overrides: str) -> int:
        made = model(*WEIGHTED[:2], *overrides, "encoder.layers=1")
        return sum(parameter.numel() for parameter in made.encoder.parameters())

    heads, size = 3, 12
    assert count("encoder.branches=true") - count() == 2 * heads + (heads - 1) * size - size - 2 * size


def test_kappa_and_alpha_start_equal_and_sum_to_one_after_any_update() -> None:
    made = Branches(heads=3, context_size=2, size=5, inner_size=6)
    assert made.kappa.tolist() == made.alpha.tolist() == pytest.approx([1 / 3] * 3)
    optimizer = torch.optim.SGD(made.parameters(), lr=50.0)
    contexts = torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(2))
    nn.init.ones_(made.inner_bias)
    for _ in range(3):
        optimizer.zero_grad()
        (made(contexts)[..., 0] - 1).tanh().sum().backward()
        optimizer.step()
    for weights in (made.kappa, made.alpha):
        assert weights.tolist() != pytest.approx([1 / 3] * 3, abs=0.01)
        assert weights.sum().item() == pytest.approx(1)
        assert weights.min().item() >= 0


def test_the_curves_name_every_weight() -> None:
    made = model(*WEIGHTED, "decoder.layers=1")
    weights = branch_weights(made)
    of_encoder = [f"branches/encoder.{layer}/{kind}_{head}" for layer in (1, 2) for kind in ("kappa", "alpha")
                  for head in (1, 2, 3)]  # fmt: skip
    of_decoder = [f"branches/decoder.1/{kind}_{head}" for kind in ("kappa", "alpha") for head in (1, 2)]
    assert sorted(weights) == sorted([*of_encoder, *of_decoder])
    assert sum(weights[f"branches/encoder.2/alpha_{head}"] for head in (1, 2, 3)) == pytest.approx(1)
    assert isinstance(made.decoder, TransformerDecoder)
    merge = made.decoder.layers[0].attention.merge
    assert isinstance(merge, Branches)
    assert weights["branches/decoder.1/kappa_2"] == pytest.approx(merge.kappa[1].item())
    assert branch_weights(model("encoder=transformer", "decoder=transformer")) == {}
