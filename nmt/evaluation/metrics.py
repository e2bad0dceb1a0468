"""BLEU, chrF and TER of translations. No other file imports sacreBLEU.

Every figure has the signature of its metric: only figures with equal signatures are comparable. Texts are scored
detokenised and canonical (`nmt.text.canonical`), as a reader sees them. Lower-cased tokenised BLEU is added for
comparisons with published Multi30k figures. `judge` selects the metric for a text: BLEU is not usable if most lines
are shorter than its longest n-gram.
"""

import importlib.util
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.alignment.splitters import moses
from nmt.drawing.layout import plain_table
from nmt.system.errors import UserError, check_parallel
from nmt.text.canonical import canonical
from nmt.text.scripts import LANGUAGES, base_language, script_of_language

# sacreBLEU tokenizers for scripts in which 13a would find one word per sentence. Korean spaces separate phrases.
_BLEU_TOKENIZERS = dict.fromkeys(LANGUAGES, "char") | {"Han": "zh", "Japanese": "ja-mecab"}
_ASIAN = {"Han", "Japanese", "Hangul"}
#: Number of sentences that are counted at a time.
_MANY = 500
Metric = Literal["bleu", "chrf"]
TITLES: Mapping[str, str] = {"bleu": "BLEU", "chrf": "chrF"}
#: Length of BLEU's longest n-gram, in tokens.
ORDER = 4
_TOKENISED = 10  # minimum number of lines that end in " ." for a text to look tokenised

# sacreBLEU's warnings name parameters that no user can set. `tokenised_note` replaces them.
logging.getLogger("sacrebleu").setLevel(logging.ERROR)


class MetricScore(NamedTuple):
    """One figure with sacreBLEU's signature: tokenizer, case, smoothing, version.

    BLEU and chrF range from 0 to 100; TER is in per cent, and less is better.
    """

    value: float
    signature: str


class Scores(NamedTuple):
    """All figures of one test set.

    Attributes:
        sentences: number of scored lines.
        bleu: corpus BLEU of the detokenised text (Papineni et al. 2002; Post 2018).
        chrf: chrF2 (Popovic 2015).
        ter: translation edit rate (Snover et al. 2006); less is better.
        tokenised_bleu: BLEU of lower-cased, normalised, tokenised text, for published figures only.
        exact: per cent of the translations that equal one of their references.
        short: per cent of the references with fewer tokens than BLEU's longest n-gram.
        judged_by: the metric that judges this text (`judge`).
    """

    sentences: int
    bleu: MetricScore
    chrf: MetricScore
    ter: MetricScore
    tokenised_bleu: MetricScore
    exact: float
    short: float
    judged_by: Metric


def bleu_tokenizer(language: str) -> str:
    """The sacreBLEU tokenizer of a language: "13a", or one for its script ("zh", "ja-mecab" if installed, "char")."""
    name = _BLEU_TOKENIZERS.get(script_of_language(language), "13a")
    if name == "ja-mecab" and not all(importlib.util.find_spec(part) for part in ("MeCab", "ipadic")):
        return "char"
    return name


def _check(hypotheses: Sequence[str], *references: Sequence[str]) -> None:
    for lines in references:
        check_parallel({"the translation": len(hypotheses), "the reference": len(lines)})
    if not hypotheses:
        raise UserError("There is nothing to score: the text has no lines. Give a file with at least one line.")


def _score(metric: BLEU | CHRF | TER, hypotheses: Sequence[str], *references: Sequence[str]) -> MetricScore:
    # The signature includes the number of references only after scoring.
    value = metric._aggregate_and_compute(_counted(metric, hypotheses, *references)).score
    return MetricScore(float(value), str(metric.get_signature()))


def _counted(metric: BLEU | CHRF | TER, hypotheses: Sequence[str], *references: Sequence[str]) -> list[Any]:
    """The sufficient statistics of each sentence, whose sum gives the corpus score.

    Sentences are counted in blocks, because sacreBLEU would hold the n-grams of all references in memory: 20 kB a
    sentence for chrF. The private methods used here are those of sacreBLEU's significance tests.
    """
    counts: list[Any] = []
    numbers = set()
    for first in range(0, len(hypotheses), _MANY):
        part = slice(first, first + _MANY)
        rows = [_known(list(map(canonical, row))) for row in zip(*(lines[part] for lines in references))]
        streams = [[row[at] if at < len(row) else None for row in rows] for at in range(len(references))]
        counts += metric._extract_corpus_statistics(list(map(canonical, hypotheses[part])), streams)  # type: ignore[arg-type]
        numbers |= {len(row) for row in rows}
    metric.num_refs = numbers.pop() if len(numbers) == 1 else -1  # until here, it is the last block's number
    return counts


