"""Models with drawn weights to export, and how exported programs are run."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from nmt.build.parts import build_model
from nmt.config.composition import compose
from nmt.export.conversion import FORMATS
from nmt.model import Seq2Seq
from nmt.text.tokenizer import Tokenizer
from nmt.text.tokenizer_trainer import TokenizerTrainer
from tests.small import BOTH, pairs

#: Skips a test of a format without its packages.
NEEDS = {
    name: pytest.mark.skipif(
        any(find_spec(package) is None for package in format_.packages),
        reason=f"needs {' and '.join(format_.packages)}",
    )
    for name, format_ in FORMATS.items()
}
WITH_PACKAGES = [pytest.param(name, marks=needs) for name, needs in NEEDS.items()]

#: What makes the models small, by format.
SMALL = {
    "ctranslate2": (*BOTH, "model.embedding_size=12", "encoder.layers=2", "decoder.layers=1"),
    "onnx": (
        *("model.embedding_size=12", "model.tie_embeddings=none"),
        *("encoder.size=8", "decoder.size=16", "attention.size=10"),
    ),
}


def joint_tokenizer() -> Tokenizer:
    """A tokenizer with one vocabulary for both languages."""
    source, target = zip(*pairs(100), strict=True)
    return TokenizerTrainer(vocabulary_size=320).train(source, target)[0]


def drawn(tokenizer: Tokenizer, name: str, *words: str) -> tuple[Seq2Seq, dict[str, str]]:
    """A small model for a format, none of its weights where training starts, and its choices.

    `words` are its overrides; without those of `SMALL` that they replace.
    """
    keys = {word.split("=")[0] for word in words}
    config = compose("train", [*(word for word in SMALL[name] if word.split("=")[0] not in keys), *words])
    model = build_model(config, tokenizer).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0, 0.2, generator=generator))
    return model, dict(config.choices)


def translated(program: Path, source: Path) -> list[str]:
    """What an exported program makes of a file, from another folder and without nmt."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with source.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-P", program], stdin=stream, capture_output=True, env=environment, cwd="/"
        )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode("utf-8").split("\n")
