"""What a comparison takes of each run: its scores, its translations as counts, its links against gold.

Knows no files; `variants` compares them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt.comparison import significance
from nmt.comparison.variance import Statistics
from nmt.errors import UserError
from nmt.evaluation import metrics
from nmt.evaluation.metrics import Metric
from nmt.evaluation.references import AttentionMap
from nmt.links import Link

#: TER is not tested: counting its edits anew would take minutes for the runs of a sweep.
TESTED: tuple[Metric, ...] = ("bleu", "chrf")


SCORERS = {"bleu": significance.bleu_of, "chrf": significance.chrf_of}


class Known(NamedTuple):
    """What a word is to a run: how often its training text has it (None: unknown), and the number of its pieces."""

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


class Scored(NamedTuple):
    """One run on one split.

    Attributes:
        sources: the lines that were translated; None where a record was made without the text.
        references: the reference of each, or None; the first one of several.
        hypotheses: the translation of each.
        lengths: of the source lines.
        unit: of the lengths, "words" or "characters".
        scores: "bleu", "chrf" and "ter" with their signatures.
        counts: for each tested metric the sufficient statistics of each sentence, [N, S].
        measured: perplexity, entropy, speed (`scores.json`).
        attention_maps: weights of some references.
        origin: what must be equal in runs that are compared on the split, in words -> a fingerprint of it.
        measures: of each sentence (`nmt.evaluation.sentences`); empty in a record without text.
        forced: the references under forced decoding; empty in a record without text.
        words: "source" and "target": what each of their words is to the run; empty likewise.
        source_language: code of the source language.
        others: further references of each line, list by list.
        judged_by: the metric that can judge the split.
        exact: per cent of the translations that equal a reference; None if it was not measured.
    """

    sources: list[str] | None
    references: list[str] | None
    hypotheses: list[str]
    lengths: list[int]
    unit: str
    scores: Mapping[str, metrics.MetricScore]
    counts: Mapping[Metric, Statistics]
    measured: Mapping[str, Any]
    attention_maps: Sequence[AttentionMap]
    origin: Mapping[str, str] = {}
    measures: Sequence[Mapping[str, Any]] = ()
    forced: Sequence[ForcedReference] = ()
    words: Mapping[str, Mapping[str, Known]] = {}
    source_language: str = ""
    others: Sequence[list[str]] = ()
    judged_by: Metric = "bleu"
    exact: float | None = None


def counted(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    scores: Mapping[str, metrics.MetricScore],
    others: Sequence[Sequence[str]] = (),
) -> dict[Metric, Statistics]:
    """The `counts` of a run's translations.

    Raises:
        UserError: they do not give the scores.
    """
    statistics = {metric: metrics.statistics(metric, hypotheses, references, language, others) for metric in TESTED}
    check_counts(statistics, scores)
    return statistics


def check_counts(statistics: Mapping[Metric, Statistics], scores: Mapping[str, metrics.MetricScore]) -> None:
    """UserError if the sufficient statistics do not give the scores."""
    for metric, counts in statistics.items():
        value = float(SCORERS[metric](counts.sum(0)))
        if not abs(value - scores[metric].value) <= 0.01:  # NaN is no score either
            raise UserError(
                f"the translations have {metric.upper()} {value:.2f}, and {scores[metric].value:.2f} is written beside "
                f"them ({scores[metric].signature}). Score the run again."
            )


#: Before the name of a head: the entropy of its weights.
HEAD_ENTROPY = "entropy of head "

#: Links read off the attention with the shift that was chosen.
ATTENTION = "attention"


class Aligned(NamedTuple):
    """One run's links against gold links.

    Attributes:
        gold: what the gold is called.
        pairs: sentence pairs of the gold.
        rates: alignment error rate in per cent for each way to read links off the run.
        attention: the way that stands for the attention, without looking at this gold; None without attention.
        shift_from: how its shift was found: "validation" (links), "default" (there were none), "set" (by hand) or,
            without attention, "".
        without_model: alignment error rate in per cent of links that no run made, by their name.
    """

    gold: str
    pairs: int
    rates: Mapping[str, float]
    attention: str | None
    shift_from: str
    without_model: Mapping[str, float] = {}


class Result(NamedTuple):
    """All of one run.

    Attributes:
        name: of the run.
        seed: of the run.
        settings: {dotted key: value} of all that makes the run but its seed and its data.
        origin: what must be equal in comparable runs whatever the split, in words -> a fingerprint of it.
        training: "minutes", "train_tokens_per_second", "peak_memory" and so on, where known.
        history: its validations.
        splits: the results.
        aligned: what is known against gold links, by a name that only the same measurement has.
        training_machine: where it was trained, such as "cpu, 1 threads"; "" where that is not known.
        trained_on: the text that it learnt from, and with what, as far as that is known, in words.
        code: hashes of the programs that trained it, more than one if it was resumed with another; empty if unknown.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    origin: Mapping[str, str]
    training: Mapping[str, float]
    history: Sequence[Mapping[str, float]]
    splits: Mapping[str, Scored]
    aligned: Mapping[str, Aligned] = {}
    training_machine: str = ""
    trained_on: Sequence[str] = ()
    code: Sequence[str] = ()
