"""Runs to align with."""

from tests.pipeline.conftest import coloured, here, seeing, text, trained, unattentive

__all__ = ["coloured", "here", "seeing", "text", "trained", "unattentive"]
