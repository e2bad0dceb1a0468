"""Time the plain and the fast implementation of six computations in turn.

    python scripts/primitives.py [--rounds N] [--threads N]

Prints a Markdown table: milliseconds of the plain and of the fast implementation, medians over the rounds, and their
ratio. Sizes are those of a training step of `scripts/benchmark.py`: 80 sentences of 15 and 16 pieces.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from nmt.kernels.cross_entropy import smoothed_cross_entropy
from nmt.kernels.dropout import Dropout
from nmt.kernels.gru import fast_layers
from nmt.kernels.r_drop import r_drop_loss
from nmt.memory import keep_memory

SENTENCES, SLOTS, STEPS, EMBEDDING, STATE, ATTENTION, PIECES = 80, 15, 16, 256, 512, 512, 8000
REPEATS = 20
Work = Callable[[], object]


def pairs() -> dict[str, tuple[Work, Work]]:
    """The plain and the fast implementation of each computation, by its row in the table."""
    shares, weights = torch.randn(SENTENCES, SLOTS, 3 * STATE), torch.randn(SENTENCES, 3 * STATE)
    inner = torch.randn(SENTENCES, SLOTS, ATTENTION)
    embedded = torch.randn(SENTENCES, STEPS, EMBEDDING)
    rnn = nn.GRU(EMBEDDING, STATE // 2, batch_first=True, bidirectional=True)
    lengths, mask = torch.full((SENTENCES,), STEPS), torch.ones(SENTENCES, STEPS, dtype=torch.bool)
    plain, fast = nn.Dropout(0.3), Dropout(0.3)

    def packed() -> Tensor:
        outputs: Tensor = rnn(pack_padded_sequence(embedded, lengths, batch_first=True))[0].data
        return outputs

    logits = torch.randn(SENTENCES * STEPS, PIECES, requires_grad=True)
    targets = torch.randint(PIECES, (SENTENCES * STEPS,))

    def once(fast: bool) -> Work:
        return lambda: torch.autograd.grad(smoothed_cross_entropy(logits, targets, 0.1, fast)[0], logits)

    def twice(fast: bool) -> Work:
        return lambda: torch.autograd.grad(r_drop_loss(logits, targets, 0.1, 5, fast)[0], logits)

    return {
        "tanh of [80, 15, 512], by the sigmoid": (lambda: torch.tanh(inner), lambda: torch.sigmoid(inner)),
        "[80, 15, 1536] times [80, 1536], the row first": (
            lambda: torch.bmm(shares, weights.unsqueeze(2)),
            lambda: torch.bmm(weights.unsqueeze(1), shares.transpose(1, 2)),
        ),
        "dropout of [80, 16, 256], 16 bits a number": (lambda: plain(embedded), lambda: fast(embedded)),
        "bidirectional GRU of 256 over 16 steps, with backward": (
            lambda: packed().sum().backward(),
            lambda: fast_layers(rnn, embedded, mask=mask)[0].sum().backward(),
        ),
        "cross-entropy of [1280, 8000], with backward": (once(fast=False), once(fast=True)),
        "R-Drop of two times [640, 8000], with backward": (twice(fast=False), twice(fast=True)),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_memory()  # as in training
    works = pairs()
    seconds: dict[tuple[str, int], list[float]] = {(name, way): [] for name in works for way in (0, 1)}
    for turn in range(options.rounds + 1):
        for name, ways in works.items():
            for way, run in enumerate(ways):
                before = time.perf_counter()
                for _ in range(REPEATS):
                    run()
                if turn:  # the first one warms up
                    seconds[name, way].append((time.perf_counter() - before) / REPEATS)
    print("| work | plain, ms | fast, ms | plain / fast |\n|---|---:|---:|---:|")
    for name in works:
        plain, fast = (statistics.median(seconds[name, way]) * 1e3 for way in (0, 1))
        ratios = [first / second for first, second in zip(seconds[name, 0], seconds[name, 1], strict=True)]
        print(f"| {name} | {plain:.2f} | {fast:.2f} | {plain / fast:.1f} ({min(ratios):.1f} to {max(ratios):.1f}) |")


if __name__ == "__main__":
    main()
