"""Conversion of a trained recurrent model to two ONNX graphs: the supported models, and the two graphs.

encoder.onnx: source [B, S], lengths [B] -> keys [B, S, A], values [B, S, C], mask [B, S], the first hidden [B, L, D]
and, for decoders with input feeding, feed [B, F].
step.onnx: token [N], hidden, (feed,) keys, values, mask, with N rows each -> log_probs [N, V], weights [N, S] and the
next state: new_hidden, (new_feed).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from nmt.attention import Attention
from nmt.attention.score_forms import AdditiveForm
from nmt.data.batch import Batch
from nmt.export.format import ExportFormat, Floats, Refusal, array, key_weight, unsupported
from nmt.export.onnx_graph import Graph
from nmt.model import Seq2Seq
from nmt.model.recurrent.attentive import AttentiveDecoder
from nmt.model.recurrent.bahdanau import Bahdanau
from nmt.model.recurrent.conditional import Conditional
from nmt.model.recurrent.luong import Luong
from nmt.model.recurrent.readouts import FromContext, FromState, Maxout, Tanh
from nmt.model.recurrent.recurrent_decoder import layer_parameters
from nmt.model.recurrent.recurrent_encoder import RecurrentEncoder
from nmt.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    import onnx

ENCODER, STEP = "encoder.onnx", "step.onnx"

_WIRINGS = (Bahdanau, Conditional, Luong)
_READOUTS = (FromContext, FromState, Maxout, Tanh)


def refusals(model: Seq2Seq, choices: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield the settings of a model that the graphs do not support; `choices` are the run's choices."""
    encoder, decoder = model.encoder, model.decoder
    if type(encoder) is not RecurrentEncoder:
        yield Refusal(f"encoder={choices['encoder']}", "encoder=gru")
    if not isinstance(decoder, AttentiveDecoder) or type(decoder) not in _WIRINGS:
        yield Refusal(f"decoder={choices['decoder']}", "decoder=bahdanau, luong or conditional")
        return
    if type(encoder) is not RecurrentEncoder:
        return
    attention = decoder.attention
    for refused, setting, cure in (
        (model.context is not None, "previous sentences (context.sentences)", "context.sentences=0"),
        (not isinstance(encoder.rnn, nn.GRU), "encoder.cell=lstm", "encoder=gru encoder.cell=gru"),
        (decoder.multi_step, "decoder.multi_step=true", "decoder.multi_step=false"),
        (attention.coverage, "attention.coverage=true", "attention.coverage=false"),
        (attention.heads > 1, f"attention.heads={attention.heads}", "attention.heads=1"),
    ):
        if refused:
            yield Refusal(setting, cure)
    for part, cure in unsupported("attention", attention):
        yield Refusal(f"attention/{part}={choices[f'attention/{part}']}", f"attention/{part}={cure}")
    if type(decoder.readout) not in _READOUTS:
        yield Refusal(f"decoder/readout={choices['decoder/readout']}", "decoder/readout=maxout, tanh, state or context")


def to_onnx(model: Seq2Seq) -> "dict[str, onnx.ModelProto]":
    """Build the graphs of a model without `refusals`; return them by file name."""
    decoder, encoder = model.decoder, model.encoder
    assert isinstance(decoder, AttentiveDecoder)
    assert isinstance(encoder, RecurrentEncoder)
    memory = {"keys": "FLOAT rows slots keys", "values": "FLOAT rows slots values", "mask": "BOOL rows slots"}
    state = {"hidden": "FLOAT rows layers units"} | ({"feed": "FLOAT rows features"} if decoder.feed_size else {})
    first = _encoder(model, encoder, decoder)
    step = _step(model, decoder)
    following = {f"new_{name}": shape for name, shape in state.items()}
    results = {"log_probs": "FLOAT rows vocabulary", "weights": "FLOAT rows slots", **following}
    return {
        ENCODER: first.model("encoder", {"source": "INT64 rows slots", "lengths": "INT64 rows"}, {**memory, **state}),
        STEP: step.model("step", {"token": "INT64 rows", **state, **memory}, results),
    }


def _encoder(model: Seq2Seq, encoder: RecurrentEncoder, decoder: AttentiveDecoder) -> Graph:
    """The graph from source ids to the memory and the first state."""
    graph, rnn, attention = Graph(), encoder.rnn, decoder.attention
    assert isinstance(rnn, nn.GRU)
    short = graph.add("Cast", "lengths", to=6)  # int32, which the operator GRU requires
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
    keys, weight = graph.linear(values, attention.key), key_weight(attention.score)
    graph.output("keys", keys if weight is None else graph.times(keys, weight))
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
    """The graph of one decoder step for N hypotheses."""
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
        weights, context = _attend(graph, decoder.attention, before)
        new = _update(graph, decoder, graph.add("Add", gates, graph.times(context, fed)), hidden)
        top = before if decoder.previous_state else new[-1]
    else:
        if decoder.feed_size:
            gates = graph.add("Add", gates, graph.times("feed", fed))
        new = _update(graph, decoder, gates, hidden)
        weights, context = _attend(graph, decoder.attention, new[-1])
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
    """The new state of each recurrent layer; `gates` are the gate inputs of the first layer."""
    new: list[str] = []
    for layer, state in enumerate(hidden):
        weight_ih, weight_hh, bias_ih, bias_hh = layer_parameters(decoder.rnn, layer)
        if layer:
            gates = graph.times(new[-1], weight_ih, bias_ih)
        new.append(graph.gru_step(gates, state, weight_hh, bias_hh))
    return new


