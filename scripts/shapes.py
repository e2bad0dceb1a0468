"""How many shapes batches have, and how much of them is padding: without and with the few shapes of a GPU.

    python scripts/shapes.py [epochs=20] [OVERRIDE ...] [-- OVERRIDE ...]

Each group of words, separated by --, is a training as `python -m nmt.train` takes it, such as `experiment=multi30k
data.root=DIR`; none is that of the built-in corpus. Nothing is trained. Writes a table of Markdown: of the batches of
all epochs the number in an epoch, the shapes (before: lengths rounded up to multiples of 4, pairs to multiples of 8),
the share of padding in source and target tokens with these shapes, and the CUDA graphs of gradients that a GPU captures
(before, at most 128 of them: a graph for each shape that occurs twice).
"""

import sys
from collections import Counter
from pathlib import Path

# As a plain script: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from verbs import script

from nmt.build.parts import build_source, build_tokenizer_trainer, build_trainer
from nmt.config.composition import compose
from nmt.data.cache import prepare
from nmt.data.pairs import EncodedPairs
from nmt.data.shapes import Shape
from nmt.data.token_batches import TokenBatches
from nmt.data.tokenizer_cache import trained
from nmt.kernels.sizes import ceiling
from nmt.training.captured import PIECES

HEADER = """\
| training | | batches an epoch | shapes | padding, source | target | captures |
|---|---|---:|---:|---:|---:|---:|"""


def main(words: list[str]) -> int:
    """Print the table and return the exit status."""
    if "--help" in words or "-h" in words:
        print(__doc__)
        return 0
    epochs = next((int(word.partition("=")[2]) for word in words if word.startswith("epochs=")), 20)
    groups: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            groups.append([])
        elif not word.startswith("epochs="):
            groups[-1].append(word)
    print(HEADER)
    for group in groups:
        name = next((word.partition("=")[2] for word in group if word.startswith(("experiment=", "data="))), "built-in")
        for when, row in zip(("before", "after"), measured(group, epochs), strict=True):
            print(f"| {name} | {when} | {row} |", flush=True)
    return 0


def measured(words: list[str], epochs: int) -> list[str]:
    """The cells of a training without chosen shapes and with them."""
    config = compose("train", words)
    settings, cache = build_trainer(config), Path(config.cache)
    split = build_source(config).read("train")
    tokenizer, _ = trained(build_tokenizer_trainer(config), split, cache)
    limits = {"max_source_length": settings.max_source_length, "max_target_length": settings.max_target_length}
    pairs = prepare(split, tokenizer, **limits, cache=cache, workers=settings.workers)
    rows = []
    for chosen in (False, True):
        batches = TokenBatches(
            pairs,
            tokens_per_batch=settings.tokens_per_batch,
            sentences_per_batch=settings.sentences_per_batch,
            seed=config.seed,
        )
        if chosen:
            batches.fix_shapes()
        rows.append(_cells(batches, pairs, epochs))
    return rows


def _cells(batches: TokenBatches, pairs: EncodedPairs, epochs: int) -> str:
    seen: Counter[Shape] = Counter()
    for epoch in range(epochs):
        for indices in batches.plan(epoch):
            lengths = [int(side[indices].max()) + 1 for side in (pairs.source_lengths, pairs.target_lengths)]
            needed = Shape(len(indices), *lengths)
            known = (shape for shape in batches.shapes(epoch) if shape.holds(needed))
            rounded = Shape(ceiling(len(indices), 8), *(ceiling(length, PIECES) for length in lengths))
            seen[next(known, rounded)] += 1
    count = seen.total()
    padding = []
    for side, of_pairs in ((1, pairs.source_lengths), (2, pairs.target_lengths)):
        places = sum(shape.rows * shape[side] * times for shape, times in seen.items())
        padding.append(1 - epochs * (int(of_pairs.sum()) + len(of_pairs)) / places)
    captures = sum(times > 1 for times in seen.values())
    return f"{count / epochs:.0f} | {len(seen)} | {padding[0]:.1%} | {padding[1]:.1%} | {captures}"


if __name__ == "__main__":
    sys.exit(script("shapes.py", main))
