"""A language of documents: the colour of the second sentence stands in the first one only."""

import random
from pathlib import Path

from tests.small import SMALL, write_lines

COLOURS = {"rot": "red", "blau": "blue", "grün": "green", "gelb": "yellow"}


def documents(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Documents of two sentences: the second says "es", which is the colour of the first."""
    generator = random.Random(seed)
    source, target = list[str](), list[str]()
    for _ in range(count):
        german, english = generator.choice(list(COLOURS.items()))
        number = generator.choice(["eins", "zwei", "drei"])
        source += [f"{german} {number}", f"es {number}", ""]
        target += [f"{english} {number}", f"{english} again {number}", ""]
    return source, target


def write_documents(folder: Path) -> Path:
    """150 documents of training, 20 of validation and 20 of test text: train.de, train.en and so on."""
    for split, count, seed in (("train", 150, 1), ("valid", 20, 2), ("test", 20, 3)):
        for language, lines in zip(("de", "en"), documents(count, seed), strict=True):
            write_lines(folder / f"{split}.{language}", lines)
    return folder


def words(corpus: Path, runs: Path, *more: str) -> list[str]:
    """The command line that trains a small model on the documents of a folder."""
    splits = [f"data.{split}={corpus / split}" for split in ("train", "valid", "test")]
    line = ["data=text", "data.source=de", "data.target=en", *splits, f"checkpoints={runs}", f"cache={runs / 'cache'}"]
    given = {word.partition("=")[0] for word in more}
    return [*(word for word in [*line, *SMALL] if word.partition("=")[0] not in given), *more]


#: What a model needs to learn the language.
LEARNING = (
    "data.documents=blank",
    "context.sentences=1",
    "trainer.steps=400",
    "trainer.validate_every=100",
    "tokenizer=word",
    "tokenizer.vocabulary_size=60",
    "optimizer.lr=0.01",
)
