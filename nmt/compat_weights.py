"""Parameters of older runs under their current names, for `load_weights` and `load_state`.

Formerly each head had its own score and window: `attention.scores.1.W.weight` belonged to the second head. Now one
module has the parameters of all heads, concatenated (`nmt/attention/heads.py`): `attention.score.W.weight`.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_OF_A_HEAD = re.compile(r"(.*attention\.(?:score|window))s\.(\d+)\.(.*)")


def upgrade_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by their current names, in the same order; those of new runs stay unchanged."""
    return {
        name: weights[parts[0]] if len(parts) == 1 else torch.cat([weights[part] for part in parts])
        for name, parts in _sources(weights).items()
    }


def upgrade_state(state: dict[str, Any]) -> dict[str, Any]:
    """A trainer's state with weights, averages and optimizer by current names; that of a new run stays unchanged."""
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
    """Each current name with the names of its parts, in the order of the heads."""
    sources: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        match = _OF_A_HEAD.fullmatch(name)
        present, head = (f"{match[1]}.{match[3]}", int(match[2])) if match else (name, 0)
        sources.setdefault(present, []).append((head, name))
    return {present: [name for _, name in sorted(parts)] for present, parts in sources.items()}


def _upgrade_optimizer(optimizer: dict[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """The optimizer's state for the current parameters; it identifies parameters by their index in its two groups."""
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
    """The moments of one parameter from those of its parts, which have the same number of steps."""
    return {
        key: torch.cat([part[key] for part in moments])
        if isinstance(value, Tensor) and value.shape == weights[0].shape
        else value
        for key, value in moments[0].items()
    }
