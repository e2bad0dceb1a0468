"""Runs to score."""

from tests.pipeline.conftest import here, text, trained, transformer, unattentive

__all__ = ["here", "text", "trained", "transformer", "unattentive"]
