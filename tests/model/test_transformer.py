"""Transformers: what must hold of every decoder, torch's own layers, causality, positions, and what is refused."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attention
from nmt.data.batch import make_batch
from nmt.model import Seq2Seq, Source
from nmt.model.positions import Learned, sinusoids
from nmt.model.transformer.transformer_decoder import TransformerDecoder
from nmt.model.transformer.transformer_encoder import TransformerEncoder
from nmt.model.transformer.transformer_layer import DecoderLayer, EncoderLayer
from nmt.system.errors import UserError
from nmt.training.loss import batch_loss
from tests.catalogue import SCORES, WINDOWS, model, options, sentences, thinned
from tests.model import test_wirings as properties

BOTH = ("encoder=transformer", "decoder=transformer")
ONE_HEAD = ("heads=1", "project=false")


def window(place: str, choice: str) -> tuple[str, ...]:
    """Words that choose a window of self-attention, and what it cannot do without."""
    more = {"forced": "slots=[null,[0,1],0]", "local_m": "radius=1", "local_p": "radius=2", "relative": "distance=2"}
    setting = [f"{place}.self_attention.window.{more[choice]}"] if choice in more else []
    return (f"{place}/window={choice}", *setting)


#: Windows of each place; a target's length is not known before its end.
WINDOWED = [
    (place, own) for place in ("encoder", "decoder") for own in WINDOWS if (place, own) != ("decoder", "local_p")
]
COMBINATIONS = [
    BOTH,
    ("decoder=transformer",),
    ("encoder=embeddings", "decoder=transformer"),
    ("encoder=transformer", "decoder=luong"),
    ("encoder=transformer", "decoder=none"),
    (*BOTH, "encoder.norm=post", "decoder.norm=post"),
    (*BOTH, "decoder.layers=1", "decoder.feed_forward_size=3"),
    (*BOTH, "encoder.branches=true", "decoder.branches=true"),
    (*BOTH, "decoder.branches=true", "decoder.norm=post", "attention.coverage=true"),
    (*BOTH, "attention.coverage=true"),
    (*BOTH, "attention/read=hard"),
    (*BOTH, "attention.heads=1", "attention.project=false"),
    *((*BOTH, f"attention/score={score}") for score in SCORES if score != "additive"),
    *((*BOTH, f"{place}/score={score}") for place in ("encoder", "decoder") for score in SCORES),
    *((*BOTH, *window(place, choice)) for place, choice in WINDOWED),
    *((*BOTH, f"{place}/positions={own}") for place in ("encoder", "decoder") for own in options("positions")),
    *((*BOTH, *(f"{place}.self_attention.{word}" for word in ONE_HEAD)) for place in ("encoder", "decoder")),
    *((*BOTH, f"{place}/positions=relative", f"{place}.positions.values=true") for place in ("encoder", "decoder")),
]
every = pytest.mark.parametrize("overrides", thinned(COMBINATIONS, 3), ids=" ".join)


@every
@properties.every_property
def test_what_holds_for_every_decoder(holds: Callable[[tuple[str, ...]], None], overrides: tuple[str, ...]) -> None:
    holds(overrides)


@pytest.mark.parametrize("overrides", [own for own in COMBINATIONS if "attention/read=hard" not in own], ids=" ".join)
def test_every_parameter_gets_a_gradient(overrides: tuple[str, ...]) -> None:
    properties.test_every_parameter_gets_a_gradient(overrides)


@every
def test_changing_a_word_changes_no_feature_before_it(overrides: tuple[str, ...]) -> None:
    properties.sees_no_later_word(overrides)


def test_gradients_agree_with_finite_differences() -> None:
    properties.agrees_with_finite_differences(
        model(*BOTH, "encoder/positions=relative", "decoder/positions=learned", pieces=(7, 5)),
        *("encoder.layers.0.self_attention.also.0.a.weight", "encoder.layers.1.feed_forward.inner.bias"),
        *("decoder.entrance.positions.table.weight", "decoder.layers.0.self_attention.query.bias"),
        *("decoder.layers.0.attention.value.bias", "decoder.layers.1.around_attention.norm.weight"),
    )
    distances = ("encoder/positions=relative", "encoder.positions.values=true", "decoder/positions=transformer_xl")
    properties.agrees_with_finite_differences(
        model(*BOTH, *distances, pieces=(7, 5)),
        "encoder.layers.0.self_attention.also.0.of_values.weight",
        *(f"decoder.layers.0.self_attention.also.1.{name}" for name in ("w", "W_R.weight")),
    )


def layers_of(made: Seq2Seq) -> tuple[list[EncoderLayer], list[DecoderLayer]]:
    """The layers of a Transformer."""
    assert isinstance(made.encoder, TransformerEncoder)
    assert isinstance(made.decoder, TransformerDecoder)
    return [layer for layer in made.encoder.layers if isinstance(layer, EncoderLayer)], list(made.decoder.layers)


def torch_weights(own: Attention) -> dict[str, Tensor]:
    """The parameters of `torch.nn.MultiheadAttention` that make it this attention."""
    parts = [own.query, own.key, own.value]
    assert own.out is not None
    weights = [part.weight for part in parts if part is not None]
    biases = torch.cat([part.bias for part in parts if part is not None])
    names = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
    inwards = (
        {"in_proj_weight": torch.cat(weights)}
        if len({weight.shape for weight in weights}) == 1
        else dict(zip(names, weights, strict=True))
    )
    return {**inwards, "in_proj_bias": biases, "out_proj.weight": own.out.weight, "out_proj.bias": own.out.bias}


SCALED = ("attention/score=scaled_dot", "attention.size=null", "attention.heads=5")


@pytest.mark.parametrize("encoder", ["transformer", "gru"])
@pytest.mark.parametrize("kind", ["self", "masked", "source"])
def test_attention_is_that_of_torch(kind: str, encoder: str) -> None:
    made = model(f"encoder={encoder}", "decoder=transformer", *SCALED, "encoder.size=15")
    assert isinstance(made.decoder, TransformerDecoder)
    if kind == "self":
        if encoder != "transformer":
            return
        own = layers_of(made)[0][1].self_attention
    else:
        layer = made.decoder.layers[1]
        own = layer.self_attention if kind == "masked" else layer.attention
    size = 15 if kind == "self" else 10
    value_size = made.encoder.size if kind == "source" else size
    theirs = nn.MultiheadAttention(
        size, own.heads, kdim=value_size, vdim=value_size, batch_first=True, dtype=torch.float64
    )
    theirs.load_state_dict(torch_weights(own))
    values = torch.randn(3, 6, value_size, dtype=torch.float64)
    queries = torch.randn(3, 4, size, dtype=torch.float64) if kind == "source" else values
    mask = torch.arange(6) < torch.tensor([[6], [1], [4]])
    steps = torch.arange(queries.shape[1]).expand(3, -1)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1) if kind == "masked" else None
    expected, weights = theirs(
        queries, values, values, key_padding_mask=~mask, attn_mask=future, average_attn_weights=False
    )
    for asked in (True, False):
        attended = own(queries, own.remember(values, mask), steps, weights=asked)
        torch.testing.assert_close(attended.context, expected)
        if asked:
            torch.testing.assert_close(attended.weights, weights)


def torch_state(layer: EncoderLayer) -> dict[str, Tensor]:
    """The parameters of torch's layer that make it this layer."""
    parts: dict[str, nn.Module] = {
        "linear1": layer.feed_forward.inner,
        "linear2": layer.feed_forward.outer,
        "norm1": layer.around_self.norm,
    }
    attentions = {"self_attn": layer.self_attention}
    if isinstance(layer, DecoderLayer):
        parts |= {"norm2": layer.around_attention.norm, "norm3": layer.around_feed_forward.norm}
        attentions["multihead_attn"] = layer.attention
    else:
        parts["norm2"] = layer.around_feed_forward.norm
    state = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()}
    return state | {
        f"{name}.{key}": part for name, own in attentions.items() for key, part in torch_weights(own).items()
    }


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_layers_are_those_of_torch(norm: str) -> None:
    norms = (f"encoder.norm={norm}", f"decoder.norm={norm}")
    made = model(*BOTH, *SCALED, *norms, "encoder.size=10", "encoder.self_attention.heads=5")
    source, mask, lengths = sentences([6, 1, 4], 23)
    target = sentences([5] * 3, 29, seed=9)[0]
    sizes: dict[str, Any] = {"d_model": 10, "nhead": 5, "dim_feedforward": 40, "dropout": 0.0, "batch_first": True}
    settings = sizes | {"norm_first": norm == "pre", "dtype": torch.float64}
    layers, decoder_layers = layers_of(made)
    assert isinstance(made.encoder, TransformerEncoder)
    assert isinstance(made.decoder, TransformerDecoder)
    x = made.encoder.entrance(made.source_embedding(source), torch.arange(6).expand(3, 6))
    for layer in layers:
        theirs = nn.TransformerEncoderLayer(**settings)
        theirs.load_state_dict(torch_state(layer))
        x = theirs(x, src_key_padding_mask=~mask)
    values = made.encoder.norm(x) * mask.unsqueeze(-1)
    encoded = made.encoder(made.source_embedding(source), mask, lengths)
    torch.testing.assert_close(encoded.values, values * 10**-0.5), "as small as embeddings; the decoder undoes it"
    y = made.decoder.entrance(made.target_embedding(target), torch.arange(5).expand(3, 5))
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for decoder_layer in decoder_layers:
        decoder_theirs = nn.TransformerDecoderLayer(**settings)
        decoder_theirs.load_state_dict(torch_state(decoder_layer))
        y = decoder_theirs(y, values, tgt_mask=future, memory_key_padding_mask=~mask)
    torch.testing.assert_close(made(Source(source, mask, lengths), target).features, made.decoder.norm(y))


