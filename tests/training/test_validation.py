"""The BLEU of validation."""

import pytest

from nmt.text.train import TokenizerTrainer
from nmt.training.validation import in_case_of

TEXT = [f"Der {a} Hund {b} ist alt" for a in ("rote", "blaue", "graue") for b in ("dort", "hier", "da")]


@pytest.mark.parametrize(("normalization", "folds"), [("nmt_nfkc_cf", True), ("identity", False), ("nfkc", False)])
def test_references_have_the_case_that_the_model_can_write(normalization: str, folds: bool) -> None:
    tokenizer, _ = TokenizerTrainer(vocabulary_size=320, normalization=normalization).train(TEXT, TEXT)
    assert tokenizer.target.folds_case == folds
    written = [tokenizer.target.decode(tokens) for tokens in tokenizer.target.encode(TEXT)]
    assert list(in_case_of(tokenizer.target, TEXT)) == written
