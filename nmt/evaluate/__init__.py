"""The command that scores a run on test splits: its settings, the files of a split, the report."""
