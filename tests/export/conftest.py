"""Runs to export: those of the tests of commands."""

from tests.pipeline.conftest import here, text, trained, transformer, unattentive

__all__ = ["here", "text", "trained", "transformer", "unattentive"]
