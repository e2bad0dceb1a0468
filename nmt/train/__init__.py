"""The command that trains a translator or a sweep of them: `python -m nmt.train`."""
