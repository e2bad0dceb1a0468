"""Validation: the loss on the whole validation set, and BLEU of greedy translations of its beginning."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from nmt.compute import Compute
from nmt.data.planning import TokenBatches
from nmt.model import Seq2Seq
from nmt.search import GreedySearch
from nmt.text.scripts import language_by_script
from nmt.text.tokenizer import Tokenizer
from nmt.training.loss import batch_loss
from nmt.translation.translator import Translator
from nmt.translation.types import Translation

Translate = Callable[[Seq2Seq], tuple[list[Translation], float]]


class Validated(NamedTuple):
    """The mean negative log-likelihood of a target token, BLEU, and the translations that it was computed on."""

    loss: float
    bleu: float
    translations: list[Translation]

    @property
    def perplexity(self) -> float:
        """The exponential of the loss, kept finite."""
        return math.exp(min(self.loss, 50.0))


class Validation:
    """Measures perplexity on `batches`, and BLEU with `translate`, which returns translations and their BLEU."""

    def __init__(self, batches: TokenBatches, translate: Translate, compute: Compute) -> None:
        self.batches, self.translate, self.compute = batches, translate, compute

    def __call__(self, model: Seq2Seq) -> Validated:
        """Measure a model without dropout, then set it back to its earlier mode."""
        training = model.training
        model.eval()
        negative_log_likelihood, tokens = 0.0, 0
        with torch.inference_mode():
            for batch in self.batches.epoch(0):
                with self.compute.autocast():
                    loss = batch_loss(model, batch.to(self.compute.device))
                negative_log_likelihood += loss.negative_log_likelihood.item()
                tokens += loss.tokens
        translations, bleu = self.translate(model)
        model.train(training)
        return Validated(negative_log_likelihood / max(tokens, 1), bleu, translations)


def greedy_bleu(
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    tokenizer: Tokenizer,
    compute: Compute,
    length_ratio: float,
) -> Translate:
    """A function that translates `sources` greedily with a model and scores them against `references`."""
    from nmt.evaluation.metrics import bleu

    language = language_by_script(references, language)

    def translate(model: Seq2Seq) -> tuple[list[Translation], float]:
        translator = Translator([model], tokenizer, GreedySearch(), compute=compute, length_ratio=length_ratio)
        translations = [nbest[0] for nbest in translator.translate(sources)]
        return translations, bleu([best.text for best in translations], references, language).value

    return translate
