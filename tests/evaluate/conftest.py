"""Runs to score."""

from tests.pipeline.conftest import here, text, trained, unattentive

__all__ = ["here", "text", "trained", "unattentive"]
