"""Builder for a graph of ONNX operators, with the layers of recurrent models.

Graphs are built operator by operator, because `torch.onnx.export` cannot pack padded sequences (pytorch issue 112044,
open in 2026), and until 2026 exported GRUs with a wrong `linear_before_reset` (issue 189225). Graphs built here also
contain no sizes of an example input. The operators are from opset 18 (https://onnx.ai/onnx/operators/).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from nmt.export.format import array

if TYPE_CHECKING:
    import onnx

OPSET, IR_VERSION = 18, 9

#: torch's indices of a GRU's gates in the order of ONNX: torch has r, z, n; ONNX has z, r, h.
_GATES = (1, 0, 2)


#: Names of tensors -> type and axes, such as "FLOAT rows slots".
Described = Mapping[str, str]


class Graph:
    """Operators and weights; every method adds operators and returns the name of their result."""

    def __init__(self) -> None:
        self._nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self._weights: dict[str, npt.NDArray[Any]] = {}
        self._count = 0

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def weight(self, values: npt.ArrayLike, dtype: Any = np.float32) -> str:
        """Add a constant."""
        name = self._name("weight")
        self._weights[name] = np.array(values, dtype=dtype, order="C")
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of int64."""
        return self.weight(values, np.int64)

    def several(self, operator: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Add an operator with `count` results; return their names."""
        outputs = [self._name(operator) for _ in range(count)]
        self._nodes.append((operator, list(inputs), outputs, attributes))
        return outputs

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one result."""
        return self.several(operator, inputs, 1, **attributes)[0]

    def output(self, name: str, value: str) -> None:
        """Make the result `value` an output of the graph with the name `name`."""
        self._nodes.append(("Identity", [value], [name], {}))

    def times(self, value: str, matrix: Tensor, bias: Tensor | None = None) -> str:
        """x W^T + b for x [..., I], W [O, I] and b [O]."""
        product = self.add("MatMul", value, self.weight(array(matrix).T))
        return product if bias is None else self.add("Add", product, self.weight(array(bias)))

    def linear(self, value: str, layer: nn.Linear | None) -> str:
        """A linear layer; without a layer, the value itself."""
        return value if layer is None else self.times(value, layer.weight, layer.bias)

    def gru_step(self, gates: str, state: str, weight_hh: Tensor, bias_hh: Tensor) -> str:
        """One step from gate inputs [N, 3D] and state [N, D], as `nmt.kernels.gru.gru` computes it."""
        recurrent = self.times(state, weight_hh, bias_hh)
        inputs = self.several("Split", [gates], 3, axis=-1, num_outputs=3)
        hidden = self.several("Split", [recurrent], 3, axis=-1, num_outputs=3)
        reset, update = (self.add("Sigmoid", self.add("Add", inputs[gate], hidden[gate])) for gate in (0, 1))
        new = self.add("Tanh", self.add("Add", inputs[2], self.add("Mul", reset, hidden[2])))
        return self.add("Add", new, self.add("Mul", update, self.add("Sub", state, new)))

    def gru_layer(self, value: str, lengths: str, rnn: nn.GRU, layer: int) -> tuple[str, str]:
        """A GRU layer over value [S, B, I] with lengths [B] int32; returns states [S, B, C] and last states [B, C]."""
        suffixes = ("", "_reverse") if rnn.bidirectional else ("",)

        def stacked(kind: str) -> npt.NDArray[np.float32]:
            parts = [array(getattr(rnn, f"{kind}_l{layer}{suffix}")) for suffix in suffixes]
            return np.stack([np.concatenate([np.split(part, 3)[gate] for gate in _GATES]) for part in parts])

        biases = np.concatenate([stacked("bias_ih"), stacked("bias_hh")], 1)
        states, last = self.several(
            "GRU",
            [value, *(self.weight(stacked(kind)) for kind in ("weight_ih", "weight_hh")), self.weight(biases), lengths],
            2,
            direction="bidirectional" if rnn.bidirectional else "forward",
            hidden_size=rnn.hidden_size,
            linear_before_reset=1,  # torch applies the reset gate after the matrix product
        )
        states = self.add("Reshape", self.add("Transpose", states, perm=(0, 2, 1, 3)), self.integers(0, 0, -1))
        return states, self.add("Reshape", self.add("Transpose", last, perm=(1, 0, 2)), self.integers(0, -1))

    def model(self, name: str, inputs: Described, outputs: Described) -> "onnx.ModelProto":
        """Build and check the ONNX model of the graph."""
        import onnx
        from onnx import helper, numpy_helper

        def values(described: Described) -> list[Any]:
            parts = {key: description.split() for key, description in described.items()}
            return [
                helper.make_tensor_value_info(key, onnx.TensorProto.DataType.Value(kind), shape)
                for key, (kind, *shape) in parts.items()
            ]

        graph = helper.make_graph(
            [helper.make_node(kind, given, outs, **attributes) for kind, given, outs, attributes in self._nodes],
            name,
            values(inputs),
            values(outputs),
            [numpy_helper.from_array(weight, key) for key, weight in self._weights.items()],
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="nmt")
        onnx.checker.check_model(model, full_check=True)
        return model
