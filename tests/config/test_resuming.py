"""What a resumed run may change, and what it may not."""

import pytest

from nmt.config.composition import compose
from nmt.config.quotes import quote
from nmt.config.resumption import merge_for_resume
from nmt.system.errors import UserError


def test_budget_and_place_may_change_on_resuming() -> None:
    first = quote(["name=a b", "data.files=[x y.de,z.en]", "trainer.epochs=3"])
    saved = compose("train", first)
    merged = merge_for_resume(saved, first, quote(["name=a b", "resume=true", "trainer.epochs=9", "device=cpu"]))
    assert (merged.trainer.epochs, merged.device, merged.resume) == (9, "cpu", True)
    assert list(merged.data.files) == ["x y.de", "z.en"]
    assert (saved.trainer.epochs, saved.device, saved.resume) == (3, "auto", False)


def test_every_other_difference_is_listed() -> None:
    first = quote(["encoder.size=64"])
    with pytest.raises(UserError) as caught:
        merge_for_resume(compose("train", first), first, ["encoder=lstm", "seed=2", "trainer=long", "encoder.size=32"])
    message = str(caught.value)
    assert "encoder.size: 64 -> 32" in message
    assert "encoder.forget_bias: (not there) -> 1.0" in message
    assert "seed: 1 -> 2" in message
    assert "trainer" not in message.split("Leave")[0]
    assert "name=" in message
    assert "twice" not in message


def test_what_the_saved_run_says_already_is_no_difference() -> None:
    saved = compose("train", ["encoder.size=64"])
    # The saved run got its size from advice, not from its command line.
    assert merge_for_resume(saved, [], ["encoder.size=64"]) == saved
    with pytest.raises(UserError, match=r"encoder\.size: 64 -> 256"):
        merge_for_resume(saved, [], ["encoder.size=256"])
    assert merge_for_resume(saved, [], ["trainer.minutes=5"]).encoder.size == 64


def test_a_line_that_does_not_fit_the_run_is_refused() -> None:
    first = quote(["data.files=[a,b]"])
    with pytest.raises(UserError, match=r"cannot be resumed with these settings.*data\.files"):
        merge_for_resume(compose("train", first), first, ["data=text"])
