"""Validation: the loss on the whole validation set, and scores of greedy translations of its beginning."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from nmt.data.token_batches import TokenBatches
from nmt.model import Seq2Seq
from nmt.search import GreedySearch
from nmt.system.compute import Compute
from nmt.text.scripts import language_by_script
from nmt.text.tokenizer import Tokenizer, Vocabulary
from nmt.training.loss import batch_loss
from nmt.translation.request import requests_of
from nmt.translation.translator import Translator
from nmt.translation.types import Translation, Views
from nmt.translation.views import view_all


class Figures(NamedTuple):
    """Scores of greedy translations, 0 to 100: BLEU, exact matches in per cent, and chrF if BLEU is not meaningful."""

    bleu: float
    exact: float = 0.0
    chrf: float | None = None

    @property
    def score(self) -> float:
        """The score for selecting the best model."""
        return self.bleu if self.chrf is None else self.chrf

    def entries(self) -> dict[str, float]:
        """The measured scores by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.2f}" if self.chrf is None else f"chrF {self.chrf:.2f}, exact {self.exact:.1f} %"


Translate = Callable[[Seq2Seq], tuple[list[Translation], Figures]]
Look = Callable[[Seq2Seq, Sequence[Translation]], Sequence[Views | None]]


def look_at(samples: int, tokenizer: Tokenizer, compute: Compute) -> Look:
    """A function that returns views of the first `samples` translations, for models with self-attention."""

    def look(model: Seq2Seq, translations: Sequence[Translation]) -> Sequence[Views | None]:
        if not (model.encoder.heads or model.decoder.self_heads):
            return ()
        return view_all(model, tokenizer, translations[:samples], compute)

    return look


class Validated(NamedTuple):
    """The mean negative log-likelihood of a target token (`loss`), the translations and their scores.

    `views` are the attention views of the first translations; () if not requested.
    """

    loss: float
    figures: Figures
    translations: list[Translation]
    views: Sequence[Views | None] = ()

    @property
    def perplexity(self) -> float:
        """The exponential of the loss, kept finite."""
        return math.exp(min(self.loss, 50.0))


class Validation:
    """Measures perplexity on `batches`, and scores with `translate`, which returns translations and their scores."""

    def __init__(self, batches: TokenBatches, translate: Translate, compute: Compute, look: Look | None = None) -> None:
        """`look` returns views of the first translations, for pictures of self-attention."""
        self.batches, self.translate, self.compute, self.look = batches, translate, compute, look

    def __call__(self, model: Seq2Seq) -> Validated:
        """Measure a model without dropout, then restore its mode."""
        training = model.training
        model.eval()
        negative_log_likelihood, tokens = 0.0, 0
        with torch.inference_mode():
            for batch in self.batches.epoch(0):
                with self.compute.autocast():
                    loss = batch_loss(model, batch.to(self.compute.device))
                negative_log_likelihood += loss.negative_log_likelihood.item()
                tokens += loss.tokens
        finite = math.isfinite(negative_log_likelihood)  # else the model cannot translate
        translations, figures = self.translate(model) if finite else ([], Figures(0.0))
        views = self.look(model, translations) if finite and self.look is not None else ()
        model.train(training)
        return Validated(negative_log_likelihood / max(tokens, 1), figures, translations, views)


def in_case_of(vocabulary: Vocabulary, references: Sequence[str]) -> Sequence[str]:
    """The references, in lower case if the tokenizer folds case, because the model then cannot write capitals."""
    return [line.lower() for line in references] if vocabulary.folds_case else references


def judged_by(references: Sequence[str], language: str) -> tuple[str, list[str]]:
    """The metric that suits a validation set, "bleu" or "chrf", and notes for the user."""
    from nmt.evaluation import metrics

    lengths = metrics.reference_lengths(references, language_by_script(references, language))
    metric = metrics.judge(lengths)
    blind = metrics.blind_note("The validation set", metrics.short_share(lengths)) if metric == "chrf" else None
    tokenised = metrics.tokenised_note("The target side of the validation set", references)
    return metric, [note for note in (blind, tokenised) if note]


def greedy_scores(
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    tokenizer: Tokenizer,
    compute: Compute,
    length_ratio: float,
    contexts: Sequence[Sequence[str]] = (),
) -> Translate:
    """A function that translates `sources` greedily with a model and scores them against `references`.

    `contexts` are each source's previous sentences in its document, for models that see them.
    """
    from nmt.evaluation import metrics

    blind = judged_by(references, language)[0] == "chrf"
    language = language_by_script(references, language)
    references = in_case_of(tokenizer.target, references)

    def translate(model: Seq2Seq) -> tuple[list[Translation], Figures]:
        translator = Translator([model], tokenizer, GreedySearch(), compute=compute, length_ratio=length_ratio)
        translations = [nbest[0] for nbest in translator.translate(requests_of(sources, contexts))]
        texts = [best.text for best in translations]
        chrf = metrics.corpus_score("chrf", texts, references, language).value if blind else None
        bleu, exact = metrics.bleu(texts, references, language).value, metrics.exact_share(texts, references)
        return translations, Figures(bleu, exact, chrf)

    return translate
