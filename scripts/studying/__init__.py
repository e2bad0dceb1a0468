"""The parts of `attention_study.py`: its variants, their training and scoring, and the page."""
