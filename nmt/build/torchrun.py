"""A command in several processes of torchrun: the leader runs it; the other processes search a share of its batches."""

import contextlib
import dataclasses
import io
from collections.abc import Callable

from nmt.build.open import TranslatorRequest
from nmt.system.processes import joined
from nmt.system.signals import handling, stop_signals
from nmt.translation.batches import follow
from nmt.translation.stepper import evaluating
from nmt.translation.translator import Translator


def shared(request: TranslatorRequest, keep_weights: bool, lead: Callable[[Callable[[], Translator]], int]) -> int:
    """Run `lead` in the leader, and return the exit status.

    `lead` is called with a function that opens the translator, whose batches all processes search. The other processes
    open the same translator and follow the leader. They end with the leader, for whatever reason it ends, and ignore
    signals, which the leader handles.

    Raises:
        LostProcessError: another process has ended.
    """
    with joined() as processes:
        if processes.leads:

            def opened() -> Translator:
                translator = request.open(keep_weights)
                processes.share("open")
                return dataclasses.replace(translator, processes=processes)

            with processes.leading():
                return lead(opened)
        with handling(stop_signals(), lambda *_: None):
            if processes.share() is not None:
                with contextlib.redirect_stderr(io.StringIO()):  # the leader has printed the same messages
                    translator = request.open(keep_weights)
                with evaluating(translator.cast_models):
                    follow(translator.search_batch, processes, translator.compute.parallel_searches)
        return 0
