"""The command that checks whether the files of a run are intact."""
