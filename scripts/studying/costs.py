"""What the rows of the study cost on one core: an update and a beam search of each, in turn, round after round.

Weights are untrained and tokens are random: all sentences have one length, so that every row has the same work to do.
Times are of the processor, which other programs disturb little.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from benchmarking.costs import Unending

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.compute import Compute
from nmt.data.batch import make_batch
from nmt.files import write_json
from nmt.search import BeamSearch, Limits
from nmt.text.tokenizer import BOS, EOS, PAD
from nmt.training.learner import Learner
from nmt.translation.stepping import Stepper, evaluating
from studying.rows import SIZES, Row

SENTENCES, LENGTH, PIECES = 64, 15, 4000
COSTS = Path("docs", "attention-study", "costs.json")
Work = Callable[[], None]


def measure(rows: Sequence[Row], rounds: int, path: Path = COSTS) -> int:
    """Measure every row in as many rounds, after one that warms up, and write microseconds a target token; return 0."""
    compute = Compute.choose("cpu", "float32", threads=1)
    works = {row.name: works_of(row, compute) for row in rows}
    costs: dict[str, dict[str, list[float]]] = {name: {"training": [], "translating": []} for name in works}
    for turn in range(rounds + 1):
        for name, pair in works.items():
            for work, times in zip(pair, costs[name].values(), strict=True):
                before = time.process_time()
                work()
                if turn:
                    times.append(round((time.process_time() - before) / (SENTENCES * LENGTH) * 1e6, 1))
    write_json(path, costs)
    return 0


def read(path: Path = COSTS) -> dict[str, dict[str, list[float]]]:
    """For each row its microseconds a target token, round by round, "training" and "translating"; {} without a file."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def works_of(row: Row, compute: Compute) -> tuple[Work, Work]:
    """An update of the row's model and a beam search with beam 5, of a batch."""
    config = compose("train", [*SIZES, "data=builtin", "seed=1", *row.overrides])
    model = build.assemble(config, PIECES, PIECES, joint=True)
    optimizer, schedule = build.build_optimizer(config, model), build.build_schedule(config)
    learner = Learner(model, optimizer, schedule, build.build_trainer(config), compute)
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(EOS + 1, PIECES, (2, SENTENCES, LENGTH - 1), generator=generator).tolist()
    batch = make_batch(*tokens)
    limits = Limits(BOS, EOS, (PAD, BOS), torch.full((SENTENCES,), LENGTH))
    search, step = BeamSearch(beam_size=5), 0

    def update() -> None:
        nonlocal step
        model.train()
        learner.update([batch], step, 0.5)
        step += 1

    def translate() -> None:
        stepper = Stepper([model], compute, weights=False)
        with evaluating([model]), torch.inference_mode():
            search(Unending(stepper), stepper.start(batch.source, batch.source_mask, batch.source_lengths), limits)

    return update, translate
