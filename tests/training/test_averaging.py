"""Averages of weights, by hand."""

import torch

from nmt.model import Seq2Seq
from nmt.training.weight_average import Averaging
from tests.catalogue import model

NAME = "decoder.rnn.weight_hh_l0"


def moved(made: Seq2Seq, amount: float) -> torch.Tensor:
    """Adds to every parameter and returns one of them."""
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(amount)
    return dict(made.named_parameters())[NAME].detach().clone()


def kept(averaging: Averaging) -> torch.Tensor:
    return dict(averaging.best_guess.named_parameters())[NAME].detach()


def test_a_moving_average_follows_closely_at_first_and_slowly_later() -> None:
    made = model()
    averaging = Averaging(made, "ema", 0.5, 3)
    current = moved(made, 1.0)
    averaging.after_update()
    torch.testing.assert_close(kept(averaging), current)  # torch's first average is a copy
    expected = current
    for count in range(1, 30):
        current = moved(made, 0.3)
        averaging.after_update()
        expected = expected + max(0.5, 9 / (10 + count)) * (current - expected)
        torch.testing.assert_close(kept(averaging), expected)
    assert not kept(averaging).equal(current)


def test_the_last_checkpoints_are_averaged() -> None:
    made = model()
    averaging = Averaging(made, "checkpoints", 0.9, 2)
    assert averaging.best_guess is made, "before the first validation there is nothing to average"
    seen = []
    for _ in range(3):
        seen.append(moved(made, 1.0))
        averaging.after_update()
        averaging.before_validation()
    torch.testing.assert_close(kept(averaging), (seen[1] + seen[2]) / 2)
    torch.testing.assert_close(dict(made.named_parameters())[NAME].detach(), seen[2])


def test_tied_weights_stay_tied() -> None:
    made = model("model.tie_embeddings=all", "decoder.readout.size=7", pieces=(23, 23), joint=True)
    for kind in ("ema", "checkpoints"):
        averaging = Averaging(made, kind, 0.5, 2)
        for _ in range(2):
            moved(made, 1.0)
            averaging.after_update()
            averaging.before_validation()
        average = averaging.best_guess
        assert average is not made
        assert average.output.weight is average.source_embedding.weight is average.target_embedding.weight
        assert made.output.weight is made.source_embedding.weight


def test_a_saved_average_goes_on() -> None:
    for kind in ("none", "ema", "checkpoints"):
        made = model()
        averaging = Averaging(made, kind, 0.5, 2)
        for _ in range(3):
            moved(made, 1.0)
            averaging.after_update()
            averaging.before_validation()
        state = averaging.state_dict()
        again = Averaging(made, kind, 0.5, 2)
        again.load_state_dict(state)
        for own in (averaging, again):
            own.after_update()
            own.before_validation()
        torch.testing.assert_close(kept(averaging), kept(again))
