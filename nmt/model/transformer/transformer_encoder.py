"""The Transformer's encoder: every word attends to every word."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nmt.attention import Attention, Memory
from nmt.model.contract import Encoded, Encoder, head_names
from nmt.model.positions import Positions
from nmt.model.transformer.transformer_layer import EncoderLayer, Entrance, Norm
from nmt.system.limits import Fraction, Layers, Positive


class TransformerEncoder(Encoder):
    """Layers of self-attention and feed-forward networks, without a last state. Vaswani et al. 2017, section 3.1."""

    def __init__(
        self,
        self_attention: Callable[..., Attention],
        positions: Callable[..., Positions],
        embedding_size: int,
        *,
        size: Positive,
        layers: Layers = 3,
        feed_forward_size: Positive | None = None,
        branches: bool = False,
        norm: Norm = "pre",
        dropout: Fraction = 0.0,
    ) -> None:
        """`self_attention` makes a layer's attention, `positions` makes the positions for embeddings of size E.

        `size` is D, `feed_forward_size` the size of the inner layer; None for 4 D. With `branches`, each head has a
        part of the feed-forward network (Ahmed, Keskar, Socher 2017). With `norm` "pre", a last normalisation follows
        the layers. `dropout` acts on the output of each sublayer.
        """
        super().__init__()
        self.size = size
        self.entrance = Entrance(positions, embedding_size, size)
        windows = self.entrance.positions.windows()
        stack = nn.ModuleList(
            EncoderLayer(
                self_attention(size, size, context_size=size, is_self_attention=True, also=windows),
                *(size, feed_forward_size, branches, norm, dropout),
            )
            for _ in range(layers)
        )
        self.layers = cast("Sequence[EncoderLayer]", stack)
        self.heads = head_names(layer.self_attention.heads for layer in self.layers)
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        self.learned_positions = self.entrance.positions.learned_positions
        everywhere = all(layer.self_attention.window.is_everything for layer in self.layers)
        self.recalls = everywhere and not self.entrance.positions.is_absolute

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        return self._run(embedded, mask)

    def recall(self, embedded: Tensor, mask: Tensor, past: Tensor, real: Tensor) -> Encoded:
        with torch.no_grad():
            steps = torch.arange(real.shape[1], device=real.device).expand(real.shape)
            y = self.entrance(past, steps)
            states = [y]
            for layer in self.layers[:-1]:
                y = layer(y, real, steps)
                states.append(y)
        memories = [
            layer.self_attention.remember(layer.around_self.before(y), real)
            for layer, y in zip(self.layers, states, strict=True)
        ]
        return self._run(embedded, mask, memories)

    def _run(self, embedded: Tensor, mask: Tensor, past: Sequence[Memory] = ()) -> Encoded:
        first = past[0].mask.shape[1] if past else 0
        steps = torch.arange(first, first + mask.shape[1], device=mask.device).expand(mask.shape)
        x = self.entrance(embedded, steps)
        for number, layer in enumerate(self.layers):
            x, _ = layer.attend_to_self(x, mask, steps, past[number] if past else None)
            x = layer.transform(x)
        # from deviation 1 to the deviation of embeddings
        return Encoded(self.norm(x) * (mask.unsqueeze(-1) * self.size**-0.5), mask)
