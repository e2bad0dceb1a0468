"""Two cases: the rate at which the machine multiplies matrices, and how the cost of work grows with its size."""

import time
from typing import cast

import numpy as np
import torch
from torch import Tensor

from benchmarking import flops
from benchmarking.clocks import Feed
from benchmarking.flops import Product
from benchmarking.models import built, composed, run_trainer, take
from benchmarking.settings import MODELS, WIRINGS, Exchange, Json, Place, Sizes
from nmt.compute import Compute
from nmt.data.batch import make_batch
from nmt.data.pairs import EncodedPairs, Ragged
from nmt.search import BeamSearch, Limits, SearchState
from nmt.text.tokenizer import BOS, EOS, PAD
from nmt.translation.stepping import Stepper


def multiplying(settings: Json, exchange: Exchange) -> None:
    """Multiply matrices of the sizes that a step has; orders: {"wiring": name, "seconds": s}."""
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    compute = take(place)
    source, target = (max(1, round(length)) for length in settings["lengths"])
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        products = flops.training(sizes, MODELS[order["wiring"]], settings["batch"], source, target)
        answer = {"rate": rate(products, order["seconds"], place, compute.dtype or torch.float32)}


def rate(products: list[Product], seconds: float, place: Place, kind: torch.dtype) -> float:
    """Operations a second over all of `products`, each taken as often as it occurs, measured in about `seconds`.

    What attention does over the memory is left out: it is batched, small, and slow, so that the limit that remains is
    the higher one.
    """
    shapes: dict[tuple[int, int, int], int] = {}
    for product in products:
        shape = (product.rows, product.inner, product.columns)
        shapes[shape] = shapes.get(shape, 0) + product.steps * product.copies
    needed = 0.0
    with torch.inference_mode():
        for (rows, inner, columns), times in shapes.items():
            left = torch.randn(rows, inner, device=place.device, dtype=kind)
            right = torch.randn(inner, columns, device=place.device, dtype=kind)
            out = torch.empty(rows, columns, device=place.device, dtype=kind)
            needed += times * _seconds_of(left, right, out, seconds / len(shapes))
    return sum(product.flops for product in products) / needed


def _seconds_of(left: Tensor, right: Tensor, out: Tensor, seconds: float) -> float:
    """Mean time of a product, repeated for `seconds`; it is warm before the clock runs."""
    gpu = left.is_cuda
    torch.mm(left, right, out=out)
    torch.mm(left, right, out=out)
    done, began, repeat = 0, time.perf_counter(), 1
    if gpu:
        torch.cuda.synchronize()
        began, repeat = time.perf_counter(), 20
    while True:
        for _ in range(repeat):
            torch.mm(left, right, out=out)
        if gpu:
            torch.cuda.synchronize()
        done += repeat
        passed = time.perf_counter() - began
        if passed >= seconds:
            return passed / done


class Unending:
    """A step function that never ends a sentence of its own accord, so that the limit decides how long it gets."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def __call__(self, tokens: Tensor, state: SearchState) -> tuple[Tensor, Tensor | None, SearchState]:
        """As `Stepper`; the end has next to no probability."""
        log_probs, weights, state = self._stepper(tokens, state)
        log_probs[:, EOS] = -1e4
        return log_probs, weights, state


def growing(settings: Json, exchange: Exchange) -> None:
    """One point of a curve at a time.

    Orders: {"work", "wiring", "sizes", "length", "sentences", "beam", "repeats"}; the answer's `seconds` are those of
    one repeat, in which each of the `sentences` has `length` tokens on either side, ends included.
    """
    place: Place = settings["place"]
    compute = take(place)
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        measure = _grown_training if order["work"] == "training" else _grown_translating
        answer = {"seconds": measure(settings, order, place, compute)}


def _tokens(order: Json) -> list[list[int]]:
    """Random sentences without specials, one token shorter than `length`, which counts the end."""
    generator = np.random.default_rng(1)
    shape = (order["sentences"], order["length"] - 1)
    return cast("list[list[int]]", generator.integers(max(PAD, EOS) + 1, order["sizes"].pieces, shape).tolist())


def _grown_training(settings: Json, order: Json, place: Place, compute: Compute) -> float:
    tokens = _tokens(order)
    count = order["repeats"] + 2  # batches in an epoch, more than are trained on
    lengths = np.full(count * order["sentences"], order["length"] - 1)
    flat = np.tile(np.concatenate([np.asarray(sentence, dtype=np.int32) for sentence in tokens]), count)
    side = Ragged([(flat, np.concatenate([[0], np.cumsum(lengths)]))])
    pairs = EncodedPairs(side, side, np.arange(len(side)), {})
    config = composed(WIRINGS[order["wiring"]], order["sizes"], order["sentences"], order["length"])
    answers: list[Json] = []

    def exchange(answer: Json) -> Json | None:
        answers.append(answer)
        return {"updates": [1, order["repeats"]][len(answers) - 1]} if len(answers) < 3 else None

    feed = Feed(pairs, exchange, place, tokens=order["sentences"] * order["length"], sentences=order["sentences"])
    run_trainer(config, built(config, order["sizes"], place), feed, compute, settings["folder"])
    return float(answers[2]["seconds"]) / int(order["repeats"])


def _grown_translating(settings: Json, order: Json, place: Place, compute: Compute) -> float:
    config = composed(WIRINGS[order["wiring"]], order["sizes"], order["sentences"], order["length"])
    model = built(config, order["sizes"], place).eval()
    batch = make_batch(_tokens(order)).to(place.device)
    stepper = Stepper([model])
    limits = Limits(
        BOS, EOS, (PAD,), torch.full((order["sentences"],), order["length"], device=place.device), batch.source_mask
    )
    search = BeamSearch(order["beam"])
    began = 0.0
    with (
        torch.inference_mode(),
        compute.autocast(),
    ):
        for repeat in range(order["repeats"] + 1):
            if repeat == 1:  # the first one warms up
                began = time.perf_counter()
            state = stepper.start(batch.source, batch.source_mask, batch.source_lengths)
            nbest_lists = search(Unending(stepper), state, limits)
            assert all(len(nbest[0].tokens) == order["length"] for nbest in nbest_lists)
    return (time.perf_counter() - began) / int(order["repeats"])
