"""Score a run and draw its attention: `python -m nmt.evaluate`."""

import sys
from typing import Any

from nmt.config.program import command


def _without_run(overrides: list[str]) -> list[str]:
    """The override run=null if the command line gives another program's translations, which need no run."""
    return ["run=null"] if any(word.startswith("hypotheses=") for word in overrides) else []


@command("evaluate", first=_without_run)
def run(config: Any, overrides: list[str]) -> int:
    from nmt.build.requests import read

    if config.hypotheses is not None:
        from nmt.evaluate.hypotheses import Hypotheses, score_hypotheses

        return score_hypotheses(read(Hypotheses, config), overrides)
    from nmt.evaluate.request import Evaluating
    from nmt.evaluate.work import evaluate

    return evaluate(read(Evaluating, config, overrides))


if __name__ == "__main__":
    sys.exit(run())
