"""The output layer in int8 for search: docs/benchmarks.md, "Translating in bfloat16 and int8".

Each row of weights and of features has its own scale (dynamic quantisation), so that a translation does not depend on
the other sentences of its batch. oneDNN computes the products.
"""

import torch
from torch import Tensor, nn


class Int8Linear(nn.Linear):
    """A linear layer for inference on a CPU, x W^T + b with W and x in 8 bits and 32-bit accumulators.

    `weight` and `bias` are the parameters of the layer that it replaces.
    """

    def __init__(self, layer: nn.Linear) -> None:
        """Copy the layer's weights in int8; later changes of the weights have no effect."""
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        # Without VNNI, pairs of products are summed in 16 bits, which two full 8-bit products would overflow.
        self.levels = 127 if torch.cpu._is_vnni_supported() else 63
        exact = layer.weight.detach().float()
        scales = exact.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        rounded = (exact / scales.unsqueeze(1)).round().to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(rounded.contiguous(), None)
        self.packed: tuple[Tensor, ...] = packed, scales, torch.zeros(len(scales), dtype=torch.int64)

    def forward(self, features: Tensor) -> Tensor:
        """Features [..., F] -> [..., V] in float32."""
        rows = features.float().flatten(0, -2)
        scales = rows.abs().amax(1, keepdim=True).clamp_min_(torch.finfo(torch.float32).tiny) / self.levels
        middle = self.levels + 1
        rounded = (rows / scales).round_().add_(middle).to(torch.uint8)
        product = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, middle, *self.packed, None, 1.0, 0, torch.float32, "none", [], ""
        )
        result: Tensor = torch.addcmul(self.bias.float(), product, scales).unflatten(0, features.shape[:-1])
        return result
