"""Observers: what every attention of a model returns while the model computes."""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

from nmt.attention.attention import Attended

#: What each call of an attention returned, by the name of its module: one with the attribute `attends`.
Observed = dict[str, list[Attended]]


@contextlib.contextmanager
def observing(model: nn.Module) -> Iterator[Observed]:
    """Record what each attention of `model` returns, with weights and stages even where its caller wants none.

    What a fused recurrence computes without an `Attention` is not seen.
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
