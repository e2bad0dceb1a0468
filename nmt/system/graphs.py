"""CUDA graphs: captured once, tried once, then launched in place of all their kernels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Graphs:
    """The graphs of a training or of searches. They share their memory: one runs at a time, and none keeps a result."""

    def __init__(self, on_gpu: bool, say: Callable[[str], None] = lambda _: None, what: str = "Updates") -> None:
        """`say` is called with the reason if a graph of `what` is not usable; then no further one is captured."""
        self.captures, self.say, self.what = on_gpu, say, what
        self.count = 0
        self._pool: Any = None  # the memory of all graphs, as torch names it
        self._stream: torch.cuda.Stream | None = None

    def warmed(self, work: Callable[[], None]) -> None:
        """Do `work` where the next graph is captured: libraries prepare themselves for a stream at its first call."""
        if not self.captures:
            work()
            return
        stream = self._capturing_stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)

    def capture(
        self, work: Callable[[], None], wrong: Callable[[], str | None] = lambda: None
    ) -> torch.cuda.CUDAGraph | None:
        """Capture what `work` launches, and replay it once. The host does not wait for the device.

        Args:
            work: launches kernels; everything that it reads and writes must stay where it is.
            wrong: what the replay has computed wrongly, None if nothing. One check is enough for graphs of a kind.

        Returns:
            The graph; None if CUDA refused it or it is wrong, after which nobody knows what it has written.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            # Not by torch.cuda.graph, which waits for the device and returns its free memory, for every graph.
            with torch.cuda.stream(self._capturing_stream()):
                # Other threads may make batches or translate with another model meanwhile.
                graph.capture_begin(self._pool, capture_error_mode="thread_local")
                try:
                    work()
                finally:
                    graph.capture_end()
            graph.replay()
            reason = wrong()
        except torch.OutOfMemoryError:
            reason = "the memory of the GPU is full"
        except RuntimeError as error:
            reason = str(error.__context__ or error).partition("\n")[0]
        if reason is not None:
            self.captures = False
            self.say(f"{self.what} go on without further CUDA graphs: {reason}.")
            return None
        self._pool = graph.pool()
        self.count += 1
        return graph

    def _capturing_stream(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream()
        return self._stream


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device. From the CPU to a GPU, the host does not wait."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def send(numbers: Tensor, buffer: Tensor) -> None:
    """Copy numbers of the host into a buffer of any device. The host does not wait for a GPU."""
    on_gpu = buffer.device.type == "cuda"
    buffer.copy_(numbers.pin_memory() if on_gpu else numbers, non_blocking=on_gpu)
