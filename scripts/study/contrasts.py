"""The contrasts of the study and their significance tests, which are those of `nmt.compare` for a sweep.

p-values of a group are corrected by Holm. The page names the contrasts that were chosen after their data were seen.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt.compare.families import OneSetting, corrected
from nmt.compare.significance import DifferenceTest, Noise, Runs, bleu_of, holm, joined
from nmt.compare.variance import UNKNOWN, Deviations, PairNoise
from study.records import Run
from study.rows import BUDGETS, COPIES, NORMALISERS

ALPHA = 0.05
DEFAULT = "luong-general"  # the attention and wiring of nmt.train without overrides
#: The test sets that are tested together, without the long lines, which are sentences of the first set.
SPLITS = ("test_2016_flickr", "test_2017_flickr")


class Experiment(NamedTuple):
    """Runs that are compared with each other: their label, the reference row, and the test sets."""

    label: str
    reference: str = DEFAULT
    splits: Sequence[str] = SPLITS


#: Studies by name. Studies without records are left out everywhere.
STUDIES = {
    "short": Experiment("4 epochs"),
    "converged": Experiment("16 epochs"),
    "back": Experiment("16 epochs, en-de"),
    "normalisers": Experiment("4 epochs, normalisers"),
    "again": Experiment("4 epochs, later"),
    "normalisers-transformer": Experiment("4 epochs, Transformer", "transformer-softmax"),
    "joined": Experiment("4 epochs, some captions joined"),
    "tanaka": Experiment("4 epochs, ja-en", splits=("held_out", "test")),
    "french": Experiment("4 epochs, en-fr"),
    "ended": Experiment("4 epochs and 1", "ended-plain"),
    **{name: Experiment(f"{epochs} epochs, same effort", "recurrent") for name, epochs in BUDGETS.items()},
}
#: Studies with the same text and four epochs. The standard deviation of runs is estimated from the rows of all of them.
POOLED = ("short", "again", "ended", "normalisers", "normalisers-transformer")
Rows = Mapping[str, Sequence[Run]]
#: For each row, microseconds per target token in "training" and "translating", in rounds in which all rows took turns.
Costs = Mapping[str, Mapping[str, list[float]]]
#: Millions of target tokens per epoch: the median over the runs.
TOKENS = 0.5


class Pair(NamedTuple):
    """A contrast: two rows of a study, of which `first` is subtracted from `second`."""

    study: str
    first: str
    second: str

    @property
    def label(self) -> str:
        """The pair in words."""
        return f"{self.second} against {self.first}, {STUDIES[self.study].label}"


def _pairs(study: str, first: str, *others: str) -> list[Pair]:
    return [Pair(study, first, other) for other in others]


GROUPS: Mapping[str, Sequence[Pair]] = {
    "Attention at all": [*_pairs("converged", "none", DEFAULT, "bahdanau"), *_pairs("short", "none", DEFAULT)],
    "When the decoder asks": [
        *(pair for study in ("short", "converged", "back") for pair in _pairs(study, DEFAULT, "conditional")),
        *(pair for study in ("tanaka", "french", "joined") for pair in _pairs(study, DEFAULT, "conditional")),
        *_pairs("converged", "bahdanau", "conditional", DEFAULT),
        *_pairs("short", "bahdanau", "conditional", "luong-additive"),
    ],
    "What is fed back": [
        *_pairs("converged", "luong-general-nofeed", DEFAULT),
        *_pairs("back", "luong-general-nofeed", DEFAULT),
        *_pairs("short", "luong-additive-nofeed", "luong-additive"),
    ],
    "Score": [
        *_pairs("short", DEFAULT, "luong-additive", "luong-cosine", "luong-dot", "luong-dot-projected"),
        *_pairs("converged", DEFAULT, "luong-dot-projected"),
        *_pairs("back", DEFAULT, "luong-dot-projected"),
        *_pairs("short", "luong-dot-projected", "luong-scaled_dot-projected"),
    ],
    "Window": [
        *_pairs("short", DEFAULT, *(f"luong-local_{kind}-{radius}" for kind in "mp" for radius in (4, 2))),
        *_pairs("again", DEFAULT, "luong-local_p-10"),
    ],
    "Normaliser": [
        *_pairs("normalisers", DEFAULT, *(f"{DEFAULT}-{name}" for name in NORMALISERS)),
        *_pairs("normalisers-transformer", "transformer-softmax", *(f"transformer-{name}" for name in NORMALISERS)),
    ],
    "Heads of a recurrent decoder": [
        pair
        for stem in ("bahdanau", "luong-dot", "luong-scaled_dot")
        for pair in _pairs("short", f"{stem}-projected", f"{stem}-heads-2", f"{stem}-heads-4")
    ],
    "Coverage": [
        *_pairs("short", "bahdanau", "coverage"),
        *_pairs("ended", "ended-plain", "ended-coverage", "ended-coverage-loss"),
    ],
    "Hard read": [
        *_pairs("short", "hard-soft-half", "hard"),
        *_pairs("again", "luong-additive-nofeed", "hard-enumerate", "enumerate-heaviest-beam"),
        *_pairs("again", "enumerate-heaviest-beam", "enumerate-k4-beam", "hard-enumerate"),
        *_pairs("again", "soft-greedy", "enumerate-heaviest-greedy", "enumerate-marginal-greedy"),
    ],
    "Family, one recipe": [
        *_pairs("converged", DEFAULT, "gru-transformer", "transformer"),
        *_pairs("converged", "transformer", "gru-transformer"),
        *_pairs("short", DEFAULT, "conv", "gru-transformer", "transformer-luong", "transformer"),
        *_pairs("tanaka", DEFAULT, "transformer"),
    ],
    "Family, same effort": [pair for study in BUDGETS for pair in _pairs(study, "recurrent", "transformer")],
}


def tests_of(study: str, rows: Mapping[str, Rows], splits: Sequence[str]) -> "Tests":
    """The tests for a study; `rows` has the rows of all studies, for pooling."""
    others = [rows.get(name, {}) for name in POOLED if study in POOLED and name != study]
    beside = {name: runs for other in others for name, runs in other.items() if name not in rows[study]}
    return Tests(rows[study], splits, {name: runs for name, runs in beside.items() if name not in COPIES})


class Tests:
    """Significance tests between the rows of a study, on several test sets together or on one."""

    def __init__(self, rows: Rows, splits: Sequence[str] = SPLITS, beside: Rows | None = None) -> None:
        """`beside` has further rows, which are used only to estimate the standard deviation of runs."""
        self.names = list(rows)
        texts = [
            [
                Runs(np.stack([run.counts[split] for run in runs]), [run.seed for run in runs], copied=name in COPIES)
                for name, runs in {**rows, **(beside or {})}.items()
            ]
            for split in splits
        ]
        self._noise = Noise(joined(texts), bleu_of)
        self.bleu = dict(zip(self.names, map(statistics.fmean, self._noise.scores), strict=False))

    def between(self, first: str, second: str) -> DifferenceTest:
        """The test of the difference `second` - `first`."""
        return self._noise.between(self.names.index(first), self.names.index(second))

    def against(self, name: str = DEFAULT) -> dict[str, OneSetting]:
        """The tests of all other rows against the row `name`, corrected together."""
        others = [other for other in self.names if other != name]
        at = self.names.index(name)
        pairs = [(at, self.names.index(other)) for other in others]
        return dict(zip(others, corrected(pairs, [self.between(name, other) for other in others], ALPHA), strict=True))


def of_group(tests: Mapping[str, Tests], pairs: Sequence[Pair]) -> list[OneSetting]:
    """The tests of a group of contrasts, in the same order, corrected together."""
    tested = [tests[pair.study].between(pair.first, pair.second) for pair in pairs]
    return corrected([(0, 0)] * len(pairs), tested, ALPHA)


def after_equal_time(rows: Rows, costs: Costs, first: str, second: str) -> tuple[float, PairNoise]:
    """The difference in validation BLEU at the last time that both rows reached, and its standard error over seeds.

    An epoch has the same tokens in all rows, so its time is proportional to the cost of a token. BLEU is interpolated
    between validations, and from 0 before the first. The standard deviation over seeds is taken at the last validation.
    """
    prices = {name: statistics.median(costs[name]["training"]) for name in (first, second)}
    moment = min(run.history[-1]["epoch"] * price for name, price in prices.items() for run in rows[name])
    ends = (statistics.fmean(_bleu_after(run, moment / prices[name]) for run in rows[name]) for name in prices)
    deviations = Deviations([[run.history[-1]["valid_bleu"] for run in runs] for runs in rows.values()])
    names = list(rows)
    start, end = ends
    return end - start, PairNoise(UNKNOWN, deviations.of_difference(names.index(first), names.index(second)))


def _bleu_after(run: Run, epochs: float) -> float:
    moments = [0.0, *(entry["epoch"] for entry in run.history)]
    return float(np.interp(epochs, moments, [0.0, *(entry["valid_bleu"] for entry in run.history)]))


def link_rates(rows: Rows, gold: str, way: str) -> dict[str, list[float]]:
    """The alignment error rates of each row with attention, one for each seed.

    `way` is "attention" (with the chosen shift), "saliency", or "diagonal", a baseline without a model.
    """
    rates: dict[str, list[float]] = {}
    for name, runs in rows.items():
        for links in (links for run in runs for links in run.links if links["gold"] == gold and links["attention"]):
            known = {**links["rates"], **links["without_model"], "attention": links["rates"][links["attention"]]}
            if way in known:
                rates.setdefault(name, []).append(known[way])
    return rates


def link_differences(rows: Rows, gold: str, way: str) -> list[tuple[str, float, float]]:
    """For each row, the error rate of attention minus that of another way, and its p (t over seeds, Holm)."""
    weights, others = link_rates(rows, gold, "attention"), link_rates(rows, gold, way)
    names = [name for name in weights if len(others.get(name, [])) == len(weights[name])]
    values = [[one - other for one, other in zip(weights[name], others[name], strict=True)] for name in names]
    deviations, means = Deviations(values), [statistics.fmean(each) for each in values]
    p_values = holm([PairNoise(UNKNOWN, deviations.of_mean(at)).p(mean) for at, mean in enumerate(means)])
    return list(zip(names, means, p_values, strict=True))
