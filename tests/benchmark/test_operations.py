"""The operations of models: by hand, and as torch counts them."""

import math

import pytest
import torch
from benchmarking import costs, flops
from benchmarking.flops import Product
from benchmarking.settings import (
    MATCHED,
    MODELS,
    TRANSFORMER,
    Place,
    Sizes,
    overrides,
)
from torch.utils.flop_counter import FlopCounterMode

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.data.batch import make_batch

#: Sizes that are all different, but for what has to be the same.
SIZES = Sizes(pieces=11, embedding=3, encoder=2, decoder=5, attention=6, features=7)

# One pair of 2 source and 3 target tokens; 2 x rows x inner x columns each, "3 times" for 3 target tokens.
ENCODER = 2 * (2 * 2 * 3 * 6 + 2 * (2 * 1 * 2 * 6))  # both directions: inputs at once, states one after the other
WORDS, STATES, SOFTMAX = 2 * 3 * 3 * 15, 3 * (2 * 5 * 15), 2 * 3 * 7 * 11
BY_HAND = {
    "bahdanau": ENCODER
    + 2 * 2 * 5  # first state, from the backward encoder's last one
    + 2 * 2 * 4 * 6  # keys
    + 3 * (2 * 5 * 6)  # queries
    + 3 * (2 * 2 * 6 * 1)  # energies of 2 slots
    + 3 * (2 * 2 * 4)  # contexts
    + WORDS
    + 3 * (2 * 4 * 15)  # contexts into the gates
    + STATES
    + 2 * 3 * (4 + 5 + 3) * 14  # maxout
    + SOFTMAX,
    "luong": ENCODER
    + 2 * 4 * 5  # first state
    + 2 * 2 * 4 * 5  # keys
    + 3 * (2 * 5 * 2)  # energies
    + 3 * (2 * 2 * 4)  # contexts
    + WORDS
    + 3 * (2 * 7 * 15)  # features into the gates
    + STATES
    + 2 * 3 * (4 + 5) * 7  # tanh
    + SOFTMAX,
    "none": ENCODER
    + 2 * 4 * 5  # first state
    + WORDS
    + 2 * 4 * 15  # the summary into the gates, once a sentence
    + STATES
    + 2 * 4 * 14  # the summary into the maxout
    + 2 * 3 * (5 + 3) * 14  # the rest of the maxout
    + SOFTMAX,
}
BY_HAND["luong_without_feeding"] = BY_HAND["luong"] - 3 * (2 * 7 * 15)
BY_HAND["transformer"] = (
    2 * 2 * (12 * 3 * 3)  # encoder: queries, keys, values, results, both layers of the network
    + 2 * (2 * 2 * 2 * 3)  # energies and contexts
    + 2 * 3 * (12 * 3 * 3)  # decoder
    + 2 * (2 * 3 * 3 * 3)
    + 2 * (3 + 2) * (2 * 3 * 3)  # between the two
    + 2 * (2 * 3 * 2 * 3)
    + 2 * 3 * 3 * 11  # softmax
)
#: Sizes of a model: those of the Transformer are all one.
SIZES_OF = {name: SIZES._replace(embedding=8) if name == TRANSFORMER.name else SIZES for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_operations_by_hand(name: str) -> None:
    assert sum(product.flops for product in flops.forward(SIZES, MODELS[name], 1, 2, 3)) == BY_HAND[name]
    assert flops.pair(SIZES, MODELS[name], 2, 3) == 3 * BY_HAND[name]
    assert flops.total(SIZES, MODELS[name], [(2, 3), (2, 3)]) == 6 * BY_HAND[name]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_operations_are_those_that_torch_counts(name: str, layers: int) -> None:
    sizes = SIZES_OF[name]._replace(layers=layers)
    config = compose("train", [*overrides(MODELS[name], sizes, 4, 80), "model.fast=false"])
    model = build.assemble(config, sizes.pieces, sizes.pieces, True).eval().requires_grad_(False)
    batch = make_batch([[4, 5, 6]] * 4, [[7, 8, 9, 10, 4]] * 4)  # no padding; 4 and 6 tokens with their ends

    def vectors(matrix: tuple[int, int], *_: object, **__: object) -> int:
        return 2 * matrix[0] * matrix[1]

    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.mv: vectors})
    with counter, torch.no_grad():
        decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in)
        model.logits(decoded.features[batch.target_mask])
    assert counter.get_total_flops() == sum(own.flops for own in flops.forward(sizes, MODELS[name], 4, 4, 6))


@pytest.mark.parametrize("name", MODELS)
def test_a_step_has_three_products_for_each_of_the_forward_pass(name: str) -> None:
    forward = [own for own in flops.forward(MATCHED.sizes, MODELS[name], 80, 16, 15) if own.weights]
    assert sum(own.flops for own in flops.training(MATCHED.sizes, MODELS[name], 80, 16, 15)) == 3 * sum(
        own.flops for own in forward
    )
    # What the limit leaves out is next to nothing.
    everything = sum(own.flops for own in flops.forward(MATCHED.sizes, MODELS[name], 80, 16, 15))
    assert sum(own.flops for own in forward) > 0.98 * everything


def test_the_rate_is_that_of_all_products_together() -> None:
    place = Place("cpu", "float32", 1)
    products = [Product("a", 8, 16, 32, steps=3), Product("b", 8, 16, 32), Product("c", 64, 8, 8, copies=2)]
    assert 0 < costs.rate(products, 0.002, place, torch.float32) < math.inf
