"""The jobs of cases: train, translate, score. Each job runs in its own process (`crew`).

A job is set up once, and then carries out orders until it gets None.
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
from benchmarking.clocks import Enough, Feed
from benchmarking.models import built, composed, run_trainer, scores_of, take, translator_of
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
)
from benchmarking.torch_models import Plain, replaced, train_plain
from nmt import __version__
from nmt.data.pairs import EncodedPairs
from nmt.model.weights import load_weights, save_weights
from nmt.search import BeamSearch, GreedySearch
from nmt.system.compute import Compute, choose_device, has_int8


def prepare(settings: Json, exchange: Exchange) -> None:
    """Prepare the corpus; answer with facts about corpus and machine."""
    places = [choose_device(device) for device in settings["devices"]]
    if settings["threads"]:
        Compute.choose("cpu", threads=settings["threads"])
    facts = corpus.prepare(settings["folder"], settings["data"], settings["tokenizer"], settings["scale"])
    exchange({"corpus": facts, "machine": machine(places)})


def machine(places: Sequence[torch.device]) -> Json:
    """Facts about the machine: processor, threads, versions, and the GPU if it is measured."""
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
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
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
    """Train a wiring with the project's loop; orders: {"updates": n} to measure, {"save": path} to save weights."""
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


def translating(settings: Json, exchange: Exchange) -> None:
    """Translate the test set; orders: {"sentences": n} to measure, {"texts": true} to score the translations."""
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
            answer = scores_of(folder, texts)
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


def scoring(settings: Json, exchange: Exchange) -> None:
    """Answer with the scores of given translations of the first lines of the test set."""
    exchange(scores_of(settings["folder"], settings["texts"]))


JOBS = {
    "prepare": prepare,
    "training": training,
    "translating": translating,
    "scoring": scoring,
}
