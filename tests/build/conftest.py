"""A run to open."""

from tests.pipeline.conftest import here, text, trained

__all__ = ["here", "text", "trained"]
