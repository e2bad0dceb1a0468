"""Run one job with a version of the program, for `versions.py`: orders and answers are lines of JSON.

This file runs as a script with the version's folders in `PYTHONPATH`, and imports only modules of this version.
"""

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Start the job that the first line names, and answer each further line."""
    from benchmarking import settings as version
    from benchmarking import work

    answers, sys.stdout = sys.stdout, sys.stderr
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    scale = version.QUICK if order["quick"] else version.MATCHED
    settings = {
        "scale": scale,
        "sizes": scale.sizes._replace(pieces=order["pieces"]),
        "place": version.Place(*order["place"]),
        "folder": Path(order["folder"]),
        "batch": order.get("batch", scale.batch),
        "wiring": order["wiring"],
        "weights": Path(order["weights"]) if "weights" in order else None,
        "search": order.get("search"),
        "shortlist": 0,
    }

    def exchange(answer: dict[str, Any]) -> dict[str, Any] | None:
        answers.write(json.dumps({name: answer[name] for name in answer if name != "lengths"}) + "\n")
        answers.flush()
        line = sys.stdin.readline()
        following: dict[str, Any] | None = json.loads(line) if line else None
        if following and "save" in following:
            following["save"] = Path(following["save"])
        return following

    work.JOBS[order["job"]](settings, exchange)


if __name__ == "__main__":
    main()
