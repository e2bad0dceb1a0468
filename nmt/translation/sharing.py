"""The batches of a translation: searched by one process, or shared among those of torchrun.

Batches are the same however many processes search them, so the translations are the same, too. The leader has the text
and gets all results; the others only search what it sends.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from nmt.processes import Processes
from nmt.search import Hypothesis

REPORT_SECONDS = 30  # between progress reports on lines in parts
#: From a batch of what is searched for to the n-best list of each.
SearchBatch = Callable[[Sequence[Any]], list[list[Hypothesis]]]


def search_batches(
    batches: Sequence[Sequence[Any]],
    search: SearchBatch,
    processes: Processes,
    report: Callable[[str], None] | None = None,
) -> list[list[list[Hypothesis]]]:
    """The n-best lists of every batch, in order. With several processes, the leader calls this and the others `follow`.

    Args:
        batches: what is searched for.
        search: of one batch.
        processes: every process searches every `count`-th batch.
        report: called with the progress every half minute.

    Raises:
        LostProcessError: another process has ended.
    """
    processes.share(batches)
    total, done = sum(map(len, batches)), 0
    last_report = time.monotonic()
    mine = {}
    for number in range(0, len(batches), processes.count):
        mine[number] = search(batches[number])
        done = min(total, done + processes.count * len(batches[number]))
        if report is not None and time.monotonic() > last_report + REPORT_SECONDS:
            report(f"{done:,} of {total:,} parts are translated.")
            last_report = time.monotonic()
    found = {number: nbest_lists for share in processes.gather(mine) for number, nbest_lists in share.items()}
    return [found[number] for number in range(len(batches))]


def follow(search: SearchBatch, processes: Processes) -> None:
    """Search this process's share of the leader's batches until the leader sends no more.

    Raises:
        LostProcessError: another process has ended.
    """
    while (batches := processes.share()) is not None:
        numbers = range(processes.rank, len(batches), processes.count)
        processes.gather({number: search(batches[number]) for number in numbers})