def _known(of_line: Sequence[str]) -> Sequence[str]:
    """The references of a line without empty ones, which are missing; the first one if all are empty."""
    return [text for text in of_line if text.strip()] or of_line[:1]


def corpus_score(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    others: Sequence[Sequence[str]] = (),
) -> MetricScore:
    """Corpus BLEU or chrF2 of detokenised, cased text.

    Args:
        metric: "bleu" or "chrf"; chrF is also usable for lines with few words, because it counts characters.
        hypotheses: translations.
        references: the references.
        target_language: code of the target language; selects BLEU's tokenizer, which the signature names.
        others: further references of the same lines.

    Raises:
        UserError: the texts have different lengths, or there is nothing to score.
    """
    _check(hypotheses, references, *others)
    return _score(_metric(metric, target_language), hypotheses, references, *others)


def bleu(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> MetricScore:
    """Corpus BLEU, used for validation in training; see `corpus_score`."""
    return corpus_score("bleu", hypotheses, references, target_language)


def _metric(metric: Metric, target_language: str) -> BLEU | CHRF:
    return CHRF() if metric == "chrf" else BLEU(tokenize=bleu_tokenizer(target_language))


def reference_lengths(references: Sequence[str], target_language: str) -> list[int]:
    """The number of tokens of each reference, as BLEU counts them."""
    tokenizer = BLEU(tokenize=bleu_tokenizer(target_language)).tokenizer
    return [len(tokenizer(line.rstrip()).split()) for line in references]


def short_share(lengths: Iterable[int]) -> float:
    """The percentage of references that are shorter than BLEU's longest n-gram.

    `lengths` are numbers of tokens; empty references are ignored.
    """
    known = [length for length in lengths if length]
    return 100 * sum(length < ORDER for length in known) / max(1, len(known))


def judge(lengths: Iterable[int]) -> Metric:
    """The metric for texts whose references have these numbers of tokens: chrF if most have fewer than four, else BLEU.

    BLEU averages the precisions of one to four tokens, so any translation of shorter lines has BLEU 0.
    """
    return "chrf" if short_share(lengths) > 50 else "bleu"


def blind_note(name: str, short: float) -> str:
    """A note that BLEU cannot judge a text, with the percentage `short` of short references."""
    return (
        f"{name}: {short:.0f} % of the references have fewer than {ORDER} tokens, which BLEU cannot judge. "
        f"Judged by chrF and exact matches instead."
    )


def tokenised_note(name: str, references: Sequence[str]) -> str | None:
    """A note that references look tokenised; None if they do not."""
    ends = sum(line.rstrip().endswith(".") for line in references)
    apart = sum(line.rstrip().endswith(" .") for line in references)
    if apart < _TOKENISED or 2 * apart < ends:
        return None
    return (
        f"{name} looks tokenised: {100 * apart / len(references):.0f} % of its lines end in ' .'. "
        f"BLEU is comparable only with BLEU of other tokenised text."
    )


def exact_share(hypotheses: Sequence[str], *references: Sequence[str]) -> float:
    """The percentage of translations that equal one of their references."""
    equal = sum(text in _known(of_line) for text, *of_line in zip(hypotheses, *references, strict=True))
    return 100 * equal / max(1, len(hypotheses))


def statistics(
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    others: Sequence[Sequence[str]] = (),
) -> npt.NDArray[np.float64]:
    """Sufficient statistics of each sentence, as sacreBLEU counts them: the corpus score is a function of their sum.

    Arguments and errors are those of `corpus_score`.

    Returns:
        [N, S] counts. For BLEU (S = 10): two lengths, four counts of matching n-grams, four counts of all n-grams. For
        chrF (S = 18): for each of six orders, the number of n-grams in the hypothesis, in the reference and in both.
    """
    _check(hypotheses, references, *others)
    return np.array(_counted(_metric(metric, target_language), hypotheses, references, *others), dtype=np.float64)


def sentence_chrf(hypothesis: str, *references: str) -> float:
    """chrF2 of one sentence, from 0 to 100, for ranking sentences. Do not average it."""
    return float(sacrebleu.sentence_chrf(canonical(hypothesis), _known(list(map(canonical, references)))).score)


def tokenised_lowercase_bleu(hypotheses: Sequence[str], language: str, *references: Sequence[str]) -> MetricScore:
    """BLEU of lower-cased, normalised, tokenised text: only for comparisons with published Multi30k figures.

    Both sides are prepared by `moses(language)`, and sacreBLEU does not tokenise (`tok:none`). This preparation is
    appended to sacreBLEU's signature.

    Raises:
        UserError: the texts have different lengths, or there is nothing to score.
    """
    _check(hypotheses, *references)
    prepare = moses(language)
    metric = BLEU(tokenize="none")
    prepared = ([prepare(line) for line in lines] for lines in references)
    score = _score(metric, [prepare(line) for line in hypotheses], *prepared)
    return score._replace(signature=score.signature + f"|prep:lc.norm.tok.moses.{base_language(language)}")


def score(
    hypotheses: Sequence[str], references: Sequence[str], target_language: str, others: Sequence[Sequence[str]] = ()
) -> Scores:
    """Score one test set with every metric.

    Args:
        hypotheses: detokenised translations.
        references: the detokenised references.
        target_language: code of the target language ("de", "zh_Hans"). Text without spaces is split into characters
            (Chinese by sacreBLEU's rule, Japanese by MeCab if it is installed), and TER edits characters; the
            signatures record this.
        others: further references of the same lines.

    Raises:
        UserError: the texts have different lengths, or there is nothing to score.
    """
    texts = references, *others
    asian = script_of_language(target_language) in _ASIAN
    lengths = [max(of_line) for of_line in zip(*(reference_lengths(lines, target_language) for lines in texts))]
    return Scores(
        sentences=len(hypotheses),
        bleu=corpus_score("bleu", hypotheses, references, target_language, others),
        chrf=corpus_score("chrf", hypotheses, references, target_language, others),
        # TER's Asian support does nothing unless it also normalises.
        ter=_score(TER(normalized=asian, asian_support=asian), hypotheses, *texts),
        tokenised_bleu=tokenised_lowercase_bleu(hypotheses, target_language, *texts),
        exact=exact_share(hypotheses, *texts),
        short=short_share(lengths),
        judged_by=judge(lengths),
    )


LOWER = "BLEU, lower-cased and tokenised"
_COLUMNS = (("BLEU", "bleu"), ("chrF", "chrf"), ("TER", "ter"), (LOWER, "tokenised_bleu"))


def columns(scores: Iterable[Scores]) -> list[tuple[str, str]]:
    """The titles and fields of the metrics; the metric that judges these texts comes first."""
    first = "chrf" if any(each.judged_by == "chrf" for each in scores) else "bleu"
    return sorted(_COLUMNS, key=lambda column: column[1] != first)


def as_table(scores: Mapping[str, Scores]) -> str:
    """A plain-text table with one row per split, and the signatures below.

    A signature that all splits share is printed once.
    """
    fields = columns(scores.values())
    header = ["split", "sentences", *(title for title, _ in fields), "exact, %"]
    rows = [
        [split, str(row.sentences), *(f"{getattr(row, field).value:.2f}" for _, field in fields), f"{row.exact:.1f}"]
        for split, row in scores.items()
    ]
    lines = [plain_table(header, rows), ""]
    for title, field in fields:
        signatures = {split: getattr(row, field).signature for split, row in scores.items()}
        if len(set(signatures.values())) == 1:
            lines.append(f"{title}: {next(iter(signatures.values()))}")
        else:
            lines += [f"{title} ({split}): {signature}" for split, signature in signatures.items()]
    lines.append(f"TER: less is better. {LOWER}: for published figures only. Exact: translations equal to a reference.")
    return "\n".join(lines)


def as_json(scores: Scores) -> dict[str, object]:
    """The scores as an object for `json.dumps`: values with signatures, and the metric that judges the text."""
    figures: dict[str, object] = {field: getattr(scores, field)._asdict() for _, field in _COLUMNS}
    rest = {"exact_matches": scores.exact, "short_references": scores.short, "judged_by": scores.judged_by}
    return {"sentences": scores.sentences, **figures, **rest}
