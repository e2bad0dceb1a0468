"""Observers record the results of every attention while a model computes."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

from nmt.attention.attention import Attended

#: The results of each attention, call by call, by the attention's module name. Attentions have the attribute `attends`.
Observed = dict[str, list[Attended]]


@contextlib.contextmanager
def observing(model: nn.Module) -> Iterator[Observed]:
    """Record the results of each attention of `model`, with weights and stages even if the caller requests none.

    Fused recurrences do not call `Attention`, so their attention is not recorded.
    """
    seen: Observed = {}
    hooks = []

    def ask_for_weights(_: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return arguments, {**options, "weights": True}

    for name, module in model.named_modules():
        if getattr(module, "attends", False):
            calls = seen[name] = []
            hooks.append(module.register_forward_pre_hook(ask_for_weights, with_kwargs=True))
            hooks.append(module.register_forward_hook(lambda *call, calls=calls: calls.append(call[-1])))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
