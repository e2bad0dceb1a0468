"""The arithmetic of the model, counted from its sizes: what a target token costs whatever computes it.

Counted are the products, a multiplication and an addition two operations, over real tokens: padding, element-wise work
(nonlinearities, softmax, dropout), looking up embeddings and the optimiser are left out. A backward pass has two
products of the same size for every one of the forward pass, the gradients of both factors, so that training counts
three times the forward pass. The equations are those of the step-by-step path; a path that reorders them may do with
fewer operations or with more, and is measured against the same count.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

from benchmarking.settings import Sizes, Wiring

#: A training step has its forward pass and both gradients of each of its products.
TRAINING = 3


class Product(NamedTuple):
    """[rows, inner] @ [inner, columns], done `steps` times one after the other, with `copies` different matrices.

    `weights` tells products with a weight matrix from those of attention over the memory.
    """

    name: str
    rows: int
    inner: int
    columns: int
    steps: int = 1
    copies: int = 1
    weights: bool = True

    @property
    def flops(self) -> int:
        """2 x rows x inner x columns, as often as it is done."""
        return 2 * self.rows * self.inner * self.columns * self.steps * self.copies


def _transformer(sizes: Sizes, sentences: int, source: int, target: int) -> list[Product]:
    """`forward` of the Transformer. Masked self-attention counts what its mask hides: nobody leaves it out."""
    size, layers = sizes.embedding, sizes.layers
    products = []
    for side, tokens, length in (("encoder", sentences * source, source), ("decoder", sentences * target, target)):
        products.append(Product(f"{side}, self-attention", tokens, size, size, copies=4 * layers))
        for name, inner, columns in (("energies", size, length), ("contexts", length, size)):
            products.append(Product(f"{side}, {name}", 1, inner, columns, tokens, layers, weights=False))
        products.append(Product(f"{side}, inner layer", tokens, size, 4 * size, copies=layers))
        products.append(Product(f"{side}, outer layer", tokens, 4 * size, size, copies=layers))
    written = sentences * target
    products.append(Product("queries and results", written, size, size, copies=2 * layers))
    products.append(Product("keys and values", sentences * source, size, size, copies=2 * layers))
    products.append(Product("energies", 1, size, source, written, layers, weights=False))
    products.append(Product("contexts", 1, source, size, written, layers, weights=False))
    products.append(Product("softmax", written, size, sizes.pieces))
    return products


def forward(sizes: Sizes, wiring: Wiring, sentences: int, source: int, target: int) -> list[Product]:
    """The products of a forward pass over `sentences` pairs, all of `source` and `target` tokens, ends included.

    Args:
        sizes: of the model.
        wiring: bahdanau has the additive score and a maxout readout, luong the general score and a tanh readout, none
            the encoder's last state at every step and a maxout readout.
        sentences: B.
        source: S, tokens of a source sentence with its end.
        target: T, tokens of a target sentence with its end.
    """
    if wiring.kind == "transformer":
        return _transformer(sizes, sentences, source, target)
    read, written = sentences * source, sentences * target
    values, state = 2 * sizes.encoder, sizes.decoder  # values: both directions side by side
    products = []
    for layer in range(sizes.layers):
        inputs = sizes.embedding if layer == 0 else values
        products.append(Product("encoder, inputs", read, inputs, 3 * sizes.encoder, copies=2))
        products.append(Product("encoder, states", sentences, sizes.encoder, 3 * sizes.encoder, source, copies=2))
    if wiring.kind == "bahdanau":
        products.append(Product("first state", sentences, sizes.encoder, sizes.layers * state))
    elif values != state:
        products.append(Product("first state", sentences * sizes.layers, values, state))
    if wiring.kind == "bahdanau":
        products.append(Product("keys", read, values, sizes.attention))
        products.append(Product("queries", sentences, state, sizes.attention, target))
        products.append(Product("energies", read, sizes.attention, 1, target, weights=False))
    elif wiring.kind == "luong":
        products.append(Product("keys", read, values, state))
        products.append(Product("energies", 1, state, source, written, weights=False))
    if wiring.kind != "none":
        products.append(Product("contexts", 1, source, values, written, weights=False))
    # What enters the decoder beside the previous word: known once a sentence (none) or only step by step.
    products.append(Product("decoder, words", written, sizes.embedding, 3 * state))
    if wiring.kind == "none":
        products.append(Product("decoder, summary", sentences, values, 3 * state))
    elif wiring.kind == "bahdanau":
        products.append(Product("decoder, contexts", sentences, values, 3 * state, target))
    elif wiring.fed:
        products.append(Product("decoder, features", sentences, sizes.features, 3 * state, target))
    products.append(Product("decoder, states", sentences, state, 3 * state, target, copies=sizes.layers))
    if sizes.layers > 1:
        products.append(Product("decoder, layers", sentences, state, 3 * state, target, copies=sizes.layers - 1))
    if wiring.kind == "luong":
        products.append(Product("readout", written, values + state, sizes.features))
    elif wiring.kind == "none":
        products.append(Product("readout, summary", sentences, values, 2 * sizes.features))
        products.append(Product("readout", written, state + sizes.embedding, 2 * sizes.features))
    else:
        products.append(Product("readout", written, values + state + sizes.embedding, 2 * sizes.features))
    products.append(Product("softmax", written, sizes.features, sizes.pieces))
    return products


def training(sizes: Sizes, wiring: Wiring, sentences: int, source: int, target: int) -> list[Product]:
    """The products with weight matrices of a whole step: those of `forward` and, for each, its two gradients.

    A weight's gradient is one product over all steps: nothing in it waits for the step before.
    """
    products = []
    for product in forward(sizes, wiring, sentences, source, target):
        if product.weights:
            rows, inner, columns = product.rows, product.inner, product.columns
            products.append(product)
            products.append(product._replace(name=f"{product.name}, gradient", inner=columns, columns=inner))
            products.append(
                product._replace(
                    name=f"{product.name}, weight gradient", rows=inner, inner=rows * product.steps, steps=1
                )
            )
    return products


@functools.cache
def pair(sizes: Sizes, wiring: Wiring, source: int, target: int) -> int:
    """Operations of training on one pair of these lengths, ends included: three times the forward pass."""
    return TRAINING * sum(product.flops for product in forward(sizes, wiring, 1, source, target))


def total(sizes: Sizes, wiring: Wiring, lengths: Iterable[tuple[int, int]]) -> int:
    """Operations of training on pairs of these lengths (source, target), ends included."""
    return sum(pair(sizes, wiring, source, target) for source, target in lengths)
