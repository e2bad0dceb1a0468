"""The run folder: its files, who made it, and how a run is read."""
