"""Neural machine translation whose subject is attention: `python -m nmt.train`, translate, evaluate."""

__version__ = "0.1.0"
