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
from nmt.text.tokenizer import Tokenizer, Vocabulary
from nmt.training.loss import batch_loss
from nmt.translation.looking import view_all
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, Views

Translate = Callable[[Seq2Seq], tuple[list[Translation], float]]
Look = Callable[[Seq2Seq, Sequence[Translation]], Sequence[Views | None]]


def not_at_all(model: Seq2Seq, translations: Sequence[Translation]) -> Sequence[Views | None]:
    """No views."""
    del model, translations
    return ()


def look_at(samples: int, tokenizer: Tokenizer, compute: Compute) -> Look:
    """A function that returns views of the first `samples` translations, of models with self-attention."""

    def look(model: Seq2Seq, translations: Sequence[Translation]) -> Sequence[Views | None]:
        if not (model.encoder.heads or model.decoder.self_heads):
            return ()
        return view_all(model, tokenizer, translations[:samples], compute)

    return look


class Validated(NamedTuple):
    """The mean negative log-likelihood of a target token, BLEU, and the translations that it was computed on.

    `views` are those of the first translations, if anybody asked for them.
    """

    loss: float
    bleu: float
    translations: list[Translation]
    views: Sequence[Views | None] = ()

    @property
    def perplexity(self) -> float:
        """The exponential of the loss, kept finite."""
        return math.exp(min(self.loss, 50.0))


class Validation:
    """Measures perplexity on `batches`, and BLEU with `translate`, which returns translations and their BLEU."""

    def __init__(self, batches: TokenBatches, translate: Translate, compute: Compute, look: Look = not_at_all) -> None:
        """`look` returns views of the first translations, for pictures of self-attention."""
        self.batches, self.translate, self.compute, self.look = batches, translate, compute, look

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
        views = self.look(model, translations)
        model.train(training)
        return Validated(negative_log_likelihood / max(tokens, 1), bleu, translations, views)


def in_case_of(vocabulary: Vocabulary, references: Sequence[str]) -> Sequence[str]:
    """References in lower case if the tokenizer folds case: capitals that no model can write would hide the best."""
    return [line.lower() for line in references] if vocabulary.folds_case else references


def greedy_bleu(
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    tokenizer: Tokenizer,
    compute: Compute,
    length_ratio: float,
    contexts: Sequence[Sequence[str]] = (),
) -> Translate:
    """A function that translates `sources` greedily with a model and scores them against `references`.

    `contexts` are the sentences before each source in its document, for models that see them.
    """
    from nmt.evaluation.metrics import bleu

    language = language_by_script(references, language)
    references = in_case_of(tokenizer.target, references)

    def translate(model: Seq2Seq) -> tuple[list[Translation], float]:
        translator = Translator([model], tokenizer, GreedySearch(), compute=compute, length_ratio=length_ratio)
        translations = [nbest[0] for nbest in translator.translate(sources, contexts=contexts)]
        return translations, bleu([best.text for best in translations], references, language).value

    return translate
