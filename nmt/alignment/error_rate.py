"""Alignment error rate, precision and recall of predicted links against gold links."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt.links import GoldLinks, Link
from nmt.system.errors import UserError, check_parallel


class AlignmentScore(NamedTuple):
    """Agreement of predicted links with gold links, over a whole corpus (Och and Ney 2003, section 5).

    Attributes:
        aer: alignment error rate, from 0 to 1; less is better.
        precision: share of the predicted links that are sure or possible.
        recall: share of the sure links that are predicted.
    """

    aer: float
    precision: float
    recall: float


def against_gold(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldLinks]) -> AlignmentScore:
    """Alignment error rate, AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), counts summed over the corpus.

    Args:
        predicted: A, the predicted links of each sentence pair.
        gold: S, the sure links of each pair, and P, the possible links; sure links also count as possible.

    Returns:
        Error rate, precision and recall. Precision is 1 without predicted links; recall is NaN without sure
        links.

    Raises:
        UserError: the numbers of pairs differ, or there are neither predicted nor sure links.
    """
    check_parallel({"the alignment": len(predicted), "the gold": len(gold)})
    total = in_sure = in_possible = sures = 0
    for links_, (sure, possible) in zip(predicted, gold, strict=True):
        proposed = set(links_)
        total += len(proposed)
        sures += len(sure)
        in_sure += len(proposed & sure)
        in_possible += len(proposed & (possible | sure))
    if total + sures == 0:
        raise UserError("Neither the predicted nor the gold links hold a link: there is no error rate.")
    return AlignmentScore(
        aer=1 - (in_sure + in_possible) / (total + sures),
        precision=in_possible / total if total else 1.0,
        recall=in_sure / sures if sures else math.nan,
    )


def as_row(score: AlignmentScore) -> tuple[str, str, str]:
    """Error rate, precision and recall as text in per cent; "-" for a recall without sure links."""
    recall = "-" if math.isnan(score.recall) else f"{100 * score.recall:.1f} %"
    return f"{100 * score.aer:.1f} %", f"{100 * score.precision:.1f} %", recall
