"""Models with drawn weights, for tests of what exports them."""

from collections.abc import Sequence

import torch

from nmt import build
from nmt.command.composing import compose
from nmt.model import Seq2Seq
from nmt.text.tokenizer import Tokenizer
from nmt.text.train import TokenizerTrainer
from tests.pipeline.small import pairs


def joint_tokenizer() -> Tokenizer:
    """A tokenizer with one vocabulary for both languages."""
    return TokenizerTrainer(vocabulary_size=300).train(*zip(*pairs(300), strict=True))[0]


def drawn_model(tokenizer: Tokenizer, common: Sequence[str], words: Sequence[str]) -> tuple[Seq2Seq, dict[str, str]]:
    """A model with drawn weights, none of them where training starts, and its choices.

    `words` are its overrides; those of `common` hold where `words` have no other value.
    """
    keys = {word.split("=")[0] for word in words}
    config = compose("train", [*(word for word in common if word.split("=")[0] not in keys), *words])
    model = build.build_model(config, tokenizer).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).normal_(0, 0.2, generator=generator))
    return model, dict(config.choices)
