"""What the cases do: train, multiply matrices, translate, grow. Each runs in a process of its own (`crew`).

A job is set up once and then carries out orders until none comes.
"""

import contextlib
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarking import corpus
from benchmarking.clocks import Clock, Enough, Feed, Still, Timed
from benchmarking.costs import growing, multiplying
from benchmarking.export_case import translate_exported
from benchmarking.models import built, composed, run_trainer, scores_of, take, translator_of
from benchmarking.neighbours import Neighbours, load
from benchmarking.plain import Plain, train_plain
from benchmarking.settings import (
    MODELS,
    PLAIN,
    TORCH_TRANSFORMER,
    TRANSFORMER,
    WIRINGS,
    Exchange,
    Json,
    Place,
    Scale,
    Sizes,
    unattended,
)
from benchmarking.torch_transformer import replaced
from nmt import __version__
from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.compute import Compute, choose_device, has_int8
from nmt.data.dataset import Split
from nmt.data.pairs import EncodedPairs, SampledPairs
from nmt.files import write_bytes
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights, save_weights
from nmt.runs import Run
from nmt.search import BeamSearch, GreedySearch
from nmt.text.tokenizer import load_tokenizer
from nmt.training.validation import Figures
from nmt.translation.types import Translation


def prepare(settings: Json, exchange: Exchange) -> None:
    """The corpus and the machine, before anything is measured."""
    places = [choose_device(device) for device in settings["devices"]]
    if settings["threads"]:
        Compute.choose("cpu", threads=settings["threads"])
    facts = corpus.prepare(settings["folder"], settings["data"], settings["tokenizer"], settings["scale"])
    exchange({"corpus": facts, "machine": machine(places)})


def machine(places: Sequence[torch.device]) -> Json:
    """Processor, threads and versions, and the GPU among the devices to measure."""
    facts: Json = {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "bf16": not Compute(torch.device("cpu"), torch.bfloat16).emulates,
        "int8": has_int8(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "nmt": __version__,
        "load_before": load(),
    }
    for gpu in (place for place in places if place.type == "cuda"):
        facts["gpu"] = torch.cuda.get_device_name(gpu)
        facts["cuda"] = torch.version.cuda
    return facts


def _cpu() -> str:
    with contextlib.suppress(OSError):
        for row in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if row.startswith("model name"):
                return row.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def training(settings: Json, exchange: Exchange) -> None:
    """Train a wiring with the project's loop; orders: {"updates": n} to be measured, {"save": path}."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    folder: Path = settings["folder"]
    batch: int = settings["batch"]
    compute = take(place)
    pairs = corpus.read_pairs(folder)
    if settings["wiring"] == PLAIN:
        feed = _feed(pairs, exchange, place, batch, scale)
        with contextlib.suppress(Enough):
            train_plain(Plain(sizes, 0.3).to(place.device), feed, place)
        return
    in_torch = settings["wiring"] == TORCH_TRANSFORMER
    config = composed(TRANSFORMER if in_torch else MODELS[settings["wiring"]], sizes, batch, scale.longest)
    model = built(config, sizes, place)
    if in_torch:
        model = replaced(model, sizes, float(config.model.dropout))

    def answering(answer: Json) -> Json | None:
        order = exchange(answer)
        while order is not None and "save" in order:
            save_weights(order["save"], model)
            order = exchange(answer)
        return order

    run_trainer(config, model, _feed(pairs, answering, place, batch, scale), compute, folder)


def _feed(pairs: EncodedPairs, exchange: Exchange, place: Place, batch: int, scale: Scale) -> Feed:
    return Feed(pairs, exchange, place, tokens=batch * min(scale.longest, 64), sentences=batch)


def learning(settings: Json, exchange: Exchange) -> None:
    """Train one of `RECIPES`; orders: {"train": true}, then {"translate": weights} for one of the weights kept.

    The clock runs from the moment at which the loop asks for its first batch. It stands still from the end of an
    update after which the weights are kept until they lie on the disk and the loop asks for the next batch.
    """
    answer: Json = {}
    while (order := exchange(answer)) is not None:
        answer = _learn(settings) if "train" in order else _checked(settings, order["translate"])


def _learn(settings: Json) -> Json:
    """Train for the minutes of the scale; the update, the minutes and the file of each of the weights kept."""
    scale: Scale = settings["scale"]
    neighbours, before = Neighbours(), time.process_time()
    pilot = _checkpoints(settings, unattended("steps", scale.pilot))[-1]
    every = scale.minutes / scale.points * pilot["update"] / pilot["minutes"]
    checkpoints = _checkpoints(settings, unattended("minutes", scale.minutes, max(1, round(every))))
    return {"kept": checkpoints, "cores_of_others": neighbours.cores(time.process_time() - before)}


def _checkpoints(settings: Json, budget: list[str]) -> list[Json]:
    """Train a new model until the budget ends; save its weights at every validation and at the end."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    folder: Path = settings["kept"]
    compute = take(place)
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
    checkpoints: list[Json] = []

    def keep(averaged: Seq2Seq) -> tuple[list[Translation], Figures]:
        path = folder / f"{len(checkpoints)}.safetensors"
        save_weights(path, averaged)
        checkpoints.append({"minutes": clock.stop() / 60, "weights": path})
        return [], Figures(0.0)

    model = built(config, settings["sizes"], place)
    history = run_trainer(config, model, feed, compute, folder, keep, still)
    return [
        {**checkpoint, "update": int(entry["step"])} for checkpoint, entry in zip(checkpoints, history, strict=True)
    ]


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
    model = built(compose("train", settings["recipe"]), settings["sizes"], place)
    load_weights(weights, model)
    translator = translator_of(model, folder, Compute(torch.device(place.device)), BeamSearch(5))
    lines = corpus.read_text(folder, "valid", corpus.SOURCE)
    return scores_of(folder, "valid", [best[0].text for best in translator.translate(lines)])


def translating(settings: Json, exchange: Exchange) -> None:
    """Translate the test set; orders: {"sentences": n} to be measured, {"texts": true} for the translations."""
    scale: Scale = settings["scale"]
    place: Place = settings["place"]
    sizes: Sizes = settings["sizes"]
    folder: Path = settings["folder"]
    compute = take(place)
    model = built(composed(WIRINGS[settings["wiring"]], sizes, scale.batch, scale.longest), sizes, place)
    load_weights(settings["weights"], model)
    lines = corpus.read_text(folder, "test", corpus.SOURCE)
    translator = translator_of(
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
            answer = scores_of(folder, "test", texts)
            continue
        selected = lines[: order["sentences"]]
        began = time.perf_counter()
        translations = [best[0] for best in translator.translate(selected)]
        seconds = time.perf_counter() - began
        texts = [translation.text for translation in translations]
        answer = {
            "seconds": seconds,
            "sentences": len(selected),
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
    exchange(scores_of(settings["folder"], settings["split"], settings["texts"]))


JOBS = {
    "prepare": prepare,
    "training": training,
    "learning": learning,
    "multiplying": multiplying,
    "translating": translating,
    "founding": founding,
    "scoring": scoring,
    "growing": growing,
    "exported": translate_exported,
}
