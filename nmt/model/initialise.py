"""Initialisation, stated in one place.

Embeddings: normal with deviation E^-1/2, and features start about as small; the softmax multiplies them by F^1/2
(seq2seq.py), so that tied logits start with a deviation of 0.3 to 0.9. The padding row is zero.
Recurrent matrices: orthogonal, gate by gate. Other matrices: uniform after Glorot and Bengio 2010, gate by gate where
a recurrent layer stacks gates. The v of an additive score: uniform within 16 A^-1/2, since what it multiplies starts
about as small as the embeddings; with A^-1/2 it looks at everything alike for long, and a small model may never learn
to look (docs/results.md). The v of a predicted window: uniform within D^-1/2. The bilinear score's W: a Glorot matrix
times D^-1/2, so that its weights start spread out, as those of a scaled dot product do, and not on one slot. Other
vectors (biases, the weight of the coverage): zero.
"""

import torch
from torch import nn

from nmt.attention import Score, Window
from nmt.attention.scores import General
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
        bilinear = {id(score.W.weight) for score in model.modules() if isinstance(score, General)}
        bounds = {
            id(vector): spread * vector.shape[0] ** -0.5
            for kind, spread in ((Score, 16.0), (Window, 1.0))
            for part in model.modules()
            if isinstance(part, kind)
            for name, vector in part.named_parameters(recurse=False)
            if name == "v"
        }
        embeddings = {id(layer.weight): layer for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for name, parameter in model.named_parameters():
            if id(parameter) in embeddings:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
                padding = embeddings[id(parameter)].padding_idx
                if padding is not None:
                    parameter[padding] = 0
            elif parameter.ndim == 1:
                bound = bounds.get(id(parameter), 0.0)
                nn.init.uniform_(parameter, -bound, bound)
            elif id(parameter) in recurrent:
                size = recurrent[id(parameter)].hidden_size
                for gate in parameter.split(size):
                    if "weight_hh" in name:
                        nn.init.orthogonal_(gate)
                    else:
                        nn.init.xavier_uniform_(gate)
            else:
                nn.init.xavier_uniform_(parameter)
                if id(parameter) in bilinear:
                    parameter.mul_(parameter.shape[0] ** -0.5)
