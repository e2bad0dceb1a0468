"""`nmt.compare`: variants, significance tests, analyses of words and sentences, the report. Nothing else needs it."""
