"""What the cases do: train, multiply matrices, translate, grow. Each runs in a process of its own (`crew`).

A job is set up once and then carries out orders until none comes.
"""

import contextlib
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from benchmarking import corpus, flops
from benchmarking.crew import Exchange, Neighbours, load
from benchmarking.flops import Product
from benchmarking.plain import Plain, train_plain
from benchmarking.settings import PLAIN, WIRINGS, Json, Place, Scale, Sizes, Wiring, overrides, unattended
from nmt import __version__, build
from nmt.command.composing import compose
from nmt.compute import Compute, choose_device
from nmt.data.batch import Batch, make_batch
from nmt.data.corpus import Split
from nmt.data.pairs import EncodedPairs, Ragged, SampledPairs, length_ratio, lexicon_of
from nmt.data.planning import TokenBatches
from nmt.files import write_bytes
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights, save_weights
from nmt.runs import Run
from nmt.search import BeamSearch, GreedySearch, Limits, Search, SearchState
from nmt.text.tokenizer import BOS, EOS, PAD, load_tokenizer
from nmt.training.learner import Learner
from nmt.training.loop import TrainingLoop
from nmt.training.validation import Translate, Validation
from nmt.translation.shortlist import Shortlist
from nmt.translation.stepping import Stepper
from nmt.translation.translator import EXTRA_LENGTH, Translator
from nmt.translation.types import Translation


class _Enough(Exception):  # noqa: N818  a way out of the training loop, not an error
    """Raised inside the training loop to end it."""


class Feed(TokenBatches):
    """Hands a training loop its batches and holds the clock.

    The clock runs from the moment at which the loop wants a batch to the moment at which it wants the one after the
    last: batches are made, moved, and trained on, weights updated. Between two orders the loop waits here.
    """

    def __init__(
        self, pairs: EncodedPairs, exchange: Exchange, place: Place, *, tokens: int, sentences: int, seed: int = 1
    ) -> None:
        super().__init__(pairs, tokens_per_batch=tokens, sentences_per_batch=sentences, seed=seed)
        self._exchange, self._gpu = exchange, place.device.startswith("cuda")
        self._left, self._began = 0, 0.0
        self._batches: list[Batch] = []
        self.updates = 0

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, as long as updates are ordered."""
        batches = super().epoch(epoch, start)
        while True:
            if self._left == 0:
                self._next_order()
            batch = next(batches, None)
            if batch is None:
                return
            self._left -= 1
            self.updates += 1
            self._batches.append(batch)
            yield batch

    def _next_order(self) -> None:
        order = self._exchange(self._measured())
        if order is None:
            raise _Enough
        self._left, self._batches = int(order["updates"]), []
        if self._gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._began = time.perf_counter()

    def _measured(self) -> Json:
        if self._gpu and self._batches:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - self._began
        lengths = [
            pair
            for batch in self._batches
            for pair in zip(batch.source_lengths.tolist(), batch.target_mask.sum(1).tolist(), strict=True)
        ]
        places = [sum(batch.source.numel() for batch in self._batches), sum(b.target_in.numel() for b in self._batches)]
        tokens = [sum(pair[side] for pair in lengths) for side in (0, 1)]
        return {
            "seconds": seconds,
            "updates": self.updates,
            "batches": len(self._batches),
            "sentences": len(lengths),
            "tokens": tokens[1],
            "lengths": lengths,
            "padding": [1 - own / all_ if all_ else 0.0 for own, all_ in zip(tokens, places, strict=True)],
            "gpu_memory": torch.cuda.max_memory_allocated() if self._gpu else 0,
        }


def composed(wiring: Wiring, sizes: Sizes, batch: int, longest: int) -> DictConfig:
    """The configuration of the matched model."""
    return compose("train", overrides(wiring, sizes, batch, longest))


def made(config: DictConfig, sizes: Sizes, place: Place) -> Seq2Seq:
    """A model of this configuration, on its device."""
    return build.assemble(config, sizes.pieces, sizes.pieces, True).to(place.device)


def _take(place: Place) -> Compute:
    """Sets up the threads and the device of `place`."""
    return Compute.choose(place.device, place.precision, place.threads)


def _nothing(_: Seq2Seq) -> tuple[list[Translation], float]:
    return [], 0.0


def _run_trainer(
    config: DictConfig,
    model: Seq2Seq,
    feed: TokenBatches,
    compute: Compute,
    folder: Path,
    translate: Translate = _nothing,
    validation: TokenBatches | None = None,
) -> list[dict[str, float]]:
    """The project's own loop, until the orders or the budget end; what it wrote down at each validation."""
    settings = build.build_trainer(config)
    learner = Learner(model, build.build_optimizer(config, model), build.build_schedule(config), settings, compute)
    loop = TrainingLoop(settings, learner, feed, Validation(validation or feed, translate, compute), Run(folder))
    with contextlib.suppress(_Enough):
        loop.run(seed=1)
    return loop.history


