"""Short labels of variants, made from the settings that distinguish them."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.choices import is_choice, place

_BARE = ("decoder", "attention/score", "attention/window", "attention/normaliser", "attention/read")


def labels(settings: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Label the variants by as few settings as distinguish them, choices before numbers.

    Settings implied by earlier words of the label are left out, and so are the most common values (`_usual`).

    Returns:
        All keys that differ, and a label for each variant, such as "luong general heads 2".
    """
    keys = list(dict.fromkeys(key for variant in settings for key in variant))

    def values(key: str) -> list[str]:
        return [json.dumps(variant[key], default=str) if key in variant else "" for variant in settings]

    differing = [key for key in keys if len(set(values(key))) > 1]

    def rank(key: str) -> tuple[int, int, str]:
        if not is_choice(key):
            return (3 if key.startswith("data.") else 2, key.count("."), key)
        return (0, _BARE.index(key), "") if key in _BARE else (1, key.count("/") + key.count("@"), key)

    label_keys: list[str] = []
    classes = 1
    for key in sorted(differing or _BARE[:2], key=rank):
        finer = len(set(zip(*(values(other_key) for other_key in [*label_keys, key]), strict=True)))
        if finer > classes or not differing:
            label_keys.append(key)
            classes = finer
    usual = {key: _usual(key, [variant[key] for variant in settings if key in variant]) for key in label_keys}
    names = []
    for hidden in (usual, {}):  # the second time with all values, if the first labels are not unique
        names = [_label(variant, settings, label_keys, hidden, keys) for variant in settings]
        if len(set(names)) == len(names):
            break
    return differing, [name if names.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(names)]


_NOTHING = object()
_Settings = Mapping[str, Any]


def _label(
    variant: _Settings, settings: Sequence[_Settings], label_keys: Sequence[str], hidden: _Settings, keys: Sequence[str]
) -> str:
    """The label of a variant from `label_keys`, without hidden values and settings implied by earlier keys."""
    open_, alike = [], settings
    for key in label_keys:
        rest = [other for other in alike if other.get(key, _NOTHING) == variant.get(key, _NOTHING)]
        if key in variant and (len(rest) < len(alike) or len(settings) == 1):
            open_.append(key)
        alike = rest
    shown_keys = [key for key in open_ if variant[key] != hidden.get(key, _NOTHING)] or open_[:1]
    if not shown_keys:
        return f"without {' or '.join(_name(key, keys) for key in label_keys)}"
    return " ".join(_words(key, variant[key], keys, shown_keys) for key in shown_keys)


def _usual(key: str, values: Sequence[Any]) -> Any:
    """The most common value of a setting; `_NOTHING` if two values are equally common.

    Labels always show the wiring and the score: only window, normaliser and read are choices that can be left out.
    """
    if is_choice(key) and key not in _BARE[2:]:
        return _NOTHING
    counted = Counter(json.dumps(value, default=str) for value in values).most_common(2)
    if len(counted) == 2 and counted[0][1] > counted[1][1]:
        return next(value for value in values if json.dumps(value, default=str) == counted[0][0])
    return _NOTHING


def telling(settings: Sequence[_Settings], differing: Sequence[str]) -> list[str]:
    """The settings in which variants differ, without settings that only some choices have."""

    def varies(key: str) -> bool:
        return len({json.dumps(variant[key], default=str) for variant in settings if key in variant}) > 1

    choices = [key for key in differing if is_choice(key) and varies(key)]

    def follows(key: str, choice: str) -> bool:
        with_key, without = (
            {variant.get(choice) for variant in settings if (key in variant) == there} for there in (True, False)
        )
        return not with_key & without

    return [key for key in differing if varies(key) or not any(follows(key, choice) for choice in choices)]


def setting_words(key: str, value: Any) -> str:
    """The value of a choice or a setting, written as on the command line."""
    if is_choice(key):
        return choice_words(key, value)
    return value if isinstance(value, str) else json.dumps(value, default=str)


def choice_words(key: str, value: Any) -> str:
    """A choice in a label: its name, or "no attention"."""
    return "no attention" if (key, value) == ("decoder", "none") else str(value)


def _words(key: str, value: Any, keys: Sequence[str], shown_keys: Sequence[str]) -> str:
    if is_choice(key):
        owner, _, last = place(key).partition(".self_attention.") if "@" in key else ("", "", key.rpartition("/")[2])
        name = f"{owner.replace('.', ' ')} {last}".strip()
        return choice_words(key, value) if key in _BARE else f"{choice_words(key, value)} {name}"
    name = _name(key, keys)
    if isinstance(value, bool):
        return name if value else f"no {name}"
    written = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    # "local_p 2": a window's only setting needs no name after the window's.
    choice = key.rpartition(".")[0].replace(".", "/")
    of_choice = [other for other in shown_keys if other == choice or other.startswith(f"{place(choice)}.")]
    return written if choice == "attention/window" and of_choice == [choice, key] else f"{name} {written}"


def _name(key: str, keys: Sequence[str]) -> str:
    """The shortest ending of a setting's key that no other key shares, as words."""
    parts = key.replace("/", ".").split(".")
    lengths = range(1, len(parts) + 1)
    alone = (length for length in lengths if sum(other.split(".")[-length:] == parts[-length:] for other in keys) <= 1)
    return " ".join(parts[-next(alone, 2) :]).replace("_", " ")
