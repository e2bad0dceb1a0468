"""The run folder: what is written where, who has made it, and reading a run back."""
