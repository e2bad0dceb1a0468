"""The Weighted Transformer: each head goes through a separate feed-forward network, with learned weights.

Shapes: N sentences, H heads, T words, d the size of a head's context, D of a word's vector, F of an inner layer.
"""

import torch
from torch import Tensor, nn

from nmt.attention.head_parameters import HeadLinear, by_head
from nmt.system.errors import SettingError


class Branches(nn.Module):
    """sum_i alpha_i FFN_i(kappa_i head_i W_i^O), over the branches i. Ahmed, Keskar, Socher 2017, eq. 3 to 5.

    FFN_i(x) = max(0, x W_i,1 + b_i,1) W_i,2 + b_i,2. The H branches divide one feed-forward network: each has 1 / H of
    the inner layer. kappa = softmax(k) and alpha = softmax(a), so that each sums to one whatever the optimiser does.
    All weights start equal.

    Branches replace a feed-forward network and the attention before it, with one residual connection around them.
    The decoder's masked self-attention keeps its heads.

    In a fresh layer, the weights scale the output of the branches by 1 / H^2, as in the paper. The paper normalises
    after the residual connection (`norm` "post"), the default here is "pre" (docs/choosing-an-attention.md, "Model
    families").

    Unlike the paper, kappa and alpha have no separate learning rates, are not frozen before the end, and there is no
    dropout inside a branch.
    """

    def __init__(self, heads: int, context_size: int, size: int, inner_size: int) -> None:
        """`heads` is H; `context_size` is d, `size` is D, `inner_size` is H * F.

        Raises:
            SettingError: the inner size is not a multiple of the heads.
        """
        super().__init__()
        if inner_size % heads:
            near = max(1, round(inner_size / heads)) * heads
            rule = f"must be a multiple of the {heads} heads, each of which has a branch."
            rule += f" Give {{key}}.feed_forward_size={near} or another number of heads."
            raise SettingError("feed_forward_size", inner_size, rule)
        self.heads = heads
        self.out = HeadLinear(context_size, size, heads)
        self.inner = HeadLinear(size, inner_size // heads, heads)
        self.outer = HeadLinear(inner_size // heads, size, heads)
        self.inner_bias, self.outer_bias = (
            nn.Parameter(torch.empty(inner_size)),
            nn.Parameter(torch.empty(heads * size)),
        )
        self.k, self.a = nn.Parameter(torch.empty(heads)), nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the biases zero, and the weights of the branches equal."""
        for vector in (self.inner_bias, self.outer_bias, self.k, self.a):
            nn.init.zeros_(vector)

    @property
    def kappa(self) -> Tensor:
        """The weights [H] of the heads' contexts: positive, with the sum one."""
        return torch.softmax(self.k, 0)

    @property
    def alpha(self) -> Tensor:
        """The weights [H] of the branches' results: positive, with the sum one."""
        return torch.softmax(self.a, 0)

    def forward(self, contexts: Tensor) -> Tensor:
        """Contexts [N, H, T, d] of the heads -> [N, T, D]."""
        heads = self.out(contexts) * self.kappa[:, None, None]
        inner = self.inner(heads) + by_head(self.inner_bias, self.heads).view(self.heads, 1, -1)
        outer = self.outer(inner.relu_()) + by_head(self.outer_bias, self.heads).view(self.heads, 1, -1)
        return torch.einsum("h,nhtd->ntd", self.alpha.to(outer.dtype), outer)


def branch_weights(model: nn.Module) -> dict[str, float]:
    """kappa and alpha of every layer with branches, by curve name: "branches/encoder.1/kappa_2" and so on."""
    curves = {}
    for path, module in model.named_modules():
        if isinstance(module, Branches):
            side, _, layer, *_ = path.split(".")
            for kind, weights in (("kappa", module.kappa), ("alpha", module.alpha)):
                for head, weight in enumerate(weights.tolist(), 1):
                    curves[f"branches/{side}.{int(layer) + 1}/{kind}_{head}"] = weight
    return curves