def _attend(graph: Graph, attention: Attention, query: str) -> tuple[str, str]:
    """The weights [N, S] and the context [N, C] of queries [N, D]."""
    query, form = graph.linear(query, attention.query), attention.score.form
    assert form is not None
    if isinstance(form, AdditiveForm):
        terms = graph.add("Unsqueeze", graph.times(query, form.query_weight), graph.integers(1))
        activated = graph.add("Tanh", graph.add("Add", terms, "keys"))
        energies = graph.add("Squeeze", graph.times(activated, form.v.unsqueeze(0)), graph.integers(2))
    else:
        if form.scale != 1:
            query = graph.add("Mul", query, graph.weight(form.scale))
        row = graph.add("Unsqueeze", query, graph.integers(1))
        energies = graph.add("MatMul", row, graph.add("Transpose", "keys", perm=(0, 2, 1)))
        energies = graph.add("Squeeze", energies, graph.integers(1))
    lowest = graph.weight(np.finfo(np.float32).min)
    weights = graph.add("Softmax", graph.add("Where", "mask", energies, lowest), axis=-1)
    context = graph.add("MatMul", graph.add("Unsqueeze", weights, graph.integers(1)), "values")
    return weights, graph.linear(graph.add("Squeeze", context, graph.integers(1)), attention.out)


def _read_out(graph: Graph, decoder: AttentiveDecoder, inputs: Mapping[str, str]) -> str:
    """The features [N, F] that the readout computes for the output layer."""
    readout = decoder.readout
    units = graph.add("Concat", *(inputs[name] for name in readout.sees), axis=-1)
    if isinstance(readout.linear, nn.Linear):
        units = graph.linear(units, readout.linear)
    if isinstance(readout, Maxout):
        pairs = graph.add("Reshape", units, graph.integers(0, readout.size, 2))
        return graph.add("ReduceMax", pairs, graph.integers(2), keepdims=0)
    return graph.add("Tanh", units) if isinstance(readout, Tanh) else units


def _save(folder: Path, model: Seq2Seq, tokenizer: Tokenizer, quantization: str) -> None:
    """Write the graphs; with `quantization` int8, matrix products and embeddings are quantised."""
    import onnx

    for name, graph in to_onnx(model).items():
        if quantization == "int8":
            from onnxruntime.quantization import QuantType, quantize_dynamic

            # Marks the graph as preprocessed, which avoids a warning: shape inference is not needed.
            onnx.helper.set_model_props(graph, {"onnx.quant.pre_process": "onnxruntime.quant"})
            # 7 bits instead of 8: products of 8-bit values overflow on CPUs without VNNI.
            settings: dict[str, Any] = {"weight_type": QuantType.QInt8, "per_channel": True, "reduce_range": True}
            only = {"MatMulConstBOnly": True}
            quantize_dynamic(
                graph, folder / name, op_types_to_quantize=["MatMul", "Gather"], extra_options=only, **settings
            )
        else:
            onnx.save(graph, folder / name)


def _log_probs(folder: Path, tokenizer: Tokenizer, batch: Batch) -> Floats:
    """The log-probabilities of a batch's target pieces, computed by the exported graphs in a folder."""
    import onnxruntime

    encoder, step = (onnxruntime.InferenceSession(folder / name) for name in (ENCODER, STEP))
    given = {"source": batch.source.numpy(), "lengths": batch.source_lengths.numpy()}
    memory = dict(zip([output.name for output in encoder.get_outputs()], encoder.run(None, given), strict=True))
    target_in, target_out = batch.target_in.numpy(), batch.target_out.numpy()
    columns = []
    for position in range(target_in.shape[1]):
        log_probs, _, *state = step.run(None, {"token": target_in[:, position], **memory})
        memory |= dict(zip(["hidden", "feed"], state, strict=False))
        columns.append(np.take_along_axis(log_probs, target_out[:, position : position + 1], 1))
    words: Floats = np.concatenate(columns, 1)[batch.target_mask.numpy()]
    return words


ONNX = ExportFormat(
    name="onnx",
    packages=("onnx", "onnxruntime"),
    quantizations=("float32", "int8"),
    settings={},
    refusals=refusals,
    save=_save,
    log_probs=_log_probs,
    only_allowed=False,
)
