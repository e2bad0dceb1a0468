"""Initialisation, stated in one place.

Embeddings: normal with deviation E^-1/2, and features start about as small; the softmax multiplies them by F^1/2
(seq2seq.py), so that tied logits start with a deviation of 0.3 to 0.9. The padding row is zero.
Recurrent matrices: orthogonal, gate by gate. Other matrices: uniform after Glorot and Bengio 2010, gate by gate where
a recurrent layer stacks gates. Attention says beside each equation how its parameters start
(`reset_parameters`). Other vectors (biases): zero.
"""

import torch
from torch import nn

from nmt.attention import Score, Window
from nmt.attention.heads import HeadLinear
from nmt.model.seq2seq import Seq2Seq


def initialise(model: Seq2Seq, seed: int) -> None:
    """Fills every parameter of `model` from `seed`, without touching the global random state."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        recurrent = {
            id(parameter): layer
            for layer in model.modules()
            if isinstance(layer, nn.RNNBase)
            for parameter in layer.parameters()
        }
        parts = {
            id(parameter): part
            for part in model.modules()
            if isinstance(part, Score | Window | HeadLinear)
            for parameter in part.parameters(recurse=False)
        }
        done: set[nn.Module] = set()
        embeddings = {id(layer.weight): layer for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for name, parameter in model.named_parameters():
            part = parts.get(id(parameter))
            if part is not None:
                if part not in done:
                    part.reset_parameters()
                    done.add(part)
            elif id(parameter) in embeddings:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
                padding = embeddings[id(parameter)].padding_idx
                if padding is not None:
                    parameter[padding] = 0
            elif parameter.ndim < 2:
                nn.init.uniform_(parameter, 0.0, 0.0)
            elif id(parameter) in recurrent:
                size = recurrent[id(parameter)].hidden_size
                for gate in parameter.split(size):
                    if "weight_hh" in name:
                        nn.init.orthogonal_(gate)
                    else:
                        nn.init.xavier_uniform_(gate)
            else:
                nn.init.xavier_uniform_(parameter)