def prepare(settings: Json, exchange: Exchange) -> None:
    """The corpus and the machine, before anything is measured."""
    for device in settings["devices"]:
        choose_device(device)
    if settings["threads"]:
        Compute.choose("cpu", threads=settings["threads"])
    facts = corpus.prepare(settings["folder"], settings["data"], settings["tokenizer"], settings["scale"])
    exchange({"corpus": facts, "machine": machine()})


def machine() -> Json:
    """Processor, threads and versions."""
    facts: Json = {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "nmt": __version__,
        "load_before": load(),
    }
    if torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
        facts["cuda"] = torch.version.cuda
    return facts


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for row in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if row.startswith("model name"):
                return row.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def training(settings: Json, exchange: Exchange) -> None:
    """Trains a wiring with the project's loop; orders: {"updates": n} to be measured, {"save": path}."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    folder: Path = settings["folder"]
    batch: int = settings["batch"]
    compute = _take(place)
    pairs = corpus.read_pairs(folder)
    if settings["wiring"] == PLAIN:
        feed = _feed(pairs, exchange, place, batch, scale)
        with contextlib.suppress(_Enough):
            train_plain(Plain(sizes, 0.3).to(place.device), feed, place)
        return
    config = composed(WIRINGS[settings["wiring"]], sizes, batch, scale.longest)
    model = made(config, sizes, place)

    def answering(answer: Json) -> Json | None:
        order = exchange(answer)
        while order is not None and "save" in order:
            save_weights(order["save"], model)
            order = exchange(answer)
        return order

    _run_trainer(config, model, _feed(pairs, answering, place, batch, scale), compute, folder)


def _feed(pairs: EncodedPairs, exchange: Exchange, place: Place, batch: int, scale: Scale) -> Feed:
    return Feed(pairs, exchange, place, tokens=batch * min(scale.longest, 64), sentences=batch)


class Clock:
    """Seconds of training, without what is done between the updates at which it stands still."""

    def __init__(self) -> None:
        self._seconds, self._since = 0.0, 0.0
        self._runs = False

    def run(self) -> None:
        """Goes on, unless it runs."""
        if not self._runs:
            self._runs, self._since = True, time.perf_counter()

    def stop(self) -> float:
        """Stands still; the seconds so far."""
        if self._runs:
            self._runs, self._seconds = False, self._seconds + time.perf_counter() - self._since
        return self._seconds


class Timed(TokenBatches):
    """Hands a training loop its batches; the clock runs whenever the loop has asked for one."""

    clock: Clock

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch; making them is training too."""
        self.clock.run()
        for batch in super().epoch(epoch, start):
            yield batch
            self.clock.run()  # the loop wants the next one


