"""The translation room: sentences in, Translations out, order kept."""
