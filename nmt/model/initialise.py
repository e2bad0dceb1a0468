"""Initialisation, stated in one place.

Embeddings: normal with deviation E^-1/2, and features start about as small; the softmax multiplies them by F^1/2
(seq2seq.py), so that tied logits start with a deviation of 0.3 to 0.9. The padding row is zero.
Recurrent matrices: orthogonal, gate by gate. Other matrices: uniform after Glorot and Bengio 2010, gate by gate where
a recurrent layer stacks gates. The W and U of an additive score (the W of concat): Glorot matrices times 4, and its v
uniform within 8 A^-1/2: the states that they multiply start about as small as the embeddings, and where tanh is all but
linear the query adds the same to every slot, so that there is nothing to learn to look with; but they grow, and wider
matrices leave it saturated in the end (docs/results.md). The v of a predicted window: uniform within D^-1/2. The
bilinear score's W: a Glorot matrix times D^-1/2, so that its weights start spread out, as those of a scaled dot product
do, and not on one slot. Other vectors and numbers (biases, the weight of the coverage): zero.
"""

import torch
from torch import nn

from nmt.attention import Score, Window
from nmt.attention.scores import Additive, Concat, General
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
        scores = [module for module in model.modules() if isinstance(module, Score)]
        factors = {
            id(score.W.weight): score.W.weight.shape[0] ** -0.5 for score in scores if isinstance(score, General)
        }
        factors |= {
            id(matrix): 4.0
            for score in scores
            if isinstance(score, Additive | Concat)
            for matrix in score.parameters()
            if matrix.ndim == 2
        }
        bounds = {
            id(vector): spread * vector.shape[0] ** -0.5
            for kind, spread in ((Score, 8.0), (Window, 1.0))
            for part in model.modules()
            if isinstance(part, kind)
            for name, vector in part.named_parameters(recurse=False)
            if name == "v" and vector.ndim == 1
        }
        embeddings = {id(layer.weight): layer for layer in model.modules() if isinstance(layer, nn.Embedding)}
        for name, parameter in model.named_parameters():
            if id(parameter) in embeddings:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
                padding = embeddings[id(parameter)].padding_idx
                if padding is not None:
                    parameter[padding] = 0
            elif parameter.ndim < 2:
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
                parameter.mul_(factors.get(id(parameter), 1.0))
