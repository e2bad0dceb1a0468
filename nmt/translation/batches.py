"""The batches of a translation, distributed over the threads of a process and over the processes of torchrun.

The batches, and so the translations, do not depend on the number of processes. The leader has the text and gets all
results; the other processes only search the batches that it sends.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from nmt.search import Hypothesis
from nmt.system.processes import Processes

REPORT_SECONDS = 30  # between progress reports on lines in parts
#: Searches a batch of parts of sentences; returns the n-best list of each part.
SearchBatch = Callable[[Sequence[Any]], list[list[Hypothesis]]]


def split(rows: Sequence[int], most: int, searches: int) -> list[Sequence[int]]:
    """Split rows into batches of at most `most`, in order; several searches get equally many batches each."""
    count = -(-len(rows) // most)
    if count > 1 and searches > 1:
        count = -(-count // searches) * searches
        most = -(-len(rows) // count)
    return [rows[start : start + most] for start in range(0, len(rows), most)]


def search_batches(
    batches: Sequence[Sequence[Any]],
    search: SearchBatch,
    processes: Processes,
    searches: int = 1,
    report: Callable[[str], None] | None = None,
) -> list[list[list[Hypothesis]]]:
    """Search all batches; return the n-best lists of each. The leader calls this, other processes call `follow`.

    Args:
        batches: batches of parts of sentences.
        search: searches one batch; several threads may call it at once.
        processes: the processes that share the batches; each searches every `count`-th batch.
        searches: number of threads per process, each of which searches one batch at a time.
        report: called with the progress every 30 seconds.

    Raises:
        LostProcessError: another process has ended.
    """
    processes.share(batches)
    total, done = sum(map(len, batches)), 0
    last_report = time.monotonic()

    def report_done(batch: Sequence[Any]) -> None:
        nonlocal done, last_report
        done = min(total, done + processes.count * len(batch))
        if report is not None and time.monotonic() > last_report + REPORT_SECONDS:
            report(f"{done:,} of {total:,} parts are translated.")
            last_report = time.monotonic()

    mine = _searched(batches, range(0, len(batches), processes.count), search, searches, report_done)
    lists_by_batch = {number: nbest_lists for share in processes.gather(mine) for number, nbest_lists in share.items()}
    return [lists_by_batch[number] for number in range(len(batches))]


def follow(search: SearchBatch, processes: Processes, searches: int = 1) -> None:
    """Search this process's share of the leader's batches until the leader sends no more.

    Raises:
        LostProcessError: another process has ended.
    """
    while (batches := processes.share()) is not None:
        numbers = range(processes.rank, len(batches), processes.count)
        processes.gather(_searched(batches, numbers, search, searches))


def _searched(
    batches: Sequence[Sequence[Any]],
    numbers: Sequence[int],
    search: SearchBatch,
    searches: int,
    report_done: Callable[[Sequence[Any]], None] = lambda _: None,
) -> dict[int, list[list[Hypothesis]]]:
    """Search the batches `numbers`; return their n-best lists by number. Call `report_done` with each finished batch.

    One thread per batch is faster than several threads per matrix product: these wait for each other several times per
    step, and all operations that are not products run on one thread.
    """
    results = {}
    searches = min(searches, len(numbers))
    if searches < 2:
        for number in numbers:
            results[number] = search(batches[number])
            report_done(batches[number])
        return results
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(searches, initializer=torch.set_num_threads, initargs=(max(1, threads // searches),))
    try:
        for number, nbest_lists in zip(numbers, pool.map(search, [batches[number] for number in numbers]), strict=True):
            results[number] = nbest_lists
            report_done(batches[number])
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # MKL has one number for all threads of the process
    return results
