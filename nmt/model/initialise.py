"""Initialise fresh models: call `reset_parameters` of every class that owns parameters.

The functions below initialise torch's embeddings, recurrent and linear layers. Features start about as small as
embeddings; the softmax multiplies them by `Decoder.logit_scale`, so that tied logits start with a deviation of 0.3 to
0.9. Other torch layers (LayerNorm) start with torch's defaults.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nmt.model.seq2seq import Seq2Seq


def initialise(model: Seq2Seq, seed: int) -> None:
    """Initialise every parameter of `model` from `seed`, without changing the global random state.

    Raises:
        TypeError: a class has parameters but no `reset_parameters`.
    """
    tied = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Embedding)}
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed the GPUs' generators, too
        for module in model.modules():
            reset: Callable[[Any], None] | None = next(
                (start for kind, start in _TORCH.items() if isinstance(module, kind)), None
            )
            if isinstance(module, nn.Linear) and id(module.weight) in tied:
                nn.init.zeros_(module.bias)  # the weight is an embedding's
            elif reset is not None:
                reset(module)
            elif next(module.parameters(recurse=False), None) is not None:
                reset_parameters: Callable[[], None] | None = getattr(module, "reset_parameters", None)
                if reset_parameters is None:
                    raise TypeError(f"{type(module).__name__} has parameters but no reset_parameters(). Define it.")
                reset_parameters()


def reset_embedding(layer: nn.Embedding) -> None:
    """Draw embeddings from a normal distribution with deviation E^-1/2; the padding row is zero."""
    nn.init.normal_(layer.weight, std=layer.weight.shape[1] ** -0.5)
    if layer.padding_idx is not None:
        layer.weight[layer.padding_idx] = 0


def reset_recurrent(layer: nn.RNNBase) -> None:
    """Make each gate's state matrix orthogonal, its input matrix uniform (Glorot and Bengio 2010), and biases zero."""
    for name, parameter in layer.named_parameters():
        if parameter.ndim < 2:
            nn.init.zeros_(parameter)
            continue
        for gate in parameter.split(layer.hidden_size):
            (nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_)(gate)


def reset_linear(layer: nn.Linear) -> None:
    """Make the matrix uniform after Glorot and Bengio 2010, and the bias zero."""
    nn.init.xavier_uniform_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


_TORCH: dict[type[nn.Module], Callable[[Any], None]] = {
    nn.Embedding: reset_embedding,
    nn.RNNBase: reset_recurrent,
    nn.Linear: reset_linear,
}
