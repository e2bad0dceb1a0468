"""Parameters of older runs under their present names, for `load_weights` and `load_state`.

At first each head had a score and a window of its own: `attention.scores.1.W.weight` was that of the second head. Now
one module holds the heads' parameters one below the other (`nmt/attention/heads.py`): `attention.score.W.weight`.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_OF_A_HEAD = re.compile(r"(.*attention\.(?:score|window))s\.(\d+)\.(.*)")


def upgrade_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by their present names, in the model's order if they were; those of new runs as they are."""
    return {
        name: weights[parts[0]] if len(parts) == 1 else torch.cat([weights[part] for part in parts])
        for name, parts in _sources(weights).items()
    }


def upgrade_state(state: dict[str, Any]) -> dict[str, Any]:
    """A trainer's state with its weights, averages and optimizer by present names; that of a new run as it is."""
    weights = state.get("model")
    if not isinstance(weights, dict) or not any(map(_OF_A_HEAD.fullmatch, weights)):
        return state
    averaging = state["averaging"]
    averaged = averaging["averaged"]
    return state | {
        "model": upgrade_weights(weights),
        "optimizer": _upgrade_optimizer(state["optimizer"], weights),
        "averaging": averaging
        | {
            "averaged": None if averaged is None else upgrade_weights(averaged),
            "recent": [upgrade_weights(recent) for recent in averaging["recent"]],
        },
    }


def _sources(names: Mapping[str, Tensor]) -> dict[str, list[str]]:
    """Each present name with the names of which it is made, the first head's first."""
    sources: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        match = _OF_A_HEAD.fullmatch(name)
        present, head = (f"{match[1]}.{match[3]}", int(match[2])) if match else (name, 0)
        sources.setdefault(present, []).append((head, name))
    return {present: [name for _, name in sorted(parts)] for present, parts in sources.items()}


def _upgrade_optimizer(optimizer: dict[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """The optimizer's state, which knows parameters by their place in its two groups, for the present parameters."""
    moments = {name: optimizer["state"].get(place) for place, name in enumerate(_ordered(weights))}
    sources, present = _sources(weights), upgrade_weights(weights)
    state = {
        place: _joined([moments[part] for part in sources[name]], [weights[part] for part in sources[name]])
        for place, name in enumerate(_ordered(present))
        if moments[sources[name][0]] is not None
    }
    matrices = sum(map(_is_matrix, present, present.values()))
    places = (list(range(matrices)), list(range(matrices, len(present))))
    groups = [group | {"params": params} for group, params in zip(optimizer["param_groups"], places, strict=True)]
    return {"state": state, "param_groups": groups}


def _ordered(weights: Mapping[str, Tensor]) -> list[str]:
    """Parameter names in the order of the optimizer (`build_optimizer`): matrices first."""
    return sorted(weights, key=lambda name: not _is_matrix(name, weights[name]))


def _is_matrix(name: str, weight: Tensor) -> bool:
    return weight.ndim > 1 and not name.endswith("embedding.weight")


def _joined(moments: list[dict[str, Any]], weights: list[Tensor]) -> dict[str, Any]:
    """The moments of one parameter from those of its parts; numbers of steps are the same in all."""
    return {
        key: torch.cat([part[key] for part in moments])
        if isinstance(value, Tensor) and value.shape == weights[0].shape
        else value
        for key, value in moments[0].items()
    }
