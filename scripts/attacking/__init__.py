"""The attacks of `attack.py`."""
