"""Link words of sentences and their translations, and score links: `python -m nmt.align`."""

import functools
import sys
from typing import Any

from nmt.config.program import main


def _work(config: Any, overrides: list[str]) -> int:
    from nmt.align.request import Aligning
    from nmt.align.work import align
    from nmt.build.link_scores import Linking, score_links
    from nmt.build.requests import read

    if config.links is not None:
        return score_links(read(Linking, config), overrides)
    return align(read(Aligning, config))


#: Runs the command for a command line, by default this process's, and returns the exit status.
run = functools.partial(main, "align", _work)

if __name__ == "__main__":
    sys.exit(run())
