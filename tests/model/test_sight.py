"""What a word may depend on: which settings let a step see the word before it and the source, and which are refused."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from nmt.config.composition import compose
from nmt.model.recurrent.first_state import FirstState
from nmt.system.errors import UserError
from tests.catalogue import READOUTS, SMALL, WIRINGS, assembled, model, sentences
from tests.model.test_wirings import run, targets


def test_a_readout_that_would_leave_the_attention_unused_is_refused() -> None:
    with pytest.raises(UserError, match="decoder/readout=state would leave the attention unused"):
        model("decoder=luong", "decoder/readout=state")
    with pytest.raises(UserError, match="decoder/readout=context would predict the same word at each"):
        model("decoder=none", "decoder/readout=context")
    with pytest.raises(UserError, match=r"sees the context alone, and with decoder\.summary=first there is none"):
        model("decoder=none", "decoder/readout=context", "decoder.summary=first")
    with pytest.raises(UserError, match="choose among slots, which decoder/readout=state does not see"):
        model("decoder/readout=state", "attention/read=hard", "attention.read.objective=enumerate")


#: Beside the readout, every setting that says what a step or its readout sees; those that a wiring has are crossed.
SIGHT: dict[str, list[Any]] = {
    "decoder.readout.word": [False, True],
    "decoder.previous_state": [False, True],
    "decoder.input_feeding": [False, True],
    "decoder.summary": ["first", "every"],
    "decoder.first_state": list(FirstState.KINDS),
}


def sights(wiring: str) -> Iterator[DictConfig]:
    """Every combination of the settings of SIGHT that this wiring and the readout have."""
    for readout in READOUTS:
        config = compose("train", [*SMALL, f"decoder={wiring}", f"decoder/readout={readout}"])
        keys = [key for key in SIGHT if OmegaConf.select(config, key) is not None]
        for values in itertools.product(*(SIGHT[key] for key in keys)):
            for key, value in zip(keys, values, strict=True):
                OmegaConf.update(config, key, value)
            yield config


@pytest.mark.parametrize("wiring", WIRINGS)
def test_every_word_depends_on_the_one_before_it_and_on_the_source(wiring: str) -> None:
    """All that is accepted does, whatever is refused: at the last step, another previous word, another source.

    Sources have several words: the context of a single one is the same whatever is asked.
    """
    lengths = [6, 3, 4]
    source, mask, _ = sentences(lengths, 23)
    target = targets()
    other_target = target.clone()
    other_target[:, -1] = 4 + (target[:, -1] - 3) % 25
    accepted, refused = 0, []
    for config in sights(wiring):
        try:
            made = assembled(config)
        except UserError as error:
            refused.append(str(error))
            continue
        accepted += 1
        with torch.no_grad():
            before, by_word, by_source = (
                run(made, *pair)[0][:, -1]
                for pair in (
                    (source, mask, target),
                    (source, mask, other_target),
                    (sentences(lengths, 23, seed=7)[0], mask, target),
                )
            )
        for after in (by_word, by_source):
            assert ((before - after).abs().amax(1) > 1e-6).all(), config.decoder
    assert accepted > len(refused)
    assert all("Give decoder" in message for message in refused)


def test_a_readout_that_would_not_see_the_previous_word_is_refused_with_its_cure() -> None:
    before = "decoder.previous_state=true"
    for blind, cure in (
        (("decoder/readout=context",), "Give decoder=luong or conditional, or"),
        (("decoder/readout=context", before), "Give decoder=luong or conditional, or"),
        (("decoder/readout=state", before), "Give decoder.previous_state=false, or"),
        (("decoder/readout=tanh", before), "decoder/readout=tanh decoder.readout.word=true"),
    ):
        with pytest.raises(UserError, match="no word would depend on the one before it") as caught:
            model("decoder=bahdanau", *blind)
        assert cure in str(caught.value)
    for cured in (("decoder/readout=tanh", before, "decoder.readout.word=true"), ("decoder/readout=maxout", before)):
        model("decoder=bahdanau", *cured)


def test_a_model_that_would_never_see_a_source_is_refused() -> None:
    with pytest.raises(UserError, match=r"Give decoder\.first_state=last or decoder\.summary=every"):
        model("decoder=none", "decoder.summary=first", "decoder.first_state=zero")
