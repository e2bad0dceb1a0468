"""Models for the cases, built, trained and used as by the commands of nmt."""

import contextlib
from pathlib import Path

import numpy as np
from omegaconf import DictConfig

from benchmarking import corpus
from benchmarking.clocks import Enough
from benchmarking.settings import Json, Place, Sizes, Wiring, overrides
from nmt.build.parts import assemble, build_optimizer, build_schedule, build_trainer
from nmt.config.composition import compose
from nmt.data.pairs import length_ratio, lexicon_of
from nmt.data.token_batches import TokenBatches
from nmt.model import Seq2Seq
from nmt.runs.run import Run
from nmt.search import Search
from nmt.system.compute import Compute
from nmt.system.limits import checked
from nmt.text.tokenizer import load_tokenizer
from nmt.training.learner import Learner
from nmt.training.loop import TrainingLoop
from nmt.training.validation import Figures, Validation
from nmt.translation.shortlist import Shortlist
from nmt.translation.translator import EXTRA_LENGTH, Translator


def composed(wiring: Wiring, sizes: Sizes, batch: int, longest: int) -> DictConfig:
    """The configuration of the matched model."""
    return compose("train", overrides(wiring, sizes, batch, longest))


def built(config: DictConfig, sizes: Sizes, place: Place) -> Seq2Seq:
    """A model of this configuration, on its device."""
    return assemble(config, sizes.pieces, sizes.pieces, True).to(place.device)


def take(place: Place) -> Compute:
    """Set up the threads and the device of `place`."""
    return checked(Compute.choose, place._asdict())()


def run_trainer(config: DictConfig, model: Seq2Seq, feed: TokenBatches, compute: Compute, folder: Path) -> None:
    """Run the project's training loop until the orders end."""
    settings = build_trainer(config)
    learner = Learner(model, build_optimizer(config, model), build_schedule(config), settings, compute)
    validation = Validation(feed, lambda _: ([], Figures(0.0)), compute)
    loop = TrainingLoop(settings, learner, feed, validation, Run(folder))
    with contextlib.suppress(Enough):
        loop.run(seed=1)


def translator_of(
    model: Seq2Seq,
    folder: Path,
    compute: Compute,
    search: Search,
    batch: int = 64,
    shortlist: int = 0,
) -> Translator:
    """The translator that `nmt.translate` would use for a run trained on the pairs in `folder`."""
    tokenizer, pairs = load_tokenizer(folder), corpus.read_pairs(folder)
    lexicon = lexicon_of(pairs, tokenizer.source.size) if shortlist else None
    return Translator(
        [model],
        tokenizer,
        search,
        compute=compute,
        batch_sentences=batch,
        length_ratio=length_ratio(pairs, EXTRA_LENGTH),
        weights=False,  # as for output without links and pictures
        shortlist=Shortlist(lexicon, shortlist, tokenizer.target.size, tokenizer.joint) if lexicon else None,
    )


def scores_of(folder: Path, texts: list[str]) -> Json:
    """Cased, detokenised BLEU of translations, and their mean number of pieces without the end of sentence."""
    from nmt.evaluation.metrics import bleu

    if not texts:
        return {"bleu": 0.0, "pieces_per_sentence": 0.0}
    references = corpus.read_text(folder, "test", corpus.TARGET)[: len(texts)]
    pieces = load_tokenizer(folder).target.encode(texts)
    return {
        "bleu": float(bleu(texts, references, corpus.TARGET).value),
        "pieces_per_sentence": float(np.mean([len(sentence) for sentence in pieces])),
    }