class Still(TokenBatches):
    """Stands where the loop takes its validation batches: has none, and stops the clock."""

    clock: Clock

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Nothing."""
        self.clock.stop()
        yield from ()


def learning(settings: Json, exchange: Exchange) -> None:
    """Trains one of `RECIPES`; orders: {"train": true}, then {"translate": weights} for one of the weights kept.

    The clock runs from the moment at which the loop asks for its first batch. It stands still from the end of an
    update after which the weights are kept until they lie on the disk and the loop asks for the next batch.
    """
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        answer = _learn(settings) if "train" in order else _checked(settings, order["translate"])


def _learn(settings: Json) -> Json:
    """Trains for the minutes of the scale; the update, the minutes and the file of each of the weights kept."""
    scale: Scale = settings["scale"]
    neighbours, before = Neighbours(), time.process_time()
    pilot = _kept(settings, unattended("steps", scale.pilot))[-1]
    every = scale.minutes / scale.points * pilot["update"] / pilot["minutes"]
    kept = _kept(settings, unattended("minutes", scale.minutes, max(1, round(every))))
    return {"kept": kept, "cores_of_others": neighbours.cores(time.process_time() - before)}


def _kept(settings: Json, budget: list[str]) -> list[Json]:
    """Trains a new model until the budget ends, and keeps its weights at every validation and at the end."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    folder: Path = settings["kept"]
    compute = _take(place)
    config = compose("train", [*settings["recipe"], *budget])
    trainer = build.build_trainer(config)
    pairs, alpha = corpus.read_pairs(settings["folder"]), float(config.tokenizer.sampling)
    feed = Timed(
        _sampled(settings["folder"], alpha, scale) if alpha > 0 else pairs,
        tokens_per_batch=trainer.tokens_per_batch,
        sentences_per_batch=trainer.sentences_per_batch,
        seed=1,
    )
    still = Still(pairs, tokens_per_batch=trainer.tokens_per_batch)
    clock = feed.clock = still.clock = Clock()
    kept: list[Json] = []

    def keep(averaged: Seq2Seq) -> tuple[list[Translation], float]:
        path = folder / f"{len(kept)}.safetensors"
        save_weights(path, averaged)
        kept.append({"minutes": clock.stop() / 60, "weights": path})
        return [], 0.0

    model = made(config, settings["sizes"], place)
    history = _run_trainer(config, model, feed, compute, folder, keep, still)
    return [{**own, "update": int(entry["step"])} for own, entry in zip(kept, history, strict=True)]


def _sampled(folder: Path, alpha: float, scale: Scale) -> SampledPairs:
    source, target = (corpus.read_text(folder, "train", language) for language in (corpus.SOURCE, corpus.TARGET))
    return SampledPairs(
        Split("train", source, target),
        load_tokenizer(folder),
        alpha=alpha,
        seed=1,
        max_source_length=scale.longest,
        max_target_length=scale.longest,
    )


def _checked(settings: Json, weights: Path) -> Json:
    """The scores of these weights on the validation set, beam 5, in float32."""
    place: Place = settings["place"]._replace(precision="float32")
    folder: Path = settings["folder"]
    model = made(compose("train", settings["recipe"]), settings["sizes"], place)
    load_weights(weights, model)
    translator = _translator(model, folder, Compute(torch.device(place.device)), BeamSearch(5))
    lines = corpus.read_text(folder, "valid", corpus.SOURCE)
    return _scores(folder, "valid", [best[0].text for best in translator.translate(lines)])


def multiplying(settings: Json, exchange: Exchange) -> None:
    """Multiplies matrices of the sizes that a step has; orders: {"wiring": name, "seconds": s}."""
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    compute = _take(place)
    source, target = (max(1, round(length)) for length in settings["lengths"])
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        products = flops.training(sizes, WIRINGS[order["wiring"]], settings["batch"], source, target)
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


def _translator(
    model: Seq2Seq,
    folder: Path,
    compute: Compute,
    search: Search,
    batch: int = 64,
    shortlist: int = 0,
) -> Translator:
    """What the verb would translate with, from a run that learnt from the pairs in `folder`."""
    tokenizer, pairs = load_tokenizer(folder), corpus.read_pairs(folder)
    lexicon = lexicon_of(pairs, tokenizer.source.size) if shortlist else None
    return Translator(
        [model],
        tokenizer,
        search,
        compute=compute,
        batch_sentences=batch,
        length_ratio=length_ratio(pairs, EXTRA_LENGTH),
        keep_weights=False,  # as long as nobody asks for links or pictures
        shortlist=Shortlist(lexicon, shortlist, tokenizer.joint) if lexicon else None,
    )


