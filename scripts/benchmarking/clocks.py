"""Batches with a clock: the time of a training loop is measured from its requests for batches."""

import time
from collections.abc import Iterator

import torch

from benchmarking.settings import Exchange, Json, Place
from nmt.data.batch import Batch
from nmt.data.pairs import EncodedPairs
from nmt.data.token_batches import TokenBatches


class Enough(Exception):  # noqa: N818  a way out of the training loop, not an error
    """Raised inside the training loop to end it."""


class Feed(TokenBatches):
    """Gives batches to a training loop and measures its time.

    The clock runs from the request for the first batch of an order to the request for the batch after its last. This
    includes making and moving batches, and complete updates. Between two orders the loop waits here.
    """

    def __init__(self, pairs: EncodedPairs, exchange: Exchange, place: Place, *, tokens: int, sentences: int) -> None:
        super().__init__(pairs, tokens_per_batch=tokens, sentences_per_batch=sentences, seed=1)
        self._exchange, self._gpu = exchange, place.device.startswith("cuda")
        self._left, self._began = 0, 0.0
        self._fed: list[Batch] = []
        self.updates = 0

    def epoch(self, epoch: int, start: int = 0, stride: int = 1) -> Iterator[Batch]:
        """Yield the batches of an epoch while updates are ordered (`Enough` after the last order)."""
        batches = super().epoch(epoch, start, stride)
        while True:
            if self._left == 0:
                self._next_order()
            batch = next(batches, None)
            if batch is None:
                return
            self._left -= 1
            self.updates += 1
            self._fed.append(batch)
            yield batch

    def _next_order(self) -> None:
        order = self._exchange(self._measured())
        if order is None:
            raise Enough
        self._left, self._fed = int(order["updates"]), []
        if self._gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        self._began = time.perf_counter()

    def _measured(self) -> Json:
        if self._gpu and self._fed:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - self._began
        lengths = [
            pair
            for batch in self._fed
            for pair in zip(batch.source_lengths.tolist(), batch.target_mask.sum(1).tolist(), strict=True)
        ]
        places = [sum(batch.source.numel() for batch in self._fed), sum(b.target_in.numel() for b in self._fed)]
        tokens = [sum(pair[side] for pair in lengths) for side in (0, 1)]
        return {
            "seconds": seconds,
            "updates": self.updates,
            "batches": len(self._fed),
            "sentences": len(lengths),
            "tokens": tokens[1],
            "lengths": lengths,
            "padding": [1 - real / all_ if all_ else 0.0 for real, all_ in zip(tokens, places, strict=True)],
            "gpu_memory": torch.cuda.max_memory_allocated() if self._gpu else 0,
        }
