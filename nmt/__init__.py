"""Neural machine translation whose subject is attention: `python -m nmt.train`, translate, evaluate; `nmt.load`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.api import Pin, RunTranslator, load
    from nmt.notebook import Explanation, Inspection, TranslatedSentence, WhatIf

__version__ = "0.1.0"
__all__ = ["Explanation", "Inspection", "Pin", "RunTranslator", "TranslatedSentence", "WhatIf", "load"]


def __getattr__(name: str) -> Any:
    """Import `nmt.train` and the names of `nmt.api` at their first use, so that `import nmt` loads no library."""
    if name == "train":
        return import_module("nmt.train")
    if name not in __all__:
        raise AttributeError(f"module 'nmt' has no attribute '{name}'")
    from nmt import api

    return getattr(api, name)