def test_embeddings_enter_with_their_positions_as_in_the_paper() -> None:
    made = model(*BOTH, "encoder.size=7", "encoder.self_attention.heads=7")
    assert isinstance(made.encoder, TransformerEncoder)
    embedded = made.source_embedding(torch.tensor([[8, 9]]))
    expected = embedded * 7**0.5 + sinusoids(torch.arange(2), 7)
    torch.testing.assert_close(
        made.encoder.entrance(embedded, torch.arange(2).unsqueeze(0)), expected, check_dtype=False, atol=1e-6, rtol=1e-6
    )


def test_relative_positions_by_hand() -> None:
    """Energies x_i W^Q (x_j W^K + a_clip(j - i))^T / sqrt(d): Shaw et al. 2018, eq. 4."""
    made = model(*BOTH, "encoder/positions=relative", "encoder.positions.distance=2")
    own = layers_of(made)[0][0].self_attention
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    assert own.query is not None
    assert own.key is not None
    queries, keys = (part(x)[0].unflatten(1, (3, 4)) for part in (own.query, own.key))  # [T, H, d]
    relative = own.also[0].get_parameter("a.weight").unflatten(0, (3, 5))  # [H, 2 k + 1, d]
    energies = torch.empty(3, 5, 5, dtype=torch.float64)
    for head, i, j in itertools.product(range(3), range(5), range(5)):
        distance = max(-2, min(2, j - i)) + 2
        energies[head, i, j] = queries[i, head] @ (keys[j, head] + relative[head, distance]) / 2
    mask, steps = torch.ones(1, 5, dtype=torch.bool), torch.arange(5).unsqueeze(0)
    weights = own(x, own.remember(x, mask), steps).weights
    torch.testing.assert_close(weights[0], torch.softmax(energies, -1))


