"""Runs to translate with."""

from tests.pipeline.conftest import coloured, here, second, seeing, text, trained, transformer, unattentive

__all__ = ["coloured", "here", "second", "seeing", "text", "trained", "transformer", "unattentive"]
