"""Settings are checked by the type hints of the constructors that take them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from nmt.system.errors import SettingError, UserError
from nmt.system.limits import Amount, Fraction, NotNegative, Positive, checked, one_of


class Part:
    def __init__(
        self,
        given: object,
        *,
        size: Positive = 8,
        dropout: Fraction = 0.0,
        steps: Positive | None = None,
        minutes: Amount | None = None,
        cell: Literal["gru", "lstm"] = "gru",
        fast: bool = True,
        name: str | None = None,
        files: str | Sequence[str] | None = None,
        folder: Path = Path(),
        columns: tuple[int, int] = (1, 2),
        model: Annotated[str, one_of("unigram", "bpe")] = "bpe",
        head: Literal["mean"] | NotNegative = "mean",
    ) -> None:
        if size % 2:
            raise SettingError("size", size, "must be even.")
        self.given, self.settings = (
            given,
            {key: value for key, value in locals().items() if key not in ("self", "given")},
        )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("size", 1e4, 10_000),
        ("dropout", 0, 0),
        ("steps", None, None),
        ("steps", 3, 3),
        ("minutes", 2, 2),
        ("name", "no", "no"),
        ("files", "a", "a"),
        ("files", ["a", "b"], ["a", "b"]),
        ("folder", "a/b", Path("a/b")),
        ("columns", [2, 1], [2, 1]),
        ("head", 3, 3),
        ("head", "mean", "mean"),
    ],
)
def test_a_value_that_fits_arrives(name: str, value: object, expected: object) -> None:
    arrived = checked(Part, {name: value}, "encoder")("given").settings[name]
    assert arrived == expected
    assert type(arrived) is type(expected) or isinstance(expected, Path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("size", -4, "encoder.size=-4: must be at least 1."),
        ("size", 2.5, "encoder.size=2.5: must be a whole number, at least 1."),
        ("size", float("inf"), "encoder.size=inf: must be a whole number, at least 1."),
        ("size", "abc", "encoder.size=abc: must be a whole number, at least 1."),
        ("size", True, "encoder.size=true: must be a whole number, at least 1."),
        ("size", None, "encoder.size=null: must be a whole number, at least 1."),
        ("size", 7, "encoder.size=7: must be even."),
        ("dropout", 1, "encoder.dropout=1: must be at least 0 and less than 1."),
        ("dropout", float("nan"), "encoder.dropout=nan: must be a finite number, at least 0 and less than 1."),
        ("steps", "many", "encoder.steps=many: must be a whole number, at least 1, or null."),
        ("steps", 0, "encoder.steps=0: must be at least 1, or null."),
        ("minutes", float("inf"), "encoder.minutes=inf: must be a finite number, greater than 0, or null."),
        ("cell", "gur", "encoder.cell=gur: must be gru or lstm. Did you mean 'gru'?"),
        ("model", "unigran", "encoder.model=unigran: must be unigram or bpe. Did you mean 'unigram'?"),
        ("model", None, "encoder.model=null: must be unigram or bpe."),
        ("fast", 1, "encoder.fast=1: must be true or false."),
        ("name", 3, "encoder.name=3: must be text, or null."),
        ("files", ["a", 1], "encoder.files=[a,1]: must be text or a list, written [a,b], each text, or null."),
        ("columns", [1], "encoder.columns=[1]: must be a list of 2, written [a,b], each a whole number."),
        ("head", "best", "encoder.head=best: must be mean or a whole number, at least 0."),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_its_rule(name: str, value: object, message: str) -> None:
    with pytest.raises(UserError) as caught:
        checked(Part, {name: value}, "encoder")("given")
    assert str(caught.value) == message


def test_an_unknown_setting_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"encoder\.szie is not a setting of Part\. Did you mean 'size'\?"):
        checked(Part, {"szie": 3}, "encoder")


def test_an_inner_part_names_its_own_key() -> None:
    def outer(build: Callable[..., Any], heads: Positive) -> Any:
        del heads
        return build("given")

    with pytest.raises(UserError) as caught:
        checked(outer, {"heads": 2}, "attention")(checked(Part, {"size": 3}, "attention.score"))
    assert str(caught.value) == "attention.score.size=3: must be even."


def test_dataclasses_are_constructors_too() -> None:
    @dataclass(frozen=True)
    class Request:
        sentences: Positive = 64

    assert checked(Request, {"sentences": 3})().sentences == 3
    with pytest.raises(UserError, match=r"^sentences=0: must be at least 1\.$"):
        checked(Request, {"sentences": 0})


def test_a_rule_may_name_other_settings_of_the_part() -> None:
    def make(size: int) -> None:
        raise SettingError("size", size, "must be even. Give {key}.size=4 or {key}.heads=1.")

    with pytest.raises(SettingError, match=r"^size=3: must be even\. Give size=4 or heads=1\.$"):
        make(3)
    with pytest.raises(SettingError, match=r"^a\.b\.size=3: must be even\. Give a\.b\.size=4 or a\.b\.heads=1\.$"):
        checked(make, {"size": 3}, "a.b")()
