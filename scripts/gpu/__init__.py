"""The parts of `on_gpu.py`: what it measures on a GPU, and the page of it."""
