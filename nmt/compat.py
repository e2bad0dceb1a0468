"""Configurations of earlier versions, converted to today's. No other file knows the differences.

Until version 0.1 a run named classes instead of choices (see `nmt.choices`). `CLASSES` lists them all. A run with any
other class is an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.configuration import TARGET, look_up, without_classes
from nmt.errors import UserError

#: Class -> its choice, by the place of the group. If several choices had one class: (setting, its value -> choice).
CLASSES: dict[str, dict[str, str | tuple[str, dict[str, str]]]] = {
    "data": {
        "nmt.data.builtin.BuiltIn": "builtin",
        "nmt.data.sources.TextFiles": "text",
        "nmt.data.sources.UserFiles": "files",
        "nmt.data.sources.Multi30k": "multi30k",
        "nmt.data.sources.Tatoeba": "tatoeba",
        "nmt.data.hub_source.Hub": "hub",
    },
    "tokenizer": {
        "nmt.text.tokenizer_trainer.TokenizerTrainer": (
            "model_type",
            {kind: kind for kind in ("unigram", "bpe", "char", "word")},
        ),
    },
    "encoder": {"nmt.model.encoders.RecurrentEncoder": ("cell", {"gru": "gru", "lstm": "lstm"})},
    "attention": {"nmt.attention.attention.Attention": "default"},
    "attention.score": {
        "nmt.attention.scores.Additive": "additive",
        "nmt.attention.scores.Concat": "concat",
        "nmt.attention.scores.General": "general",
        "nmt.attention.scores.Dot": "dot",
        "nmt.attention.scores.ScaledDot": "scaled_dot",
        "nmt.attention.scores.Location": "location",
        "nmt.attention.scores.Cosine": "cosine",
    },
    "attention.window": {
        "nmt.attention.windows.Global": "global",
        "nmt.attention.windows.Causal": "causal",
        "nmt.attention.windows.LocalMonotonic": "local_m",
        "nmt.attention.windows.LocalPredictive": "local_p",
        "nmt.attention.windows.Forced": "forced",
    },
    "attention.read": {"nmt.attention.reads.Soft": "soft", "nmt.attention.reads.Hard": "hard"},
    "decoder": {
        "nmt.model.decoders.Bahdanau": "bahdanau",
        "nmt.model.decoders.Luong": "luong",
        "nmt.model.decoders.Conditional": "conditional",
        "nmt.model.decoders.NoAttention": "none",
    },
    "decoder.readout": {
        "nmt.model.readouts.Maxout": "maxout",
        "nmt.model.readouts.Tanh": "tanh",
        "nmt.model.readouts.FromState": "state",
        "nmt.model.readouts.FromContext": "context",
    },
    "search": {
        "nmt.search.beam.BeamSearch": "beam",
        "nmt.search.greedy.GreedySearch": "greedy",
        "nmt.search.greedy.SamplingSearch": "sampling",
    },
    "optimizer": {
        f"torch.optim.{name}": name.lower()
        for name in ("AdamW", "Adam", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "SGD")
    },
    "schedule": {
        "nmt.training.schedules.Constant": "constant",
        "nmt.training.schedules.Cosine": "cosine",
        "nmt.training.schedules.InverseSquareRoot": "inverse_sqrt",
    },
    "trainer": {"nmt.training.trainer.Trainer": "default"},
}


def with_choices(tree: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a run of any version, with its `choices`.

    Raises:
        UserError: a class is unknown or missing.
    """
    if "choices" in tree:
        return with_later_settings(tree)
    choices = {}
    for place, classes in CLASSES.items():
        node = look_up(tree, place)
        name = str(node.get(TARGET)) if isinstance(node, dict) else "nothing"
        choice = classes.get(name)
        if isinstance(choice, tuple):
            assert isinstance(node, dict)
            choice = choice[1].get(str(node.get(choice[0])))
        if choice is None:
            raise UserError(f"{place}.{TARGET}={name} is not one of the choices of {place.replace('.', '/')}.")
        choices[place.replace(".", "/")] = choice
    complete = {**without_classes(tree), "choices": choices}
    # In version 0.1, scaled_dot with one head had no projections. Now it has them by default.
    project = False if choices["attention/score"] == "scaled_dot" and complete["attention"]["heads"] == 1 else None
    complete["attention"] = {"project": project, **complete["attention"]}
    complete["model"] = {"fast": True, **complete["model"]}
    return with_later_settings(complete)


#: Settings that are younger than some runs, by group and choice (None: no group), with the value that runs without
#: them have.
LATER: dict[tuple[str, str | None], dict[str, Any]] = {
    ("model", None): {"output_dropout": None},
    **{
        ("tokenizer", choice): {"sample_characters": 10**11, "canonical": False}
        for choice in ("unigram", "bpe", "char", "word")
    },
    ("data", "text"): {"documents": None},
    ("data", "files"): {"documents": None, "lines": "plain"},
    ("trainer", "default"): {"guided_head": None, "r_drop": 0.0, "skipped_updates": 10, "graphs": "never"},
    **{("attention", choice): {"coverage_loss": 0.0} for choice in ("default", "multihead")},
    ("attention/read", "hard"): {"baseline": "average"},
    **{("decoder", wiring): {"multi_step": False} for wiring in ("bahdanau", "conditional", "luong")},
}


def with_later_settings(tree: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a run with the settings that did not exist when it was trained."""
    choices = tree["choices"]
    if not isinstance(choices, dict):  # which `with_classes` refuses
        return tree
    if "context" not in tree and "encoder" in tree:  # runs of single sentences only
        tree = {**tree, "context": {"sentences": 0}, "choices": {**choices, "context": "concat"}}
    for (group, choice), values in LATER.items():
        if choices.get(group) == choice:
            tree = _with_defaults(tree, group.split("/"), values)
    return tree


def _with_defaults(tree: dict[str, Any], path: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The tree with values that its node at `path` does not have; the same tree if there is no such node."""
    if not path:
        return {**values, **tree}
    inner = tree.get(path[0])
    return tree | {path[0]: _with_defaults(inner, path[1:], values)} if isinstance(inner, dict) else tree


#: What `decoder.first_state=auto` means with an encoder that has a last state. Version 0.1 had no other encoder, and
#: wrote the kind.
FIRST_STATES = {"bahdanau": "backward", "conditional": "mean", "luong": "last", "none": "last"}


def first_state(choices: Mapping[str, str], kind: str) -> str:
    """The kind of first state that a run has, whichever version wrote `decoder.first_state`."""
    auto = kind == "auto" and choices["encoder"] in ("gru", "lstm")
    return FIRST_STATES.get(choices["decoder"], kind) if auto else kind


def search_choice(name: object) -> str:
    """The choice of a search in saved scores; until version 0.1 these had the class."""
    searches = {target.rpartition(".")[2]: str(choice) for target, choice in CLASSES["search"].items()}
    return searches.get(str(name), str(name))
