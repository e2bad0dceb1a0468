"""A trained recurrent model as two ONNX graphs: which models can be converted, and what the graphs compute.

encoder.onnx: source [B, S], lengths [B] -> keys [B, S, A], values [B, S, C], mask [B, S], the first hidden [B, L, D]
and, where features are fed back, feed [B, F].
step.onnx: token [N], hidden, (feed,) keys, values, mask, with N rows each -> log_probs [N, V], weights [N, S] and the
next state: new_hidden, (new_feed).
"""

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat, Dot, General, ScaledDot
from nmt.attention.windows import Global
from nmt.data.batch import make_batch
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.model.recurrent.attentive import AttentiveDecoder
from nmt.model.recurrent.bahdanau import Bahdanau
from nmt.model.recurrent.conditional import Conditional
from nmt.model.recurrent.decoder import layer_parameters
from nmt.model.recurrent.encoder import RecurrentEncoder
from nmt.model.recurrent.luong import Luong
from nmt.model.recurrent.readouts import FromContext, FromState, Maxout, Tanh
from nmt.pipeline.onnx_graph import Described, Graph, array
from nmt.text.tokenizer import EOS, Tokenizer

if TYPE_CHECKING:
    import onnx

ENCODER, STEP = "encoder.onnx", "step.onnx"

_WIRINGS = (Bahdanau, Conditional, Luong)
_SCORES = (Additive, Concat, Dot, General, ScaledDot)
_READOUTS = (FromContext, FromState, Maxout, Tanh)


