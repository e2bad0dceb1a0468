"""The parts of `on_gpu.py`: its measurements on a GPU, and the page of their figures."""
