"""The evaluation room: scores with signatures, alignments read off the weights, pictures, the report of a split."""
