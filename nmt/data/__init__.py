"""Data room: sources of sentence pairs, their tokenisation, and batches."""
