"""The evaluation room: scores with signatures, BLEU by length, forced references, the report of a split."""
