"""Runs to go on from."""

from tests.pipeline.conftest import here, text, trained

__all__ = ["here", "text", "trained"]
