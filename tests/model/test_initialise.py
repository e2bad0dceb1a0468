"""How a fresh model starts: spreads of its matrices and of its logits, and that a seed is a model."""

import pytest
import torch
from torch import Tensor, nn

from nmt.build.parts import assemble
from nmt.config.composition import compose
from nmt.data.batch import make_batch
from nmt.model import Encoded, Encoder, Seq2Seq, Source, initialise
from nmt.training.loss import batch_loss
from tests import catalogue


def fresh(*overrides: str, seed: int = 1) -> Seq2Seq:
    """A model as `nmt.train` builds it, large enough for statistics."""
    config = compose(
        "train", ["decoder=bahdanau", "attention/score=additive", "encoder.size=32", f"seed={seed}", *overrides]
    )
    return assemble(config, 1009, 1009, joint=True)


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize(("wiring", "readout"), catalogue.WIRED_READOUTS)
def test_the_softmax_starts_neither_flat_nor_sharp(wiring: str, readout: str, size: int) -> None:
    """At any size, real (not unit) features give tied logits whose deviation is a fair share of one."""
    sizes = [f"{key}={size}" for key in ("model.embedding_size", "encoder.size", "decoder.size")]
    model = fresh(f"decoder={wiring}", f"decoder/readout={readout}", *sizes).eval()
    source, mask, lengths = catalogue.sentences([17, 13, 11], 1009)
    target = catalogue.sentences([13, 17, 11], 1009, seed=3)[0]
    with torch.no_grad():
        logits = model.logits(model(Source(source, mask, lengths), target).features)
    assert 0.2 < logits.std().item() < 1.2


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_the_softmax_of_a_transformer_starts_neither_flat_nor_sharp(score: str, norm: str, size: int) -> None:
    sizes = [f"model.embedding_size={size}", f"encoder.size={size}"]
    places = [f"{place}/score={score}" for place in ("encoder", "decoder")] + [f"attention/score={score}"]
    norms = [f"encoder.norm={norm}", f"decoder.norm={norm}"]
    model = fresh("encoder=transformer", "decoder=transformer", *places, *norms, *sizes).eval()
    source, mask, lengths = catalogue.sentences([17, 13, 11], 1009)
    target = catalogue.sentences([13, 17, 11], 1009, seed=3)[0]
    with torch.no_grad():
        decoded = model(Source(source, mask, lengths), target)
        logits = model.logits(decoded.features)
    assert 0.2 < logits.std().item() < 1.2
    largest = decoded.weights[mask[:, None, None].expand_as(decoded.weights)].max().item()
    if score == "scaled_dot":
        assert largest < 0.9, "no head has made up its mind"


@pytest.mark.long
@pytest.mark.parametrize("encoder", catalogue.ENCODERS)
@pytest.mark.parametrize("decoder", catalogue.DECODERS)
def test_any_decoder_starts_well_after_any_encoder(encoder: str, decoder: str) -> None:
    """Slots start about as small as embeddings, whoever makes them; else a tanh that reads them is saturated."""
    config = compose("train", [f"encoder={encoder}", f"decoder={decoder}"])
    model = assemble(config, 1009, 1009, joint=True).eval()
    source, mask, lengths = catalogue.sentences([17, 13, 11], 1009)
    target = catalogue.sentences([13, 17, 11], 1009, seed=3)[0]
    with torch.no_grad():
        values = model.encoder(model.source_embedding(source), mask, lengths).values
        logits = model.logits(model(Source(source, mask, lengths), target).features)
    assert 0.3 < values[mask].std().item() * config.model.embedding_size**0.5 < 3
    assert 0.15 < logits.std().item() < 1.2


@pytest.mark.parametrize("wiring", catalogue.WIRINGS)
def test_recurrent_matrices_are_orthogonal_gate_by_gate(wiring: str) -> None:
    layers = [layer for layer in fresh(f"decoder={wiring}").modules() if isinstance(layer, nn.RNNBase)]
    assert len(layers) >= 2
    for layer in layers:
        for name, parameter in layer.named_parameters():
            if name.startswith("weight_hh"):
                for gate in parameter.split(layer.hidden_size):
                    torch.testing.assert_close(gate @ gate.T, torch.eye(layer.hidden_size), atol=1e-5, rtol=0)
            if name.startswith("bias"):
                assert not parameter.any()


