"""The data of a run for a comparison: scores, statistics of its translations, alignment error rates.

`reader` reads the data from files, and `variants` compares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt.compare import estimates, significance
from nmt.compare.variance import Scorer, Statistics
from nmt.evaluation import metrics
from nmt.evaluation.metrics import Metric
from nmt.evaluation.references import AttentionMap
from nmt.links import Link
from nmt.system.errors import UserError

#: TER is not tested: recounting its edits would take minutes for the runs of a sweep.
TESTED: tuple[Metric, ...] = ("bleu", "chrf")
SCORERS = {"bleu": significance.bleu_of, "chrf": significance.chrf_of}


def scorer_of(metric: str) -> Scorer:
    """The function from summed statistics to the score; the mean over sentences for an external metric."""
    return SCORERS.get(metric, estimates.mean_of)


class WordFacts(NamedTuple):
    """A word's count in the training text of a run (None if unknown), and its number of pieces."""

    times: int | None
    pieces: int


class ForcedReference(NamedTuple):
    """A reference under forced decoding.

    Attributes:
        line: line number in the split, from 1.
        log_probs: natural log-probability of each word.
        links: (source word, reference word) indices, from 0; None without attention.
        best: for each step, the probability of the most probable piece.
        right: for each step, whether the reference has the most probable piece.
    """

    line: int
    log_probs: Sequence[float]
    links: Sequence[Link] | None
    best: Sequence[float]
    right: Sequence[bool]


class RunOnSplit(NamedTuple):
    """One run on one split.

    Attributes:
        sources: the source lines; None if a record was made without the text.
        references: the first reference of each line; None if a record was made without the text.
        hypotheses: the translation of each line.
        lengths: lengths of the source lines.
        unit: unit of the lengths, "words" or "characters".
        scores: "bleu", "chrf", "ter" and external metrics, with their signatures.
        counts: for each tested metric, the sufficient statistics [N, S] of the sentences.
        measured: perplexity, entropy, speed and other figures of `scores.json`.
        attention_maps: attention maps of some sentence pairs, with the reference as target.
        origin: {name: fingerprint}; runs can be compared on the split only if these are equal.
        measures: the measures of each sentence (`nmt.evaluation.sentence_measures`), or empty.
        forced: the references under forced decoding, or empty.
        words: {"source" or "target": {word: its facts}}, or empty.
        source_language, target_language: language codes.
        others: further references; each list has one for each line.
        judged_by: the metric used for the verdict on the split.
        exact: percentage of translations that equal a reference, or None.
        of_data: whether the split is a test set of the run's data, not a file or `valid`.
    """

    sources: list[str] | None
    references: list[str] | None
    hypotheses: list[str]
    lengths: list[int]
    unit: str
    scores: Mapping[str, metrics.MetricScore]
    counts: Mapping[str, Statistics]
    measured: Mapping[str, Any]
    attention_maps: Sequence[AttentionMap]
    origin: Mapping[str, str] = {}
    measures: Sequence[Mapping[str, Any]] = ()
    forced: Sequence[ForcedReference] = ()
    words: Mapping[str, Mapping[str, WordFacts]] = {}
    source_language: str = ""
    target_language: str = ""
    others: Sequence[list[str]] = ()
    judged_by: Metric = "bleu"
    exact: float | None = None
    of_data: bool = True


def counted(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    scores: Mapping[str, metrics.MetricScore],
    others: Sequence[Sequence[str]] = (),
) -> dict[str, Statistics]:
    """The sufficient statistics of a run's translations, as in `RunOnSplit.counts`.

    Raises:
        UserError: the statistics do not give the scores.
    """
    statistics: dict[str, Statistics] = {
        metric: metrics.statistics(metric, hypotheses, references, language, others) for metric in TESTED
    }
    check_counts(statistics, scores)
    return statistics


def check_counts(statistics: Mapping[str, Statistics], scores: Mapping[str, metrics.MetricScore]) -> None:
    """Raise UserError if the sufficient statistics do not give the scores."""
    for metric, counts in statistics.items():
        value = float(SCORERS[metric](counts.sum(0)))
        if not abs(value - scores[metric].value) <= 0.01:  # also false for NaN
            raise UserError(
                f"the translations have {metric.upper()} {value:.2f}, and {scores[metric].value:.2f} is written beside "
                f"them ({scores[metric].signature}). Score the run again."
            )


#: Measures of each head in `scores.json`, and the prefix of the head's name in the figures.
OF_HEADS = {"attention_entropy_by_head": "entropy of head ", "hidden_share_by_head": "share of zeros of head "}

#: Name of the links extracted from the attention with the selected head and shift.
ATTENTION = "attention"


class Alignment(NamedTuple):
    """The alignment error rates of one run against gold links.

    Attributes:
        gold: name of the gold links.
        pairs: number of sentence pairs with gold links.
        rates: {link extraction method: alignment error rate in per cent}.
        attention: the method selected for the attention without using these gold links; None without attention.
        shift_from: the origin of the attention's shift: "validation" (selected on validation links), "default" (no such
            links), "set" (by hand), or "" without attention.
        without_model: {baseline without a model: its rate in per cent}.
    """

    gold: str
    pairs: int
    rates: Mapping[str, float]
    attention: str | None
    shift_from: str
    without_model: Mapping[str, float] = {}


class Result(NamedTuple):
    """The data of one run.

    Attributes:
        name: name of the run.
        seed: seed of the run.
        settings: {dotted key: value} without the seed and the data.
        origin: {name: fingerprint}; runs can be compared only if these are equal.
        training: "minutes", "train_tokens_per_second", "peak_memory" and other known figures of the training.
        history: the figures of each validation.
        splits: {name of a split: the run's data on the split}.
        aligned: alignment error rates; runs measured on the same gold links share the key.
        training_machine: such as "cpu, 1 threads"; "" if unknown.
        trained_on: phrases on the training text and the libraries, if known.
        code: hashes of the code that trained the run, several if the code changed before resuming; empty if unknown.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    origin: Mapping[str, str]
    training: Mapping[str, float]
    history: Sequence[Mapping[str, float]]
    splits: Mapping[str, RunOnSplit]
    aligned: Mapping[str, Alignment] = {}
    training_machine: str = ""
    trained_on: Sequence[str] = ()
    code: Sequence[str] = ()
