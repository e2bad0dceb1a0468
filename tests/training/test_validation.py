"""The scores of validation."""

import math

import pytest

from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.training.validation import Figures, Validated, in_case_of, judged_by

TEXT = [f"Der {a} Hund {b} ist alt" for a in ("rote", "blaue", "graue") for b in ("dort", "hier", "da")]


@pytest.mark.parametrize(("normalization", "folds"), [("nmt_nfkc_cf", True), ("identity", False), ("nfkc", False)])
def test_references_have_the_case_that_the_model_can_write(normalization: str, folds: bool) -> None:
    tokenizer, _ = TokenizerTrainer(vocabulary_size=320, normalization=normalization).train(TEXT, TEXT)
    assert tokenizer.target.folds_case == folds
    written = [tokenizer.target.decode(tokens) for tokens in tokenizer.target.encode(TEXT)]
    assert list(in_case_of(tokenizer.target, TEXT)) == written


def test_the_validation_set_decides_which_metric_judges() -> None:
    assert judged_by(TEXT, "de") == ("bleu", [])
    metric, (note,) = judged_by(["Hund", "Katze", "", "ein Haus"], "de")
    assert metric == "chrf"
    assert note.startswith("The validation set: 100 % of the references have fewer than 4 tokens")
    _, (tokenised,) = judged_by([f"{line} ." for line in 2 * TEXT], "de")
    assert "looks tokenised: 100 % of its lines" in tokenised


def test_figures_name_the_metric_that_judges() -> None:
    plain, short = Figures(12.5, 3.0), Figures(0.0, 80.0, 95.0)
    assert (plain.score, str(plain), plain.entries()) == (12.5, "BLEU 12.50", {"bleu": 12.5, "exact": 3.0})
    assert (short.score, str(short)) == (95.0, "chrF 95.00, exact 80.0 %")


def test_a_perplexity_is_the_exponential_of_the_loss_and_stays_finite() -> None:
    figures = Figures(0.0, 0.0)
    assert Validated(2.0, figures, []).perplexity == pytest.approx(math.exp(2.0))
    assert math.isfinite(Validated(1000.0, figures, []).perplexity)
