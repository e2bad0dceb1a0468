"""A trained Transformer as a CTranslate2 model: which models can be converted, and where each weight goes.

CTranslate2 has one kind of attention: a scaled dot product over all positions, with projections. The differences that
it allows are those of `to_ctranslate2`.
"""

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from nmt.attention import Attention
from nmt.attention.reads import Soft
from nmt.attention.scores import ScaledDot
from nmt.attention.windows import Global, Relative
from nmt.data.batch import make_batch
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.model.positions import Learned, Positions, RelativePositions, Sinusoidal
from nmt.model.transformer.decoder import TransformerDecoder
from nmt.model.transformer.encoder import TransformerEncoder
from nmt.model.transformer.layer import DecoderLayer, EncoderLayer, FeedForward, Residual
from nmt.text.tokenizer import BOS, EOS, UNK, Tokenizer

if TYPE_CHECKING:
    from ctranslate2.specs import TransformerSpec

#: Rows of the exported table of positions. CTranslate2 cannot translate beyond.
POSITIONS = 2048

#: Sentences of random pieces that a model is checked on, and their longest number of pieces.
CHECKED, CHECKED_PIECES = 16, 20

Side = TransformerEncoder | TransformerDecoder
Floats = npt.NDArray[np.float32]


def check_installed() -> None:
    """Raise UserError if CTranslate2 is not installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError("format=ctranslate2 needs the package ctranslate2. Install it: pip install 'nmt[export]'")


def check_convertible(model: Seq2Seq, choices: Mapping[str, str], run: Path) -> None:
    """Check that CTranslate2 can compute what this model computes.

    Args:
        model: of the run.
        choices: the run's choices by group or group@place.
        run: its folder, for messages.

    Raises:
        UserError: it cannot, with the setting and the reason.
    """
    for reason in _refusals(model, choices):
        raise UserError(f"{run} cannot be exported: {reason}")


def _refusals(model: Seq2Seq, choices: Mapping[str, str]) -> Iterator[str]:
    """What CTranslate2 does not know, one sentence or two each."""
    encoder, decoder = model.encoder, model.decoder
    if model.context is not None:
        yield (
            "CTranslate2 translates single sentences, and this run sees previous ones. Train a run with "
            "context.sentences=0."
        )
    for name, part, known in (("encoder", encoder, TransformerEncoder), ("decoder", decoder, TransformerDecoder)):
        if type(part) is not known:
            yield f"CTranslate2 cannot hold {name}={choices[name]}. Train a run with {name}=transformer."
            return
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    sides: tuple[tuple[str, Side], ...] = (("encoder", encoder), ("decoder", decoder))
    for name, side in sides:
        yield from _refused_parts(name, side, choices)
        yield from _refused_attention(f"{name}.self_attention", side.layers[0].self_attention, side, choices)
    yield from _refused_attention("attention", decoder.attentions[0], decoder, choices)
    heads = [each.heads for each in (decoder.layers[0].self_attention, decoder.attentions[0])]
    if heads[0] != heads[1]:
        yield (
            f"decoder.self_attention.heads={heads[0]} and attention.heads={heads[1]}: CTranslate2 has one number of "
            f"heads for both. Train a run in which they are the same."
        )


def _refused_parts(name: str, side: Side, choices: Mapping[str, str]) -> Iterator[str]:
    """What CTranslate2 does not know of the positions and layers of an encoder or decoder."""
    positions = side.entrance.positions
    if type(positions) not in (Positions, Sinusoidal, Learned, RelativePositions):
        yield f"CTranslate2 does not know {name}/positions={choices[f'encoder/positions@{name}.positions']}."
    if side.layers[0].branches:
        yield f"CTranslate2 does not know {name}.branches=true. Train a run with {name}.branches=false."
        return
    kind = DecoderLayer if isinstance(side, TransformerDecoder) else EncoderLayer
    for layer in side.layers:
        parts = [(layer, kind), (layer.feed_forward, FeedForward), (layer.around_self, Residual)]
        if unknown := [type(part).__name__ for part, known in parts if type(part) is not known]:
            yield f"CTranslate2 does not know the {name}'s {', '.join(unknown)}."
            return


def _refused_attention(key: str, attention: Attention, side: Side, choices: Mapping[str, str]) -> Iterator[str]:
    """What CTranslate2 does not know of the attention at `key`; all layers of a side have the same settings."""
    owner = key.partition(".")[0]  # as choices are written: encoder/score, decoder/score, attention/score
    for name, part, known in (
        ("score", attention.score, ScaledDot),
        ("window", attention.window, Global),
        ("read", attention.read, Soft),
    ):
        if type(part) is not known:
            choice = choices[f"attention/{name}" if key == "attention" else f"attention/{name}@{key}.{name}"]
            only = {"score": "scaled_dot", "window": "global", "read": "soft"}[name]
            yield f"CTranslate2 does not know {owner}/{name}={choice}. Train a run with {owner}/{name}={only}."
            return
    if not attention.normaliser.is_softmax:
        choice = choices["attention/normaliser" if key == "attention" else f"attention/normaliser@{key}.normaliser"]
        yield (
            f"CTranslate2 knows the softmax alone, and this run has {owner}/normaliser={choice} with its settings. "
            f"Train a run with {owner}/normaliser=softmax {key}.normaliser.temperature=1."
        )
    if attention.coverage:
        yield f"CTranslate2 does not know {key}.coverage=true."
    if attention.query is None:
        yield f"CTranslate2 always projects queries and keys, but this run has {key}.project=false."
    elif attention.query.out_features != side.layers[0].feed_forward.inner.in_features:
        size, wanted = attention.query.out_features, side.layers[0].feed_forward.inner.in_features
        name = "encoder" if isinstance(side, TransformerEncoder) else "decoder"
        yield f"{key}.size={size}: CTranslate2 wants {name}.size={wanted} here. Train a run with {key}.size=null."
    if attention.heads > 1 and any(isinstance(window, Relative) for window in attention.also):
        yield (
            f"{owner}/positions=relative with {key}.heads={attention.heads}: CTranslate2 has one table of distances "
            f"for all heads. Train a run with {key}.heads=1 or {owner}/positions=sinusoidal."
        )


def to_ctranslate2(model: Seq2Seq, tokenizer: Tokenizer, quantization: str) -> "TransformerSpec":
    """The CTranslate2 model of a Transformer that `check_convertible` has passed.

    Encoder and decoder may differ in layers, size, heads, norm and positions; embeddings may be tied. Pieces that our
    search never produces get a bias of minus infinity, so that no caller has to suppress them.

    Raises:
        UserError: the model has a weight that was not used.
    """
    from ctranslate2.specs import TransformerSpec, transformer_spec

    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    converter = _Converter()
    spec = TransformerSpec(
        converter.side(transformer_spec.TransformerEncoderSpec, encoder, model.source_embedding),
        converter.side(transformer_spec.TransformerDecoderSpec, decoder, model.target_embedding),
    )
    converter.linear(spec.decoder.projection, model.output)
    spec.decoder.projection.bias[list(tokenizer.target.forbidden)] = -np.inf
    if decoder.logit_scale != 1:
        spec.decoder.scale_outputs = np.float32(decoder.logit_scale)
    unused = [name for name, parameter in model.named_parameters() if id(parameter) not in converter.used]
    if unused:
        raise UserError(f"This model cannot be exported: CTranslate2 has no place for {', '.join(unused)}.")
    spec.config.layer_norm_epsilon = encoder.layers[0].around_self.norm.eps
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = tokenizer.target.pieces([UNK, BOS, EOS])
    spec.config.decoder_start_token, spec.config.add_source_eos = spec.config.bos_token, True
    spec.register_source_vocabulary(tokenizer.source.pieces(range(tokenizer.source.size)))
    spec.register_target_vocabulary(tokenizer.target.pieces(range(tokenizer.target.size)))
    spec.validate()
    spec.optimize(quantization=quantization)
    return spec


class _Converter:
    """Copies weights into specifications and keeps count of them."""

    def __init__(self) -> None:
        self.used: set[int] = set()

    def array(self, tensor: Tensor) -> Floats:
        """A copy of the parameter in float32."""
        self.used.add(id(tensor))
        return _array(tensor)

    def linear(self, spec: Any, *layers: nn.Linear) -> None:
        """One layer or several, whose outputs are side by side."""
        spec.weight = np.concatenate([self.array(layer.weight) for layer in layers])
        if layers[0].bias is not None:
            spec.bias = np.concatenate([self.array(layer.bias) for layer in layers])

    def norm(self, spec: Any, norm: nn.LayerNorm) -> None:
        spec.gamma, spec.beta = self.array(norm.weight), self.array(norm.bias)

    def side(self, make: type, side: Side, embedding: nn.Embedding) -> Any:
        """The specification of an encoder or a decoder."""
        layers = side.layers
        spec = make(
            len(layers),
            layers[0].self_attention.heads,
            pre_norm=layers[0].around_self.before_sublayer,
            relative_position=isinstance(side.entrance.positions, RelativePositions),
        )
        self.entrance(spec, side, embedding)
        if isinstance(side.norm, nn.LayerNorm):
            self.norm(spec.layer_norm, side.norm)
        for layer_spec, layer in zip(spec.layer, layers, strict=True):
            self.attention(layer_spec.self_attention, layer.self_attention)
            self.norm(layer_spec.self_attention.layer_norm, layer.around_self.norm)
            if isinstance(layer, DecoderLayer):
                self.attention(layer_spec.attention, layer.attention, fused=False)
                self.norm(layer_spec.attention.layer_norm, layer.around_attention.norm)
            self.linear(layer_spec.ffn.linear_0, layer.feed_forward.inner)
            self.linear(layer_spec.ffn.linear_1, layer.feed_forward.outer)
            self.norm(layer_spec.ffn.layer_norm, layer.around_feed_forward.norm)
        return spec

    def entrance(self, spec: Any, side: Side, embedding: nn.Embedding) -> None:
        """Embeddings and positions. CTranslate2 adds positions after scaling, and has no linear layer there."""
        entrance, positions = side.entrance, side.entrance.positions
        self.used |= {id(parameter) for parameter in (*entrance.parameters(), embedding.weight)}
        words = _array(embedding.weight)
        count = max(POSITIONS, positions.learned_positions or 0)
        steps = torch.arange(count, device=embedding.weight.device)
        with torch.no_grad():
            table = _array(positions(embedding.weight.new_zeros(count, positions.size), steps) * entrance.scale)
        if entrance.linear is not None:  # W (sqrt(E) y + p) + b, with one of the terms in each table
            weight, bias = _array(entrance.linear.weight), _array(entrance.linear.bias)
            words, table = (words * entrance.scale) @ weight.T, table @ weight.T
            if isinstance(positions, RelativePositions):
                words = words + bias
            else:
                table = table + bias
        spec.scale_embeddings = entrance.linear is None
        tables: Iterable[Any] = spec.embeddings if isinstance(spec.embeddings, list) else [spec.embeddings]
        for each in tables:
            each.weight = words
        if not isinstance(positions, RelativePositions):
            spec.position_encodings.encodings = table

    def attention(self, spec: Any, attention: Attention, fused: bool = True) -> None:
        """The projections; `fused` for self-attention, whose queries, keys and values come from one vector."""
        projections = [attention.query, attention.key, attention.value]
        assert all(projection is not None for projection in projections)
        query, key, value = (projection for projection in projections if projection is not None)
        groups: Sequence[Sequence[nn.Linear]] = [[query, key, value]] if fused else [[query], [key, value]]
        assert attention.out is not None
        for layer_spec, group in zip(spec.linear, [*groups, [attention.out]], strict=True):
            self.linear(layer_spec, *group)
        for window in attention.also:
            if isinstance(window, Relative):
                spec.relative_position_keys = self.array(window.a.weight)
                spec.relative_position_values = np.zeros_like(spec.relative_position_keys)


def _array(tensor: Tensor) -> Floats:
    """A copy of the values in float32: quantisation works in place."""
    return np.array(tensor.detach().cpu().float().numpy())


def largest_difference(folder: Path, model: Seq2Seq, tokenizer: Tokenizer) -> float:
    """The largest difference of a piece's log-probability between the model and its export in `folder`.

    Over random pieces, those of the target given those before them.
    """
    import ctranslate2

    generator = np.random.default_rng(1)
    allowed = np.setdiff1d(np.arange(tokenizer.target.size), [*tokenizer.target.forbidden, EOS])
    lengths = generator.integers(1, CHECKED_PIECES, (2, CHECKED), endpoint=True)
    sources = [generator.integers(EOS + 1, tokenizer.source.size, length).tolist() for length in lengths[0]]
    targets = [generator.choice(allowed, length).tolist() for length in lengths[1]]
    batch = make_batch(sources, targets)
    with torch.no_grad():
        decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, weights=False)
        logits = model.target_logits(decoded, batch.target_mask)
        logits[:, list(tokenizer.target.forbidden)] = -torch.inf
        ours = logits.log_softmax(-1).gather(1, batch.target_out[batch.target_mask].unsqueeze(1)).squeeze(1)
    scores = ctranslate2.Translator(str(folder)).score_batch(
        [tokenizer.source.pieces(tokens) for tokens in sources], [tokenizer.target.pieces(tokens) for tokens in targets]
    )
    theirs = np.concatenate([score.log_probs for score in scores])
    return float(np.abs(ours.numpy() - theirs).max())