def translating(settings: Json, exchange: Exchange) -> None:
    """Translates the test set; orders: {"sentences": n} to be measured, {"texts": true} for the translations."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    folder: Path = settings["folder"]
    compute = _take(place)
    model = made(composed(WIRINGS[settings["wiring"]], sizes, scale.batch, scale.longest), sizes, place)
    load_weights(settings["weights"], model)
    lines = corpus.read_text(folder, "test", corpus.SOURCE)
    translator = _translator(
        model,
        folder,
        compute,
        GreedySearch() if settings["search"] == "greedy" else BeamSearch(5),
        settings["batch"],
        settings["shortlist"],
    )
    list(translator.translate(lines[: min(settings["batch"], 4)]))  # warms up
    answer: Json = {}
    texts: list[str] = []
    while (order := exchange(answer)) is not None:
        if "texts" in order:
            answer = _scores(folder, "test", texts)
            continue
        chosen = lines[: order["sentences"]]
        began = time.perf_counter()
        translations = [best[0] for best in translator.translate(chosen)]
        seconds = time.perf_counter() - began
        texts = [translation.text for translation in translations]
        answer = {
            "seconds": seconds,
            "sentences": len(chosen),
            "tokens": sum(len(translation.pieces) for translation in translations),
        }


def founding(settings: Json, exchange: Exchange) -> None:
    """A run folder of the wiring bahdanau with these weights."""
    config = composed(WIRINGS["bahdanau"], settings["sizes"], settings["scale"].batch, settings["scale"].longest)
    run = Run(settings["run"])
    run.create(config, [], {}, load_tokenizer(settings["folder"]))
    write_bytes(run.best, settings["weights"].read_bytes())
    exchange({})


def scoring(settings: Json, exchange: Exchange) -> None:
    """The scores of translations of the first lines of a split."""
    exchange(_scores(settings["folder"], settings["split"], settings["texts"]))


def _scores(folder: Path, split: str, texts: list[str]) -> Json:
    """Cased, detokenised BLEU, and how long translations are, cut into pieces again, without their ends."""
    from nmt.evaluation.metrics import bleu

    if not texts:
        return {"bleu": 0.0, "pieces_per_sentence": 0.0}
    references = corpus.read_text(folder, split, corpus.TARGET)[: len(texts)]
    pieces = load_tokenizer(folder).target.encode(texts)
    return {
        "bleu": float(bleu(texts, references, corpus.TARGET).value),
        "pieces_per_sentence": float(np.mean([len(own) for own in pieces])),
    }


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
    compute = _take(place)
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
    flat = np.tile(np.concatenate([np.asarray(own, dtype=np.int32) for own in tokens]), count)
    side = Ragged([(flat, np.concatenate([[0], np.cumsum(lengths)]))])
    pairs = EncodedPairs(side, side, np.arange(len(side)), {})
    config = composed(WIRINGS[order["wiring"]], order["sizes"], order["sentences"], order["length"])
    answers: list[Json] = []

    def exchange(answer: Json) -> Json | None:
        answers.append(answer)
        return {"updates": [1, order["repeats"]][len(answers) - 1]} if len(answers) < 3 else None

    feed = Feed(pairs, exchange, place, tokens=order["sentences"] * order["length"], sentences=order["sentences"])
    _run_trainer(config, made(config, order["sizes"], place), feed, compute, settings["folder"])
    return float(answers[2]["seconds"]) / int(order["repeats"])


def _grown_translating(settings: Json, order: Json, place: Place, compute: Compute) -> float:
    config = composed(WIRINGS[order["wiring"]], order["sizes"], order["sentences"], order["length"])
    model = made(config, order["sizes"], place).eval()
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
            found = search(Unending(stepper), state, limits)
            assert all(len(own[0].tokens) == order["length"] for own in found)
    return (time.perf_counter() - began) / int(order["repeats"])


JOBS = {
    "prepare": prepare,
    "training": training,
    "learning": learning,
    "multiplying": multiplying,
    "translating": translating,
    "founding": founding,
    "scoring": scoring,
    "growing": growing,
}
