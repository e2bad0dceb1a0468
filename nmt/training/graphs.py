"""CUDA graphs of a training: captured once, tried once, then launched in place of all their kernels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Graphs:
    """The graphs of one training. They share their memory: only one of them runs at a time, and none keeps a result."""

    def __init__(self, on_gpu: bool, say: Callable[[str], None] = lambda _: None) -> None:
        """`say` is called with the reason if a graph is not usable; then no further one is captured."""
        self.captures, self.say = on_gpu, say
        self.count = 0
        self._pool: Any = None  # the memory of all graphs, as torch names it

    def capture(self, work: Callable[[], None], wrong: Callable[[], str | None]) -> torch.cuda.CUDAGraph | None:
        """Capture what `work` launches, and replay it once.

        Args:
            work: launches kernels; everything that it reads and writes must stay where it is.
            wrong: what the replay has computed wrongly, None if nothing.

        Returns:
            The graph; None if CUDA refused it or it is wrong, after which nobody knows what it has written.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                work()
            graph.replay()
            reason = wrong()
        except torch.OutOfMemoryError:
            reason = "the memory of the GPU is full"
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
        if reason is not None:
            self.captures = False
            self.say(f"Updates go on without further CUDA graphs: {reason}.")
            return None
        self._pool = graph.pool()
        self.count += 1
        return graph


def send(numbers: Tensor, buffer: Tensor) -> None:
    """Copy numbers of the host into a buffer of any device. The host does not wait for a GPU."""
    on_gpu = buffer.device.type == "cuda"
    buffer.copy_(numbers.pin_memory() if on_gpu else numbers, non_blocking=on_gpu)
