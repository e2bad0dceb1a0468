"""Training of a translator or a sweep of them: `python -m nmt.train`, and from Python `nmt.train("seed=2")`."""

import sys
from pathlib import Path
from types import ModuleType


class _CallableModule(ModuleType):
    """The package as the function `nmt.train`: in Python as on the command line, a verb is called by its name."""

    def __call__(self, *settings: str) -> Path:
        """Train a run, or resume one, and return its folder.

        Args:
            settings: as on the command line: "data.files=[pairs.tsv]", "attention/score=additive".

        Raises:
            UserError: a setting is invalid, or the data or the run has a mistake.
            KeyboardInterrupt: the training was interrupted, and is saved: "resume=true" continues it.
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
