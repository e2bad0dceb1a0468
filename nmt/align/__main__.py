"""Link words of sentences and their translations, and score links: `python -m nmt.align`."""

import sys
from typing import Any

from nmt.config.program import command


@command("align")
def run(config: Any, overrides: list[str]) -> int:
    from nmt.align.request import Aligning
    from nmt.align.work import align
    from nmt.build.link_scores import Linking, score_links
    from nmt.build.requests import read

    if config.links is not None:
        return score_links(read(Linking, config), overrides)
    return align(read(Aligning, config))


if __name__ == "__main__":
    sys.exit(run())
