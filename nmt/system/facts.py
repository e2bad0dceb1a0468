"""The schemas of a run's files: types and ranges of their values, which are checked whenever a file is read."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

#: Maximum ratio of target to source pieces: with a higher ratio, one sentence could take hours.
MOST_LENGTH_RATIO = 50.0


class Kind(NamedTuple):
    """The valid values of a fact; `rule` describes them, as the continuation of "must be"."""

    fits: Callable[[Any], bool]
    rule: str


class Fields(NamedTuple):
    """The fields of a JSON object. `further` is the kind of all other values; None allows any value."""

    required: Mapping[str, "Kind | Fields"] = {}
    optional: Mapping[str, "Kind | Fields"] = {}
    further: "Kind | Fields | None" = None


def number(least: float, most: float) -> Kind:
    """A number from `least` to `most`, but not true or false."""
    return Kind(
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most,
        f"a number from {least:g} to {most:g}",
    )


def whole(least: int = 0) -> Kind:
    """A whole number from `least` to 2^53, the range in which all JSON libraries are exact."""
    fits = number(least, 2**53).fits
    return Kind(lambda value: isinstance(value, int) and fits(value), f"a whole number from {least} to 2^53")


def optional(kind: Kind | Fields) -> Kind:
    """A value of a kind, or null."""
    rule = kind.rule if isinstance(kind, Kind) else "an object"
    return Kind(lambda value: value is None or not fault(value, kind), f"{rule}, or null")


def each(kind: Kind | Fields, length: int | None = None) -> Kind:
    """A list of values of a kind; its length must be `length` unless that is None."""
    return Kind(
        lambda value: (
            isinstance(value, list) and length in (None, len(value)) and not any(fault(one, kind) for one in value)
        ),
        f"a list{'' if length is None else f' of {length}'}{f', each {kind.rule}' if isinstance(kind, Kind) else ''}",
    )


TEXT = Kind(lambda value: isinstance(value, str) and len(value) <= 5000, "text of 5,000 characters at most")
COUNT, AMOUNT, FIGURE = whole(), number(0, 1e15), number(-1e15, 1e15)
METRIC = Kind(lambda value: value in ("bleu", "chrf"), "bleu or chrf")
OBJECT = Fields()

#: run.json
RUN = Fields(
    optional={
        **dict.fromkeys(("status", "finished_by", "data", "folder", "device", "links"), TEXT),
        **dict.fromkeys(("format", "step", "pairs", "threads", "peak_memory", "peak_gpu_memory"), COUNT),
        **dict.fromkeys(("epochs", "minutes"), AMOUNT),
        "length_ratio": number(0, MOST_LENGTH_RATIO),
        "judged_by": METRIC,
        "start": Fields(
            optional={
                **dict.fromkeys(("run", "weights"), TEXT),
                "step": COUNT,
                "text": Fields(further=TEXT),
                **dict.fromkeys(("before", "after"), Fields(further=Fields(further=FIGURE))),
            }
        ),
        "tags": Fields(required={"step": optional(COUNT), "head": TEXT, "shift": number(0, 1)}),
        "source_lines": Fields(further=AMOUNT),
        "languages": each(TEXT, 2),
        "code": each(TEXT),
        "examples": each(each(TEXT, 2)),
        **dict.fromkeys(("text", "versions"), Fields(further=TEXT)),
        "precision": Fields(
            optional={"step": optional(COUNT), **dict.fromkeys(("valid_bleu", "valid_chrf"), Fields(further=FIGURE))}
        ),
    }
)
_SHARE = number(0, 1)
_BIN = Kind(
    lambda row: isinstance(row, list) and len(row) == 3 and COUNT.fits(row[0]) and all(map(_SHARE.fits, row[1:])),
    "a number of words and two shares",
)
_FEATURE = Kind(
    lambda row: each(number(-1e6, 1e6), 3).fits(row) and row[1] >= 1e-6,
    "a mean, a deviation of at least 1e-06 and a weight",
)
EVIDENCE = Fields(required={"words": COUNT, "right": _SHARE, "auc": optional(_SHARE), "calibration": each(_BIN)})
#: doubt.json
DOUBT = Fields(
    required={
        "step": optional(COUNT),
        "sentences": COUNT,
        "intercept": number(-1e6, 1e6),
        "features": Fields(further=_FEATURE),
        "evidence": EVIDENCE,
    }
)
#: A line of history.jsonl
VALIDATION = Fields(
    required={
        "step": COUNT,
        "best": number(0, 1),
        **dict.fromkeys(("epoch", "minutes"), AMOUNT),
        **dict.fromkeys(("valid_loss", "valid_bleu"), FIGURE),
        "valid_perplexity": number(0, 1e30),
    },
    further=FIGURE,
)
_METRIC = Fields(required={"value": number(0, 1e9), "signature": TEXT})
_RATES = ("seconds", "sentences_per_second", "target_pieces_per_second")
_MEASURED = Fields(
    optional={
        **dict.fromkeys(("perplexity", "attention_entropy", "hidden_share", *_RATES), optional(number(0, 1e30))),
        "attention_entropy_by_head": optional(Fields(further=optional(AMOUNT))),
        "hidden_share_by_head": optional(Fields(further=optional(AMOUNT))),
        **dict.fromkeys(("forced_sentences", "parameters", "threads", "processes"), COUNT),
        "device": TEXT,
        "doubt": optional(EVIDENCE),
    }
)
#: scores.json
SCORES = Fields(
    required={
        "split": TEXT,
        **dict.fromkeys(("bleu", "chrf", "ter"), _METRIC),
        "measured": _MEASURED,
        "provenance": Fields(
            required={"text": TEXT},
            optional={
                **dict.fromkeys(("tokenizer", "checkpoint", "code"), TEXT),
                "step": optional(COUNT),
                "runs": each(TEXT),
                "search": OBJECT,
                "settings": OBJECT,
            },
        ),
    },
    optional={
        **dict.fromkeys(("source_language", "target_language"), TEXT),
        **dict.fromkeys(("sentences", "references"), COUNT),
        **dict.fromkeys(("exact_matches", "short_references"), number(0, 100)),
        "judged_by": METRIC,
        "alignment": optional(OBJECT),
    },
)
#: A row of sentences.json
MEASURES = Fields(
    required={"line": whole(1)},
    optional={
        **dict.fromkeys(("chrf", "repetition", "unattended", "length", "context_sentences"), AMOUNT),
        **dict.fromkeys(("log_prob", "entropy", "zero_weights", "coverage", "monotonicity", "end_weight"), FIGURE),
        "cut": Kind(lambda value: isinstance(value, bool), "true or false"),
        "error_rate": optional(AMOUNT),
        "gold": Kind(lambda value: isinstance(value, str), "text"),
    },
)
#: Counters in a trainer's state
STATE = Fields(
    required={
        **dict.fromkeys(("step", "epoch", "batch", "bad_validations"), COUNT),
        "seconds": AMOUNT,
        "best": Kind(
            lambda value: isinstance(value, list | tuple) and len(value) == 2 and all(each == each for each in value),
            "two numbers",
        ),
        "shapes": each(each(whole(1), 3)),
    },
    optional={"history": each(VALIDATION), "identity": Fields(further=TEXT)},
)


def _is_matrix(row: dict[str, Any]) -> bool:
    return len(row["weights"]) == len(row["target"]) and all(len(each) == len(row["source"]) for each in row["weights"])


_MAP = Fields(
    required={"line": whole(1), "source": each(TEXT), "target": each(TEXT), "weights": each(each(number(0, 1e9)))}
)
#: A row of attention.json
MAP = Kind(lambda row: not fault(row, _MAP) and _is_matrix(row), "weights of each target word, one for a source word")


def fault(value: object, kind: Kind | Fields, name: str = "") -> str:
    """The first problem of a value, with the name of the invalid fact; "" if the value is valid."""
    if isinstance(kind, Kind):
        return "" if kind.fits(value) else f"{name} must be {kind.rule}".lstrip()
    if not isinstance(value, dict):
        return f"{name} must be an object".lstrip()
    if missing := [key for key in kind.required if key not in value]:
        return f"{name} has no {missing[0]}".lstrip()
    known = {**kind.optional, **kind.required}
    for key, fact in value.items():
        of_key = known.get(key, kind.further)
        if of_key is not None and (wrong := fault(fact, of_key, f"{name}.{key}".lstrip("."))):
            return wrong
    return ""
