"""The data of a run for a comparison: scores, statistics of its translations, links against gold.

`reader` reads them from files, `variants` compares them.
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

#: TER is not tested: counting its edits anew would take minutes for the runs of a sweep.
TESTED: tuple[Metric, ...] = ("bleu", "chrf")
SCORERS = {"bleu": significance.bleu_of, "chrf": significance.chrf_of}


def scorer_of(metric: str) -> Scorer:
    """The score of summed statistics; of a metric of another program the mean over sentences."""
    return SCORERS.get(metric, estimates.mean_of)


class WordFacts(NamedTuple):
    """Facts of a run about a word: its times in the training text (None: unknown) and its pieces."""

    times: int | None
    pieces: int


class ForcedReference(NamedTuple):
    """A reference under forced decoding.

    Attributes:
        line: of the split, from 1.
        log_probs: natural, of each word.
        links: (word of the source, word of the reference), from 0; None without attention.
        best: of each piece, the probability of the most probable piece there.
        right: of each piece, whether the reference has the most probable one.
    """

    line: int
    log_probs: Sequence[float]
    links: Sequence[Link] | None
    best: Sequence[float]
    right: Sequence[bool]


class RunOnSplit(NamedTuple):
    """One run on one split.

    Attributes:
        sources: the lines that were translated; None if a record was made without the text.
        references: the first reference of each, or None likewise.
        hypotheses: the translation of each.
        lengths: of the source lines.
        unit: of the lengths, "words" or "characters".
        scores: "bleu", "chrf", "ter" and further metrics with their signatures.
        counts: for each tested metric the sufficient statistics of each sentence, [N, S].
        measured: perplexity, entropy, speed (`scores.json`).
        attention_maps: weights of some references.
        origin: fingerprints that must be equal in runs that are compared on the split, by their name.
        measures: of each sentence (`nmt.evaluation.sentence_measures`), or empty.
        forced: the references under forced decoding, or empty.
        words: the facts about each word of "source" and of "target", or empty.
        source_language, target_language: codes.
        others: further references of each line, list by list.
        judged_by: the metric that can judge the split.
        exact: per cent of the translations that equal a reference, or None.
        of_data: whether it is a test set of the run's data; else a file, or `valid`.
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
    """The `counts` of a run's translations.

    Raises:
        UserError: they do not give the scores.
    """
    statistics: dict[str, Statistics] = {
        metric: metrics.statistics(metric, hypotheses, references, language, others) for metric in TESTED
    }
    check_counts(statistics, scores)
    return statistics


def check_counts(statistics: Mapping[str, Statistics], scores: Mapping[str, metrics.MetricScore]) -> None:
    """UserError if the sufficient statistics do not give the scores."""
    for metric, counts in statistics.items():
        value = float(SCORERS[metric](counts.sum(0)))
        if not abs(value - scores[metric].value) <= 0.01:  # NaN is no score either
            raise UserError(
                f"the translations have {metric.upper()} {value:.2f}, and {scores[metric].value:.2f} is written beside "
                f"them ({scores[metric].signature}). Score the run again."
            )


#: Measures of each head (`scores.json`), and what stands before the name of a head.
OF_HEADS = {"attention_entropy_by_head": "entropy of head ", "hidden_share_by_head": "share of zeros of head "}

#: Links read off the attention with the shift that was chosen.
ATTENTION = "attention"


class Alignment(NamedTuple):
    """The alignment error rates of one run against gold links.

    Attributes:
        gold: name of the gold.
        pairs: sentence pairs of the gold.
        rates: in per cent, for each way to read links off the run.
        attention: the way that was selected for the attention without looking at this gold; None without attention.
        shift_from: the origin of its shift: "validation" (links), "default" (there were none), "set" (by hand) or,
            without attention, "".
        without_model: the rates of baselines that need no model, by name.
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
        name: of the run.
        seed: of the run.
        settings: {dotted key: value} without the seed and the data.
        origin: fingerprints that must be equal in runs that are compared on any split, by their name.
        training: "minutes", "train_tokens_per_second", "peak_memory" and so on, where known.
        history: the validations.
        splits: the results on each split.
        aligned: error rates against gold links, by a name that only the same measurement has.
        training_machine: such as "cpu, 1 threads"; "" if unknown.
        trained_on: phrases about the training text and the libraries, as far as they are known.
        code: hashes of the programs that trained the run, several if it was resumed with another; empty if unknown.
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
