"""Train one run or a sweep of runs: `python -m nmt.train`, and from Python `nmt.train("seed=2")`."""

import sys
from pathlib import Path
from types import ModuleType


class _CallableModule(ModuleType):
    """A module that can be called as the function `nmt.train`, like the command of the same name."""

    def __call__(self, *settings: str) -> Path:
        """Train a new run or resume an existing run; return its folder.

        Args:
            settings: overrides as on the command line, such as "data.files=[pairs.tsv]" or "attention/score=additive".

        Raises:
            UserError: a setting is invalid, or the data or the run has a mistake.
            KeyboardInterrupt: the training was interrupted. Its state is saved; "resume=true" resumes it.
        """
        from nmt.config.composition import compose
        from nmt.config.quotes import quote
        from nmt.train.ancestor import choices_of_start
        from nmt.train.session import trained

        overrides = quote(settings)
        config = compose("train", [*choices_of_start(overrides), *overrides])
        status, folder = trained(config, overrides)
        if status:
            raise KeyboardInterrupt(f"The training in {folder} was interrupted. To continue it, give resume=true.")
        return folder or Path(str(config.checkpoints), str(config.name))


sys.modules[__name__].__class__ = _CallableModule
