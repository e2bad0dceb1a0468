"""A command in several processes of torchrun: the leader does it, the others search a share of its batches."""

import contextlib
import io
from collections.abc import Callable

from nmt.pipeline.opening import TranslatorRequest
from nmt.processes import Processes, joined
from nmt.signals import handling, stop_signals
from nmt.translation.sharing import follow
from nmt.translation.stepping import evaluating
from nmt.translation.translator import Translator


def shared(request: TranslatorRequest, keep_weights: bool, lead: Callable[[Processes], int]) -> int:
    """Run `lead` in the leader, which passes its translator to `share`; return the exit status.

    The other processes open the same translator and follow. However the leader ends, they end, too. Signals, which
    reach them as well, are left to the leader.

    Raises:
        LostProcessError: another process has ended.
    """
    with joined() as processes:
        if processes.leads:
            with processes.leading():
                return lead(processes)
        with handling(stop_signals(), lambda *_: None):
            if processes.share() is not None:
                with contextlib.redirect_stderr(io.StringIO()):  # the leader has said the same
                    translator = request.open(keep_weights)
                with evaluating(translator.stepper.models):
                    follow(translator.search_batch, processes, translator.compute.parallel_searches)
        return 0


def share(translator: Translator, processes: Processes) -> None:
    """Let all processes search for the leader's translator from now on."""
    processes.share("open")
    translator.processes = processes