def check_onnx_installed() -> None:
    """Raise UserError if a package is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        raise UserError("format=onnx needs the packages onnx and onnxruntime. Install them: pip install 'nmt[onnx]'")


def check_exportable(model: Seq2Seq, choices: Mapping[str, str], run: Path) -> None:
    """Check that the graphs can compute what this model computes.

    Raises:
        UserError: they cannot, with the setting and the one to train with.
    """
    for reason in _refusals(model, choices):
        raise UserError(f"{run} cannot be exported: {reason}")


def _refusals(model: Seq2Seq, choices: Mapping[str, str]) -> Iterator[str]:
    encoder, decoder = model.encoder, model.decoder

    def refusal(setting: str, cure: str) -> str:
        return f"format=onnx does not support {setting}. Train a run with {cure}."

    if model.context is not None:
        yield refusal("previous sentences (context.sentences)", "context.sentences=0")
    if type(encoder) is not RecurrentEncoder:
        yield refusal(f"encoder={choices['encoder']}", "encoder=gru")
        return
    if not isinstance(encoder.rnn, nn.GRU):
        yield refusal("encoder.cell=lstm", "encoder=gru encoder.cell=gru")
    if not isinstance(decoder, AttentiveDecoder) or type(decoder) not in _WIRINGS:
        yield refusal(f"decoder={choices['decoder']}", "decoder=bahdanau, luong or conditional")
        return
    attention = decoder.attention
    if decoder.multi_step:
        yield refusal("decoder.multi_step=true", "decoder.multi_step=false")
    if attention.coverage:
        yield refusal("attention.coverage=true", "attention.coverage=false")
    if attention.heads > 1:
        yield refusal(f"attention.heads={attention.heads}", "attention.heads=1")
    if not attention.normaliser.is_softmax:
        softmax = "attention/normaliser=softmax attention.normaliser.temperature=1"
        yield refusal(f"attention/normaliser={choices['attention/normaliser']} with its settings", softmax)
    for name, part, known, cure in (
        ("attention/score", attention.score, _SCORES, "additive, concat, dot, general or scaled_dot"),
        ("attention/window", attention.window, (Global,), "global"),
        ("attention/read", attention.read, (Soft,), "soft"),
        ("decoder/readout", decoder.readout, _READOUTS, "maxout, tanh, state or context"),
    ):
        if type(part) not in known:
            yield refusal(f"{name}={choices.get(name, type(part).__name__)}", f"{name}={cure}")


def to_onnx(model: Seq2Seq) -> "dict[str, onnx.ModelProto]":
    """The graphs of a model that `check_exportable` accepts, by the names of their files."""
    decoder, encoder = model.decoder, model.encoder
    assert isinstance(decoder, AttentiveDecoder)
    assert isinstance(encoder, RecurrentEncoder)
    keys = _key_size(decoder, encoder.size)
    values = encoder.size if decoder.attention.value is None else decoder.attention.value.out_features
    memory: dict[str, tuple[str, Sequence[str | int]]] = {
        "keys": ("FLOAT", ("rows", "slots", keys)),
        "values": ("FLOAT", ("rows", "slots", values)),
        "mask": ("BOOL", ("rows", "slots")),
    }
    state: dict[str, tuple[str, Sequence[str | int]]] = {
        "hidden": ("FLOAT", ("rows", decoder.rnn.num_layers, decoder.rnn.hidden_size))
    }
    if decoder.feed_size:
        state["feed"] = ("FLOAT", ("rows", decoder.feed_size))
    log_probs = ("FLOAT", ("rows", model.output.out_features))
    following = {f"new_{name}": described for name, described in state.items()}
    source: Described = {"source": ("INT64", ("rows", "slots")), "lengths": ("INT64", ("rows",))}
    stepped: Described = {"log_probs": log_probs, "weights": ("FLOAT", ("rows", "slots")), **following}
    return {
        ENCODER: _encoder(model, encoder, decoder).model("encoder", source, {**memory, **state}),
        STEP: _step(model, decoder).model("step", {"token": ("INT64", ("rows",)), **state, **memory}, stepped),
    }


def _key_size(decoder: AttentiveDecoder, size: int) -> int:
    """The size of a prepared key: `Score.prepare` of one slot says it."""
    weight = layer_parameters(decoder.rnn)[1]
    with torch.no_grad():
        memory = decoder.attention.remember(weight.new_zeros(1, 1, size), weight.new_ones(1, 1, dtype=torch.bool))
    return memory.keys.shape[-1]


def _encoder(model: Seq2Seq, encoder: RecurrentEncoder, decoder: AttentiveDecoder) -> Graph:
    """The graph from source ids to the memory and the first state."""
    graph, rnn, attention = Graph(), encoder.rnn, decoder.attention
    assert isinstance(rnn, nn.GRU)
    short = graph.add("Cast", "lengths", to=6)  # int32, as the operator GRU wants them
    embedded = graph.add("Gather", graph.weight(array(model.source_embedding.weight)), "source")
    states = graph.add("Transpose", embedded, perm=(1, 0, 2))
    lasts = []
    for layer in range(rnn.num_layers):
        states, last = graph.gru_layer(states, short, rnn, layer)
        lasts.append(last)
    values = graph.add("Transpose", states, perm=(1, 0, 2))
    width = graph.add("Squeeze", graph.add("Shape", "source", start=1, end=2), graph.integers(0))
    slots = graph.add("Range", graph.weight(0, np.int64), width, graph.weight(1, np.int64))
    graph.output("mask", graph.add("Less", slots, graph.add("Unsqueeze", "lengths", graph.integers(1))))
    keys, score = graph.linear(values, attention.key), attention.score
    if isinstance(score, Additive):
        keys = graph.times(keys, score.U.weight)
    elif isinstance(score, Concat):
        keys = graph.times(keys, score.W.weight[:, score.query_size :])
    elif isinstance(score, General):
        keys = graph.times(keys, score.W.weight)
    graph.output("keys", keys)
    graph.output("values", graph.linear(values, attention.value))
    graph.output("hidden", _first_state(graph, decoder, values, lasts))
    if decoder.feed_size:
        graph.output("feed", _zeros(graph, decoder.feed_size))
    return graph


def _zeros(graph: Graph, *shape: int) -> str:
    """Zeros [B, ...]."""
    rows = graph.add("Shape", "lengths")
    return graph.add("ConstantOfShape", graph.add("Concat", rows, graph.integers(*shape), axis=0))


def _first_state(graph: Graph, decoder: AttentiveDecoder, values: str, lasts: list[str]) -> str:
    """The first hidden state [B, L, D], as `FirstState` computes it."""
    first = decoder.first_state
    if first.kind == "zero":
        return _zeros(graph, first.layers, first.size)
    if first.kind == "last":
        count = len(lasts)
        layers = [min(layer + max(0, count - first.layers), count - 1) for layer in range(first.layers)]
        states = [
            graph.add("Unsqueeze", graph.linear(lasts[layer], first.linear), graph.integers(1)) for layer in layers
        ]
        return graph.add("Concat", *states, axis=1)
    if first.kind == "backward":
        start, end = graph.integers(-first.direction_size), graph.integers(2**31)
        vector = graph.add("Slice", lasts[-1], start, end, graph.integers(1))
    else:
        counts = graph.add("Unsqueeze", graph.add("Cast", "lengths", to=1), graph.integers(1))
        vector = graph.add("Div", graph.add("ReduceSum", values, graph.integers(1), keepdims=0), counts)
    state = graph.add("Tanh", graph.linear(vector, first.linear))
    return graph.add("Reshape", state, graph.integers(0, first.layers, first.size))


def _step(model: Seq2Seq, decoder: AttentiveDecoder) -> Graph:
    """The graph of one step of N hypotheses."""
    graph = Graph()
    word = graph.add("Gather", graph.weight(array(model.target_embedding.weight)), "token")
    weight_ih, _, bias_ih, _ = layer_parameters(decoder.rnn)
    of_word, fed = weight_ih.split(decoder.input_sizes, 1)
    gates = graph.times(word, of_word, bias_ih)
    hidden = [
        graph.add("Gather", "hidden", graph.weight(layer, np.int64), axis=1) for layer in range(decoder.rnn.num_layers)
    ]
    if isinstance(decoder, Bahdanau):
        before = hidden[-1]
        weights, context = _attend(graph, decoder, before)
        new = _update(graph, decoder, graph.add("Add", gates, graph.times(context, fed)), hidden)
        top = before if decoder.previous_state else new[-1]
    else:
        if decoder.feed_size:
            gates = graph.add("Add", gates, graph.times("feed", fed))
        new = _update(graph, decoder, gates, hidden)
        weights, context = _attend(graph, decoder, new[-1])
        if isinstance(decoder, Conditional):
            second_ih, second_hh, second_bias, second_bias_hh = layer_parameters(decoder.second)
            inputs = graph.times(context, second_ih, second_bias)
            new[-1] = graph.gru_step(inputs, new[-1], second_hh, second_bias_hh)
        top = new[-1]
    features = _read_out(graph, decoder, {"state": top, "word": word, "context": context})
    scaled = graph.add("Mul", features, graph.weight(decoder.logit_scale))
    logits = graph.times(scaled, model.output.weight, model.output.bias)
    graph.output("log_probs", graph.add("LogSoftmax", logits, axis=-1))
    graph.output("weights", weights)
    stacked = [graph.add("Unsqueeze", state, graph.integers(1)) for state in new]
    graph.output("new_hidden", graph.add("Concat", *stacked, axis=1))
    if decoder.feed_size:
        graph.output("new_feed", features)
    return graph


def _update(graph: Graph, decoder: AttentiveDecoder, gates: str, hidden: list[str]) -> list[str]:
    """The new state of each recurrent layer, from the gate inputs of the first."""
    new: list[str] = []
    for layer, state in enumerate(hidden):
        weight_ih, weight_hh, bias_ih, bias_hh = layer_parameters(decoder.rnn, layer)
        if layer:
            gates = graph.times(new[-1], weight_ih, bias_ih)
        new.append(graph.gru_step(gates, state, weight_hh, bias_hh))
    return new


def _attend(graph: Graph, decoder: AttentiveDecoder, query: str) -> tuple[str, str]:
    """The weights [N, S] and the context [N, C] of queries [N, D]."""
    attention = decoder.attention
    score = attention.score
    query = graph.linear(query, attention.query)
    if isinstance(score, Additive | Concat):
        matrix: Tensor = score.W.weight if isinstance(score, Additive) else score.W.weight[:, : score.query_size]
        terms = graph.add("Unsqueeze", graph.times(query, matrix), graph.integers(1))
        activated = graph.add("Tanh", graph.add("Add", terms, "keys"))
        energies = graph.add("Squeeze", graph.times(activated, score.v.unsqueeze(0)), graph.integers(2))
    else:
        if isinstance(score, ScaledDot):
            query = graph.add("Mul", query, graph.weight(1 / math.sqrt(score.key_size)))
        row = graph.add("Unsqueeze", query, graph.integers(1))
        energies = graph.add("MatMul", row, graph.add("Transpose", "keys", perm=(0, 2, 1)))
        energies = graph.add("Squeeze", energies, graph.integers(1))
    lowest = graph.weight(np.finfo(np.float32).min)
    weights = graph.add("Softmax", graph.add("Where", "mask", energies, lowest), axis=-1)
    context = graph.add("MatMul", graph.add("Unsqueeze", weights, graph.integers(1)), "values")
    return weights, graph.linear(graph.add("Squeeze", context, graph.integers(1)), attention.out)


def _read_out(graph: Graph, decoder: AttentiveDecoder, inputs: Mapping[str, str]) -> str:
    """The features [N, F]."""
    readout = decoder.readout
    units = graph.add("Concat", *(inputs[name] for name in readout.sees), axis=-1)
    if isinstance(readout.linear, nn.Linear):
        units = graph.linear(units, readout.linear)
    if isinstance(readout, Maxout):
        pairs = graph.add("Reshape", units, graph.integers(0, readout.size, 2))
        return graph.add("ReduceMax", pairs, graph.integers(2), keepdims=0)
    return graph.add("Tanh", units) if isinstance(readout, Tanh) else units


def save_onnx(folder: Path, model: Seq2Seq, quantization: str) -> None:
    """Write the graphs, with `quantization` int8 those whose matrices are rounded."""
    import onnx

    for name, graph in to_onnx(model).items():
        if quantization == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            # Says that shapes need not be inferred first, or a warning asks for it.
            onnx.helper.set_model_props(graph, {"onnx.quant.pre_process": "onnxruntime.quant"})
            # Seven of eight bits: products of eight overflow on CPUs without VNNI.
            settings: dict[str, Any] = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
            only = {"MatMulConstBOnly": True}
            quantize_dynamic(
                graph, folder / name, op_types_to_quantize=["MatMul", "Gather"], extra_options=only, **settings
            )
        else:
            onnx.save(graph, folder / name)


def largest_onnx_difference(folder: Path, model: Seq2Seq, tokenizer: Tokenizer) -> float:
    """The largest difference of a log-probability between the model and its export in `folder`.

    Over batches of random pieces: a padded one, and single sentences of 1, 2 and 50 pieces with the end of sentence.
    """
    import onnxruntime

    encoder, step = (onnxruntime.InferenceSession(folder / name) for name in (ENCODER, STEP))
    generator = np.random.default_rng(1)
    largest = [0.0]
    for lengths in ([1, 5, 20, 12], [0], [1], [49]):
        sources = [generator.integers(EOS + 1, tokenizer.source.size, length).tolist() for length in lengths]
        targets = [generator.integers(EOS + 1, tokenizer.target.size, 8).tolist() for _ in lengths]
        batch = make_batch(sources, targets)
        with torch.no_grad():
            decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, weights=False)
            ours = model.log_probs(decoded.features).numpy()
        feeds = {"source": batch.source.numpy(), "lengths": batch.source_lengths.numpy()}
        named = dict(zip([each.name for each in encoder.get_outputs()], encoder.run(None, feeds), strict=True))
        for position in range(batch.target_in.shape[1]):
            log_probs, _, *state = step.run(None, {"token": batch.target_in[:, position].numpy(), **named})
            named |= dict(zip(["hidden", "feed"], state, strict=False))
            largest.append(float(np.abs(log_probs - ours[:, position]).max()))
    return float(np.max(largest))  # NaN stays NaN