def test_values_of_relative_positions_by_hand() -> None:
    """z_i = sum_j a_ij (x_j W^V + a'_clip(j - i)): Shaw et al. 2018, eq. 3. No fast product leaves them out."""
    made = model(*BOTH, "encoder/positions=relative", "encoder.positions.distance=2", "encoder.positions.values=true")
    own = layers_of(made)[0][0].self_attention
    x, mask, steps = torch.randn(1, 5, 12).double(), torch.ones(1, 5, dtype=torch.bool), torch.arange(5).unsqueeze(0)
    assert own.value is not None
    assert own.out is not None
    values = own.value(x)[0].unflatten(1, (3, 4))  # [T, H, d]
    relative = own.also[0].get_parameter("of_values.weight").unflatten(0, (3, 5))  # [H, 2 k + 1, d]
    memory = own.remember(x, mask)
    weights = own(x, memory, steps).weights[0]
    contexts = torch.zeros(5, 3, 4, dtype=torch.float64)
    for head, i, j in itertools.product(range(3), range(5), range(5)):
        moved = values[j, head] + relative[head, max(-2, min(2, j - i)) + 2]
        contexts[i, head] += weights[head, i, j] * moved
    for looking in (True, False):
        found = own(x, memory, steps, weights=looking).context[0]
        torch.testing.assert_close(found, own.out(contexts.flatten(1)))


