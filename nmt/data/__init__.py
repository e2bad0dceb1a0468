"""Data room: where sentence pairs come from, how they are tokenised once, and how they become batches."""
