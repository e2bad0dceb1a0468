"""The translation room: sentences in, Translations out, order kept."""

from nmt.translation.types import Translation

__all__ = ["Translation"]
