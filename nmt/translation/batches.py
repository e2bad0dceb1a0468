"""The batches of a translation: searched by the threads of one process, or shared among the processes of torchrun.

Batches are the same however many processes search them, so the translations are the same, too. The leader has the text
and gets all results; the others only search what it sends.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from nmt.search import Hypothesis
from nmt.system.processes import Processes

REPORT_SECONDS = 30  # between progress reports on lines in parts
#: From a batch of parts of sentences to the n-best list of each.
SearchBatch = Callable[[Sequence[Any]], list[list[Hypothesis]]]


def split(rows: Sequence[int], most: int, searches: int) -> list[Sequence[int]]:
    """Batches of at most `most` rows, in order; several searches get equally many batches of almost one size."""
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
    """The n-best lists of every batch, in order. With several processes, the leader calls this and the others `follow`.

    Args:
        batches: parts of sentences.
        search: of one batch; several threads may call it at once.
        processes: every process searches every `count`-th batch.
        searches: how many batches each process searches at once, in threads.
        report: called with the progress every half minute.

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
    """The n-best lists of some batches; `report_done` is called with each batch that is done.

    A thread that searches a batch alone waits for nobody. Threads that share each product wait for the slowest one
    several times in a step, and one of them does what is not a product.
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
