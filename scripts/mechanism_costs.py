"""What each attention mechanism costs a target token, beside the additive score: counted and measured in one run.

    python scripts/mechanism_costs.py [--rounds N] [--threads N] [--source S] [--target T]

Prints a Markdown table. One mechanism is the attention of a decoder alone: keys once a sentence, then energies, weights
and the context step by step, as in training (forward and backward). The counted figure holds the matrix products of the
forward pass (a multiplication and an addition are one); what is done element by element, as the products in brackets,
the nonlinearities and the softmax are, is measured only. Windows hide slots after all energies are known, so that they
save nothing here. Sizes are those of `experiment=multi30k`: states and values of 512, attention.size 256.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from nmt.build import parts as build
from nmt.command.composing import compose

SENTENCES, STATE = 64, 512
#: Name, overrides, and the products of a target token where a sentence has S slots and as many target tokens.
MECHANISMS = [
    ("additive", [], "D A + C A + S C (+ S A)"),
    ("concat", ["attention/score=concat"], "D A + C A + S C (+ S A)"),
    ("general", ["attention/score=general"], "C D + S D + S C"),
    ("dot", ["attention/score=dot"], "S D + S C"),
    ("scaled_dot", ["attention/score=scaled_dot", "attention.project=false"], "S D + S C"),
    ("cosine", ["attention/score=cosine"], "S D + S C"),
    ("location", ["attention/score=location"], "S D + S C"),
    ("additive, coverage", ["attention.coverage=true"], "D A + C A + S C (+ 2 S A)"),
    ("additive, local_m 4", ["attention/window=local_m", "attention.window.radius=4"], "D A + C A + S C (+ S A)"),
    ("additive, local_p 4", ["attention/window=local_p", "attention.window.radius=4"], "D A + C A + D D + S C (+ S A)"),
    ("additive, 2 heads", ["attention.heads=2"], "D A + 3 C A + A A + S A (+ S A)"),
    ("additive, 4 heads", ["attention.heads=4"], "D A + 3 C A + A A / 2 + S A (+ S A)"),
    ("additive, hard", ["attention/read=hard"], "D A + C A + S C (+ S A)"),
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--source", type=int, default=15)
    parser.add_argument("--target", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    works = {name: work(overrides, options.source, options.target) for name, overrides, _ in MECHANISMS}
    counts = {name: count(run) for name, run in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(options.rounds + 1):
        for name, run in works.items():
            before = time.perf_counter()
            run().backward()
            if turn:  # the first one warms up
                seconds[name].append(time.perf_counter() - before)
    tokens = SENTENCES * options.target
    print(
        f"S = {options.source}, T = {options.target}, D = C = {STATE}, A = 256, {SENTENCES} sentences, "
        f"{options.threads} threads, float32, torch {torch.__version__}, {options.rounds} rounds in turn\n"
    )
    print("| mechanism | multiplications a token, forward | to additive | µs a token, with backward | to additive | |")
    print("|---|---:|---:|---:|---:|---|")
    microseconds = {name: statistics.median(times) / tokens * 1e6 for name, times in seconds.items()}
    for name, _, formula in MECHANISMS:
        ratios = sorted(a / b for a, b in zip(seconds[name], seconds["additive"], strict=True))
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        relative = counts[name] / counts["additive"]
        cells = f"{counts[name] / tokens:,.0f} | {relative:.2f} | {microseconds[name]:.1f} | {spread} | {formula}"
        print(f"| {name} | {cells} |")


def work(overrides: list[str], source: int, target: int) -> Callable[[], Tensor]:
    """A sum over the contexts of a batch and what the mechanism adds to the loss, to be differentiated."""
    config = compose("train", ["attention/score=additive", *overrides])
    attention = build.build_attention(config.attention, query_size=STATE, value_size=STATE)
    attention.train()
    values = torch.randn(SENTENCES, source, STATE, requires_grad=True)
    queries = torch.randn(SENTENCES, target, STATE, requires_grad=True)
    mask = torch.ones(SENTENCES, source, dtype=torch.bool)

    def run() -> Tensor:
        memory = attention.remember(values, mask)
        state, total = attention.start(memory), torch.zeros(())
        for position in range(target):
            steps = torch.full((SENTENCES, 1), position)
            attended = attention(queries[:, position : position + 1], memory, steps, state)
            terms = [term.sum() for term in attended.terms.values()]  # of `hard`: all that its weights learn by
            state, total = attended.state, total + attended.context.sum() + sum(terms)
        return total

    return run


def count(run: Callable[[], Tensor]) -> float:
    """Multiplications of the forward pass."""
    with FlopCounterMode(display=False) as counter:
        run()
    return float(counter.get_total_flops()) / 2


if __name__ == "__main__":
    main()
