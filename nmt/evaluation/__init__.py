"""Evaluation: scores with signatures, BLEU by length, forced decoding of references, results of a split."""
