"""How often the test of `nmt.compare` finds a difference where there is none, and where there is one.

    python scripts/simulate_tests.py [trials=1000] [sentences=100]

Draws scores of sentences for two variants with three kinds of noise: what suits a variant in a sentence whatever its
seed, what a seed changes in all sentences, and what a seed changes in one sentence. Prints a table for
docs/statistics.md: the share of trials that call the difference significant at 5 %.
"""

import sys
from pathlib import Path

import numpy as np

# As a plain script from wherever it lies: the package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from verbs import key_values, script

from nmt.compare.significance import Runs, contrast_with
from nmt.compare.variance import Statistics

#: Standard deviations of a sentence, a seed, and a seed in a sentence, beside sentences of deviation 1.
NOISES = {
    "seed in a sentence": (0.0, 0.0, 1.0),
    "sentence, seed in a sentence": (1.0, 0.0, 1.0),
    "sentence, seed": (1.0, 0.1, 0.1),
    "all three": (1.0, 0.1, 1.0),
    "all three, seeds strong": (1.0, 0.3, 1.0),
}


def mean_of(statistics: Statistics) -> Statistics:
    """A score that is the mean over sentences."""
    scores: Statistics = statistics[..., 0] / statistics[..., 1]
    return scores


def draw(
    generator: np.random.Generator, sentences: int, seeds: int, noise: tuple[float, float, float], gain: float
) -> list[Runs]:
    """The runs of two variants, of which the second gains."""
    by_sentence, by_seed, by_both = noise
    hardness = generator.normal(size=sentences)
    variants = []
    for advantage in (0.0, gain):
        scores = hardness + advantage + generator.normal(0, by_sentence, sentences)
        scores = scores + generator.normal(0, by_seed, (seeds, 1)) + generator.normal(0, by_both, (seeds, sentences))
        variants.append(Runs(np.stack([scores, np.ones_like(scores)], -1), list(range(seeds))))
    return variants


def share(trials: int, sentences: int, seeds: int, noise: tuple[float, float, float], gain: float) -> float:
    """The share of trials in which the test calls the difference significant."""
    generator = np.random.default_rng(seeds)
    calls = 0
    for _ in range(trials):
        first, second = draw(generator, sentences, seeds, noise, gain)
        (found,) = contrast_with(first, [second], mean_of)
        calls += found.significant
    return calls / trials


def main(arguments: list[str]) -> int:
    """Print the tables."""
    given = key_values(arguments)
    trials, sentences = int(given.get("trials", 1000)), int(given.get("sentences", 100))
    print("| noise | seeds | no difference | power |")
    print("|---|---:|---:|---:|")
    for name, noise in NOISES.items():
        for seeds in (3, 5, 10):
            by_sentence, by_seed, by_both = noise
            variance = 2 * (by_sentence**2 / sentences + by_seed**2 / seeds + by_both**2 / sentences / seeds)
            rates = [share(trials, sentences, seeds, noise, gain) for gain in (0.0, 3 * variance**0.5)]
            cells = " | ".join(f"{100 * rate:.1f} %" for rate in rates)
            print(f"| {name} | {seeds} | {cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(script("simulate_tests.py", main))
