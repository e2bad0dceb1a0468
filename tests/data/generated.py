"""Generated text in other languages than those of the built-in corpus."""

import functools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import cldr_text
from cldr.documents import Line


@functools.cache
def generated(
    kind: str, source: str = "en", target: str = "eu", seed: int = 1, train: int = 1, valid: int = 1, test: int = 1
) -> dict[str, list[Line]]:
    """The lines of each split of "phrases" or "documents"."""
    numbers = {"seed": seed, "train": train, "valid": valid, "test": test}
    return cldr_text.corpus(kind, {"source": source, "target": target} | {key: f"{n}" for key, n in numbers.items()})
