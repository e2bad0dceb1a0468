"""Convert a run for other programs: `python -m nmt.export`. Nothing else in nmt imports this package."""
