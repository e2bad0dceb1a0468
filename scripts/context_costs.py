"""What previous sentences cost a target token, beside the same model without context: training and search, in turn.

    python scripts/context_costs.py [--rounds N] [--threads N] [--sentences 0,1,2,4] [--pieces S]

Prints a Markdown table for the models of `context_study.py`, with untrained weights. Source, target and each previous
sentence have S pieces. Training is forward, loss and backward of a batch, without the optimizer. Search is the encoder
and S steps of greedy search. A ratio is to the same model without a context mechanism, round by round: the median, and
the lowest and the highest. `context.sentences=0` is measured as a model of its own: its ratio shows that context which
is off costs nothing, and how exact the others are. Run it on an idle machine.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
from context_study import MODELS
from torch import Tensor, nn

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq
from nmt.text.tokenizer import EOS

SENTENCES, PIECES = 64, 400
Work = Callable[[], None]


def assembled(words: Sequence[str], sentences: int) -> Seq2Seq:
    """The model of the study with so many previous sentences, untrained."""
    torch.manual_seed(1)
    config = compose("train", ["data=documents", *words, f"context.sentences={sentences}"])
    return build.assemble(config, PIECES, PIECES, joint=True)


def works(words: Sequence[str], sentences: int, pieces: int, rows: int = SENTENCES) -> dict[str, Work]:
    """A training step and a greedy search, each for a batch of `rows` sentences of so many pieces."""
    model = assembled(words, sentences)
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Tensor:
        return torch.randint(EOS + 1, PIECES, shape, generator=generator)

    source, target = drawn(rows, pieces), drawn(rows, pieces)
    mask, lengths = torch.ones_like(source, dtype=torch.bool), torch.full((rows,), pieces)
    context = context_tensor(drawn(rows, sentences, pieces - 1).tolist()) if sentences else None

    def train() -> None:
        model.train()
        model.zero_grad()
        decoded = model(source, mask, lengths, target, weights=False, context=context)
        nn.functional.cross_entropy(model.target_logits(decoded, mask), target.flatten()).backward()

    def search() -> None:
        model.eval()
        with torch.inference_mode():
            memory, state = model.encode(source, mask, lengths, context, searching=True)
            tokens = target[:, 0]
            for _ in range(pieces):
                stepped = model.step(tokens, state, memory, weights=False)
                tokens, state = stepped.log_probs.argmax(-1), stepped.state

    return {"training": train, "search": search}


def measured(of_models: Sequence[dict[str, Work]], rounds: int) -> list[dict[str, list[float]]]:
    """Seconds of each work in each round; all models in turn, after a round that warms up."""
    seconds: list[dict[str, list[float]]] = [{name: [] for name in works} for works in of_models]
    for turn in range(rounds + 1):
        for works_of_model, times in zip(of_models, seconds, strict=True):
            for name, work in works_of_model.items():
                before = time.perf_counter()
                work()
                if turn:
                    times[name].append(time.perf_counter() - before)
    return seconds


def table(name: str, counts: Sequence[int], seconds: Sequence[dict[str, list[float]]], tokens: int) -> str:
    """The rows of one model, whose first measurements are those without a mechanism."""
    lines, base = "", seconds[0]
    for label, times in zip(["none", *map(str, counts)], seconds, strict=True):
        cells = [name, label]
        for work, own in times.items():
            ratios = sorted(one / other for one, other in zip(own, base[work], strict=True))
            cells.append(f"{statistics.median(own) / tokens * 1e6:.1f}")
            cells.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
        lines += f"| {' | '.join(cells)} |\n"
    return lines


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print the table, model by model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sentences", default="0,1,2,4", help="previous sentences, with commas between")
    parser.add_argument("--pieces", type=int, default=15, help="of each sentence")
    options = parser.parse_args(words)
    counts = options.sentences.split(",")
    if not all(count.isdecimal() for count in counts) or min(options.rounds, options.threads, options.pieces - 1) < 1:
        parser.error("--sentences wants whole numbers with commas between, --rounds and --threads at least 1, "
                     "--pieces at least 2.")  # fmt: skip
    torch.set_num_threads(options.threads)
    print(
        f"{SENTENCES} sentences of {options.pieces} pieces, {options.threads} threads, float32, torch "
        f"{torch.__version__}, {options.rounds} rounds in turn\n\n"
        "| model | context | training, µs a token | to none | search, µs a token | to none |\n"
        "|---|---|---:|---:|---:|---:|"
    )
    for name, overrides in MODELS.items():
        plain = [word for word in overrides if not word.startswith("context")]
        models = [works(plain, 0, options.pieces)]
        models += [works(overrides, int(count), options.pieces) for count in counts]
        seconds = measured(models, options.rounds)
        print(table(name, [int(count) for count in counts], seconds, SENTENCES * options.pieces), end="", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
