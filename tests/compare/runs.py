"""Runs made by hand for the tests of this room: each gets a given share of its words right."""

import random
from typing import Any

from nmt.compare.results import Result, RunOnSplit, counted
from nmt.compare.significance import chrf_of
from nmt.evaluation import metrics
from nmt.evaluation.metrics import MetricScore
from nmt.evaluation.references import AttentionMap

MACHINE = {"device": "cpu", "threads": 1}


WORDS = [start + end for start in "bdfgklmnprst" for end in ("an", "el", "ist", "oru")]


NONE, BAHDANAU, LUONG = "none", "bahdanau", "luong"


ADDITIVE, GENERAL = "additive", "general"


def texts(count: int = 60) -> tuple[list[str], list[str]]:
    generator = random.Random(1)
    references = [" ".join(generator.choices(WORDS, k=generator.randint(2, 14))) for _ in range(count)]
    return [" ".join(word[::-1] for word in line.split()) for line in references], references


def result(
    name: str,
    seed: int,
    settings: dict[str, Any],
    quality: float,
    *,
    split: str = "test",
    origin: dict[str, str] | None = None,
    made: dict[str, str] | None = None,
    weights: bool = True,
) -> Result:
    """A run that gets this share of the words right."""
    sources, references = texts()
    generator = random.Random(f"{name} {seed}")
    hypotheses = [
        " ".join(word if generator.random() < quality else "wrong" for word in line.split()) for line in references
    ]
    found = {
        "bleu": metrics.bleu(hypotheses, references, "en"),
        "ter": MetricScore(50.0, "ter"),
        "chrf": MetricScore(0.0, "chrf"),
    }
    chrf = metrics.score(hypotheses[:1], references[:1], "en").chrf.signature
    counts = metrics.statistics("chrf", hypotheses, references, "en")
    found["chrf"] = MetricScore(float(chrf_of(counts.sum(0))), chrf)
    maps = [
        AttentionMap(
            line=line, source=["da", "<b>"], target=["$x$", "y", "z"], weights=[[1000, 0], [500, 500], [0, 1000]]
        )
        for line in (3, 5)
    ]
    scored = RunOnSplit(
        sources,
        references,
        hypotheses,
        [len(line.split()) for line in sources],
        "words",
        found,
        counted(hypotheses, references, "en", found),
        {"perplexity": 5.0 + seed, "attention_entropy": 1.5 if weights else None, "parameters": 1000, **MACHINE},
        maps if weights else [],
        made or {},
    )
    history = [
        {"step": at, "epoch": at / 2, "minutes": at * 1.5, "valid_bleu": at * quality, "valid_perplexity": 9 / at}
        for at in (1, 2, 3)
    ]
    training = {"minutes": 4.5, "train_tokens_per_second": 1000.0 * seed, "peak_memory": 2.0**30}
    made_from = {"training text": "x", **(origin or {})}
    return Result(name, seed, settings, made_from, training, history, {split: scored}, {}, "cpu, 1 threads")


def runs_of(settings: dict[str, Any], quality: float, seeds: int = 3, **more: Any) -> list[Result]:
    stem = "-".join(str(value).rpartition(".")[2].lower() for value in settings.values())
    return [result(f"{stem}-{seed}", seed, settings, quality, **more) for seed in range(1, seeds + 1)]


PLAIN = {"decoder": NONE, "decoder.size": 8}


OLD = {"decoder": BAHDANAU, "decoder.size": 8, "attention/score": ADDITIVE}


NEW = {"decoder": LUONG, "decoder.size": 9, "attention/score": GENERAL}


def study() -> list[tuple[str, dict[str, Any]]]:
    """A study of mechanisms, with what each variant should be called."""
    usual = {
        "attention/window": "global",
        "attention/read": "soft",
        "attention.heads": 1,
        "attention.coverage": False,
    }
    scores = ["dot", "general", "concat", "scaled_dot"]
    known = [("no attention", {**PLAIN, "decoder.summary": "every"}), ("bahdanau", {**OLD, **usual})]
    known += [(f"luong {name}", {**NEW, **usual, "attention/score": name}) for name in scores]
    for name in ("local_m", "local_p"):
        window = {"attention/window": name}
        known += [
            (f"luong general {name} {radius}", {**NEW, **usual, **window, "attention.window.radius": radius})
            for radius in (2, 4)
        ]
    known += [(f"bahdanau heads {heads}", {**OLD, **usual, "attention.heads": heads}) for heads in (2, 4)]
    known.append(("bahdanau coverage", {**OLD, **usual, "attention.coverage": True}))
    known.append(("conditional", {**OLD, **usual, "decoder": "conditional"}))
    hard = {"attention/read": "hard", "attention.read.entropy": 0.01}
    known.append(("bahdanau hard", {**OLD, **usual, **hard}))
    return known
