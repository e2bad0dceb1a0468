"""What else the machine does meanwhile: how many processes want a core, and how many cores others take."""

import os
import time
from pathlib import Path


def load() -> float | None:
    """How many processes want a core, over the last minute, where the system tells."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


class Neighbours:
    """How many cores other processes take meanwhile: next to none on a machine that is idle otherwise."""

    def __init__(self) -> None:
        self._busy, self._began = _busy(), time.monotonic()

    def cores(self, own_seconds: float) -> float | None:
        """The mean number since it was made, `own` being this work's seconds of CPU time; None if unknown."""
        busy, seconds = _busy(), time.monotonic() - self._began
        if busy is None or self._busy is None or seconds <= 0:
            return None
        return max(0.0, round((busy - self._busy - own_seconds) / seconds, 2))


def _busy() -> float | None:
    """Seconds of CPU time of everything on the machine so far, where the system tells."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft_interrupts = (int(ticks) for ticks in line.split()[1:8])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")