def test_positions_of_transformer_xl_by_hand() -> None:
    """q_i^T k_j + q_i^T W_R R_(i - j) + u^T k_j + v^T W_R R_(i - j), over sqrt(d): Dai et al. 2019, section 3.3."""
    made = model(*BOTH, "encoder/positions=transformer_xl")
    own = layers_of(made)[0][0].self_attention
    x, mask, steps = torch.randn(1, 5, 12).double(), torch.ones(1, 5, dtype=torch.bool), torch.arange(5).unsqueeze(0)
    assert own.query is not None
    assert own.key is not None
    queries = (x[0] @ own.query.weight.T).unflatten(1, (3, 4))
    keys = (x[0] @ own.key.weight.T).unflatten(1, (3, 4))
    u = own.query.bias.unflatten(0, (3, 4))
    v = u + own.also[0].get_parameter("w").unflatten(0, (3, 4))
    matrices = own.also[0].get_parameter("W_R.weight").unflatten(0, (3, 4))
    energies = torch.empty(3, 5, 5, dtype=torch.float64)
    for head, i, j in itertools.product(range(3), range(5), range(5)):
        angles = [(i - j) / 10000 ** (2 * (column // 2) / 7) for column in range(7)]
        waves = [math.sin(angle) if column % 2 == 0 else math.cos(angle) for column, angle in enumerate(angles)]
        r = matrices[head] @ torch.tensor(waves).double()
        q, k = queries[i, head], keys[j, head]
        energies[head, i, j] = (q @ k + q @ r + u[head] @ k + v[head] @ r) / 2
    memory = own.remember(x, mask)
    torch.testing.assert_close(own(x, memory, steps).weights[0], torch.softmax(energies, -1), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(own(x, memory, steps, weights=False).context, own(x, memory, steps).context)


def test_words_beyond_learned_positions_share_the_last_one() -> None:
    positions = Learned(7, count=3)
    embedded = torch.randn(1, 5, 7)
    added = positions(embedded, torch.arange(5).unsqueeze(0)) - embedded
    torch.testing.assert_close(added[0], positions.table.weight[[0, 1, 2, 2, 2]], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("encoder/read=hard",),
            r"encoder\.self_attention\.read=hard: must be soft.*attention/read@encoder\.self_attention\.read=soft",
        ),
        (
            ("decoder/window=forced", "decoder.self_attention.window.slots=[0,[0,1],3]"),
            r"decoder\.self_attention\.window\.slots.*step 2 does.*@decoder\.self_attention\.window=global",
        ),
        (
            ("encoder/score=additive", "encoder.self_attention.coverage=true"),
            r"encoder\.self_attention\.coverage=true: must be false.*Give encoder\.self_attention\.coverage=false",
        ),
        (
            ("decoder/window=local_p",),
            r"decoder\.self_attention\.window=local_p: must not.*@decoder\.self_attention\.window=local_m or global",
        ),
        (
            ("encoder.self_attention.heads=7",),
            r"encoder\.self_attention\.size=12: must be a multiple of encoder\.self_attention\.heads=7\. Give "
            r"encoder\.self_attention\.size=14",
        ),
        (
            ("attention/read=hard", "attention.read.objective=enumerate", "attention.heads=1"),
            r"decoder=transformer has no readout. Give attention\.read\.objective=sampled",
        ),
        (("model.tie_embeddings=target",), r"need decoder\.size to be model\.embedding_size.*Give decoder\.size=7"),
        (
            ("encoder.branches=true", "encoder.feed_forward_size=10"),
            r"encoder\.feed_forward_size=10: must be a multiple of the 3 heads.*Give encoder\.feed_forward_size=9",
        ),
        (
            ("decoder.branches=true", "decoder.feed_forward_size=5"),
            r"decoder\.feed_forward_size=5: must be a multiple of the 2 heads.*Give decoder\.feed_forward_size=4",
        ),
        (("encoder.norm=past",), r"encoder\.norm=past: must be pre or post"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_with_its_cure(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(*BOTH, *overrides)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_mean_sampled_gradient_of_hard_attention_is_that_of_the_bound(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps draw one of two slots in each layer, whose weights hang on what the layers below drew."""
    hard = ("attention/read=hard", "attention.read.entropy=0", "attention.read.reward=1", "attention.read.expected=0")
    made = model(*BOTH, *hard, f"decoder.layers={layers}", "attention.heads=1", pieces=(7, 6), train=True)
    batch = make_batch([[4]], [[5]])
    parameters = dict(made.named_parameters())
    mean = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    bound, draws = torch.zeros((), dtype=torch.float64), iter([0])
    monkeypatch.setattr(
        "nmt.attention.reads.draw", lambda shares: torch.tensor([next(draws), next(draws)])[None, None, :, None]
    )
    for chosen in itertools.product(range(2), repeat=2 * layers):
        draws = iter(chosen)
        decoded = made(Source.of(batch), batch.target_in)
        own = decoded.weights[0].flatten(0, 1).gather(1, torch.tensor(chosen).unsqueeze(1))
        log_probs = torch.log_softmax(made.logits(decoded.features), -1)
        bound = bound + own.prod() * log_probs.gather(2, batch.target_out.unsqueeze(2)).sum()
        draws = iter(chosen)
        found = torch.autograd.grad(batch_loss(made, batch).total, list(parameters.values()))
        for name, gradient in zip(parameters, found, strict=True):
            mean[name] += own.prod().detach() * gradient
    expected = torch.autograd.grad(-bound, list(parameters.values()))
    for name, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(mean[name], gradient, atol=2e-5, rtol=1e-4, msg=name)  # the loss is float32
