"""Progress of a long command: a bar on a terminal, otherwise a line at intervals."""

import sys
import time
from collections.abc import Callable

from tqdm import tqdm

from nmt.system.terminal import print_message, printable


def clock(seconds: float) -> str:
    """A duration as hours, minutes and seconds: 1:02:03 or 2:03."""
    whole = round(max(seconds, 0.0))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class Progress:
    """A progress bar from 0 to 100 % with a text; `say` prints a line above the bar."""

    def __init__(self, log: Callable[[str], None], every_seconds: float = 30.0) -> None:
        """`log` also gets the lines of `say`. Without a terminal, progress is a line every `every_seconds` seconds."""
        self._log, self._every = log, every_seconds
        self._last_line = time.monotonic()
        self._bar = (
            tqdm(total=1000, bar_format="{percentage:3.0f}% {bar} {desc}", leave=False, dynamic_ncols=True)
            if sys.stderr.isatty()
            else None
        )

    def update(self, share: float | None, text: str) -> None:
        """Show the finished `share` of the work, 0 to 1 or None if unknown, with a text."""
        if self._bar is not None:
            if share is None:
                self._bar.bar_format = "{desc}"
            else:
                self._bar.n = min(1000, int(share * 1000))
            self._bar.set_description_str(text, refresh=False)
            self._bar.refresh()
        elif time.monotonic() - self._last_line >= self._every:
            self._last_line = time.monotonic()
            print_message(text if share is None else f"{share:4.0%} {text}")

    def say(self, line: str) -> None:
        """Print a line on standard error and write it to the log."""
        if self._bar is not None:
            self._bar.clear()
        print_message(line)
        self._log(printable(line))
        self._last_line = time.monotonic()

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
