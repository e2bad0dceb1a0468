"""What a person sees while training runs: a bar on a terminal, one line at intervals in a log file."""

import sys
import time
from collections.abc import Callable

from tqdm import tqdm


def clock(seconds: float) -> str:
    """1:02:03 or 2:03."""
    whole = round(max(seconds, 0.0))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class Progress:
    """A bar from 0 to 100 % of the budget with the rate and the time left; `say` prints a line without tearing it."""

    def __init__(self, log: Callable[[str], None], every_seconds: float = 30.0) -> None:
        """`log` keeps lines in the run's log. Off a terminal the bar becomes a line every `every_seconds`."""
        self._log, self._every = log, every_seconds
        self._said = time.monotonic()
        self._bar = (
            tqdm(total=1000, bar_format="{percentage:3.0f}% {bar} {desc}", leave=False, dynamic_ncols=True)
            if sys.stderr.isatty()
            else None
        )

    def update(self, share: float, text: str) -> None:
        """Show that `share` (0 to 1) of the budget is used."""
        if self._bar is not None:
            self._bar.n = min(1000, int(share * 1000))
            self._bar.set_description_str(text, refresh=False)
            self._bar.refresh()
        elif time.monotonic() - self._said >= self._every:
            self._said = time.monotonic()
            print(f"{share:4.0%} {text}", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Print a line on standard error and keep it in the log."""
        if self._bar is not None:
            self._bar.clear()
        print(line, file=sys.stderr, flush=True)
        self._log(line)
        self._said = time.monotonic()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
