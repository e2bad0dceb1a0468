"""The parts of `attention_study.py`: its variants, its records, and the tables of its page."""
