"""Conversion of a trained Transformer to a CTranslate2 model: the supported models, and the place of each weight.

CTranslate2 supports only scaled dot-product attention over all positions, with projections. `_save` lists the other
settings that may vary.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt.attention import Attention
from nmt.attention.windows import Causal, Relative
from nmt.data.batch import Batch
from nmt.export.format import ExportFormat, Floats, Refusal, array, unsupported
from nmt.model import Seq2Seq
from nmt.model.positions import RelativePositions
from nmt.model.transformer.transformer_decoder import TransformerDecoder
from nmt.model.transformer.transformer_encoder import TransformerEncoder
from nmt.model.transformer.transformer_layer import DecoderLayer
from nmt.system.errors import UserError
from nmt.text.tokenizer import BOS, EOS, UNK, Tokenizer

#: Rows of the exported table of positions, and so the maximum length in CTranslate2.
POSITIONS = 2048

Side = TransformerEncoder | TransformerDecoder


def refusals(model: Seq2Seq, choices: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield the settings of a model that CTranslate2 does not support; `choices` are the run's choices."""
    encoder, decoder = model.encoder, model.decoder
    if model.context is not None:
        yield Refusal("previous sentences (context.sentences)", "context.sentences=0")
    for name, part, supported in (("encoder", encoder, TransformerEncoder), ("decoder", decoder, TransformerDecoder)):
        if type(part) is not supported:
            yield Refusal(f"{name}={choices[name]}", f"{name}=transformer")
    if not isinstance(encoder, TransformerEncoder) or not isinstance(decoder, TransformerDecoder):
        return
    sides: tuple[tuple[str, Side], ...] = (("encoder", encoder), ("decoder", decoder))
    for name, side in sides:
        if side.layers[0].branches:
            yield Refusal(f"{name}.branches=true", f"{name}.branches=false")
        yield from _refused_attention(f"{name}.self_attention", side.layers[0].self_attention, choices)
    yield from _refused_attention("attention", decoder.attentions[0], choices)
    heads = [attention.heads for attention in (decoder.layers[0].self_attention, decoder.attentions[0])]
    if heads[0] != heads[1]:
        yield Refusal(
            f"decoder.self_attention.heads={heads[0]} with attention.heads={heads[1]}", f"attention.heads={heads[0]}"
        )


def _refused_attention(key: str, attention: Attention, choices: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield the settings of the attention at `key` that CTranslate2 does not support; all layers have the same ones."""
    owner = key.partition(".")[0]  # the prefix in messages: encoder/score, decoder/score, attention/score
    for part, cure in unsupported(key, attention, scaled_dot_only=True):
        choice = choices[f"attention/{part}" if key == "attention" else f"attention/{part}@{key}.{part}"]
        yield Refusal(f"{owner}/{part}={choice}", f"{owner}/{part}={cure}")
        return
    query = attention.query
    if query is None:
        yield Refusal(f"{key}.project=false", f"{key}.project=true")
    elif query.out_features != query.in_features:
        name = "decoder" if key == "attention" else owner
        yield Refusal(f"{key}.size={query.out_features} with {name}.size={query.in_features}", f"{key}.size=null")
    if any(not isinstance(window, Causal | Relative) for window in attention.also):
        yield Refusal(f"{owner}/positions={choices[f'positions@{owner}.positions']}", f"{owner}/positions=sinusoidal")
    if attention.heads > 1 and any(isinstance(window, Relative) for window in attention.also):
        # All heads of CTranslate2 share one table of relative positions.
        yield Refusal(f"{owner}/positions=relative with {key}.heads={attention.heads}", f"{key}.heads=1")


def _save(folder: Path, model: Seq2Seq, tokenizer: Tokenizer, quantization: str) -> None:
    """Write the CTranslate2 model of a Transformer without `refusals`.

    Encoder and decoder may differ in layers, size, heads, norm and positions; embeddings may be tied. Forbidden target
    pieces get a bias of minus infinity, so that callers need not suppress them.

    Raises:
        UserError: CTranslate2 has no place for a weight of the model.
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
    spec.save(str(folder))


class _Converter:
    """Copies weights into specifications of CTranslate2, and records the weights that were used."""

    def __init__(self) -> None:
        self.used: set[int] = set()

    def array(self, tensor: Tensor) -> Floats:
        """A copy of the parameter in float32."""
        self.used.add(id(tensor))
        return array(tensor)

    def linear(self, spec: Any, *layers: nn.Linear) -> None:
        """Copy a linear layer, or several as one layer with concatenated outputs."""
        spec.weight = np.concatenate([self.array(layer.weight) for layer in layers])
        if layers[0].bias is not None:
            spec.bias = np.concatenate([self.array(layer.bias) for layer in layers])

    def norm(self, spec: Any, norm: nn.LayerNorm) -> None:
        spec.gamma, spec.beta = self.array(norm.weight), self.array(norm.bias)

    def side(self, make: type, side: Side, embedding: nn.Embedding) -> Any:
        """Make the specification of an encoder or a decoder with all its weights."""
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
        """Copy embeddings and positions. CTranslate2 adds positions after scaling, and has no linear layer there."""
        entrance, positions = side.entrance, side.entrance.positions
        self.used |= {id(parameter) for parameter in (*entrance.parameters(), embedding.weight)}
        words = array(embedding.weight)
        count = max(POSITIONS, positions.learned_positions or 0)
        steps = torch.arange(count, device=embedding.weight.device)
        with torch.no_grad():
            table = array(positions(embedding.weight.new_zeros(count, positions.size), steps) * entrance.scale)
        if entrance.linear is not None:  # W (sqrt(E) y + p) + b: W sqrt(E) y in one table, W p in the other
            weight, bias = array(entrance.linear.weight), array(entrance.linear.bias)
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
        """Copy the projections; `fused` for self-attention, which has one layer for queries, keys and values."""
        projections = [attention.query, attention.key, attention.value, attention.out]
        query, key, value, out = (projection for projection in projections if projection is not None)
        groups: Sequence[Sequence[nn.Linear]] = [[query, key, value]] if fused else [[query], [key, value]]
        for layer_spec, group in zip(spec.linear, [*groups, [out]], strict=True):
            self.linear(layer_spec, *group)
        for window in attention.also:
            if isinstance(window, Relative):
                spec.relative_position_keys = self.array(window.a.weight)
                values = window.of_values
                spec.relative_position_values = (
                    np.zeros_like(spec.relative_position_keys) if values is None else self.array(values.weight)
                )


def _log_probs(folder: Path, tokenizer: Tokenizer, batch: Batch) -> Floats:
    """The log-probabilities of a batch's target pieces, computed by the exported model in a folder."""
    import ctranslate2

    sources, targets = (
        [vocabulary.pieces(row[: row.index(EOS)]) for row in tokens.tolist()]
        for vocabulary, tokens in ((tokenizer.source, batch.source), (tokenizer.target, batch.target_out))
    )
    scores = ctranslate2.Translator(str(folder)).score_batch(sources, targets)
    return np.concatenate([score.log_probs for score in scores]).astype(np.float32)


CTRANSLATE2 = ExportFormat(
    name="ctranslate2",
    packages=("ctranslate2",),
    quantizations=("float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"),
    settings={"positions": POSITIONS},
    refusals=refusals,
    save=_save,
    log_probs=_log_probs,
    only_allowed=True,
)
