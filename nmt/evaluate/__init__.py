"""The command that scores a run on test splits: its request, the files of a split, the report."""
