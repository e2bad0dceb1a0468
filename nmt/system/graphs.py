"""CUDA graphs: captured and checked once, then launched instead of their kernels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Graphs:
    """The graphs of a training or of searches. They share memory, so one runs at a time, and results are not kept."""

    def __init__(self, on_gpu: bool, say: Callable[[str], None] = lambda _: None, what: str = "Updates") -> None:
        """If a graph is not usable, `say` is called with a message about `what`, and no further graph is captured."""
        self.captures, self.say, self.what = on_gpu, say, what
        self.count = 0
        self._pool: Any = None  # torch's handle for the shared memory of all graphs
        self._stream: torch.cuda.Stream | None = None

    def warmed(self, work: Callable[[], None]) -> None:
        """Call `work` on the capturing stream as a warm-up: libraries initialise a stream at their first call."""
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
        """Capture the kernels that `work` launches, and replay them once. The host does not wait for the device.

        Args:
            work: launches kernels; all tensors that it reads and writes must keep their addresses.
            wrong: checks the replay; returns an error, or None if the results are right. Check one graph of each kind.

        Returns:
            The graph; None if CUDA rejected the graph or its results are wrong. Tensors are then undefined.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            # Without torch.cuda.graph, which waits for the device and frees its cached memory for every graph.
            with torch.cuda.stream(self._capturing_stream()):
                # Thread-local, since other threads may use the device meanwhile.
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
    """The tensor on a device. The host does not wait for a copy from the CPU to a GPU."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def send(numbers: Tensor, buffer: Tensor) -> None:
    """Copy numbers from the host into a buffer on any device. The host does not wait for a GPU."""
    on_gpu = buffer.device.type == "cuda"
    buffer.copy_(numbers.pin_memory() if on_gpu else numbers, non_blocking=on_gpu)