@pytest.mark.parametrize(
    ("overrides", "name", "bound"),
    [
        # 8 A^-1/2 of an additive or concat score, with A = 128, for every head that has 128 of 256
        (("attention.size=128",), "score.v", 8 * 128**-0.5),
        (("attention.size=128", "attention/score=concat"), "score.v", 8 * 128**-0.5),
        (("attention.size=256", "attention.heads=2"), "score.v", 8 * 128**-0.5),
        # 4 times Glorot's bound, head by head
        (("attention.size=256", "attention.heads=2"), "score.W.weight", 4 * (6 / (128 + 128)) ** 0.5),
        # D^-1/2 of a predicted window, with D = 256
        (("decoder.size=256", "attention/window=local_p"), "window.v", 256**-0.5),
        # Glorot's bound of [256, 64] times 256^-1/2
        (("decoder.size=256", "attention/score=general"), "score.W.weight", (6 / (256 + 64)) ** 0.5 * 256**-0.5),
        # 4 times Glorot's bound of an additive or concat score's matrices: D = 256, C = 64
        (("decoder.size=256", "attention.size=128"), "score.W.weight", 4 * (6 / (256 + 128)) ** 0.5),
        (("decoder.size=256", "attention.size=128"), "score.U.weight", 4 * (6 / (64 + 128)) ** 0.5),
        (
            ("decoder.size=256", "attention.size=128", "attention/score=concat"),
            "score.W.weight",
            4 * (6 / (256 + 64 + 128)) ** 0.5,
        ),
    ],
)
def test_the_bounds_of_attention(overrides: tuple[str, ...], name: str, bound: float) -> None:
    """All of the interval is used, and no more."""
    attention = catalogue.attentive(fresh("decoder=bahdanau", "attention/score=additive", *overrides)).attention
    parameter = dict(attention.named_parameters())[name]
    assert 0.9 * bound < parameter.max() <= bound
    assert -bound <= parameter.min() < -0.9 * bound


def test_the_weight_of_the_coverage_starts_at_nothing() -> None:
    attention = catalogue.attentive(fresh("attention/score=additive", "attention.coverage=true")).attention
    assert not dict(attention.named_parameters())["score.w"].any()


def test_padding_is_a_zero_vector() -> None:
    model = fresh()
    assert not model.source_embedding.weight[0].any()
    assert model.source_embedding.weight[1].any()


def test_a_seed_is_a_model() -> None:
    one = fresh(seed=3).state_dict()
    torch.manual_seed(7)  # of no account
    same, other = fresh(seed=3).state_dict(), fresh(seed=4).state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["output.weight"], other["output.weight"])


class Normed(Encoder):
    """Something new that knows nothing of initialisation: a layer-normed projection."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        self.norm, self.linear = nn.LayerNorm(size), nn.Linear(size, size)

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        return Encoded(self.norm(self.linear(embedded)) * mask.unsqueeze(-1), mask)


class Silent(Normed):
    """It owns a parameter and does not say how it starts."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.alpha = nn.Parameter(torch.empty(size))


def test_a_layer_norm_in_something_new_starts_as_the_identity_and_learns() -> None:
    made = catalogue.model("encoder=embeddings", "decoder=bahdanau", "decoder.size=7").float()
    made.encoder = Normed(7)
    initialise(made, 3)
    assert made.encoder.norm.weight.tolist() == [1.0] * 7
    assert not made.encoder.norm.bias.any()
    assert not made.encoder.linear.bias.any()
    optimizer = torch.optim.Adam(made.parameters(), 0.01)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = batch_loss(made.train(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6]])).total
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert made.encoder.norm.weight.tolist() != [1.0] * 7


def test_a_class_that_does_not_say_how_it_starts_is_named() -> None:
    made = catalogue.model("encoder=embeddings", "decoder.size=7").float()
    made.encoder = Silent(7)
    with pytest.raises(TypeError, match="Silent has parameters but no reset_parameters"):
        initialise(made, 3)
