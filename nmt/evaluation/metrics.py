"""Translations and references -> BLEU, chrF, TER. The only file that imports sacreBLEU.

Every figure has the signature of its metric: two figures may be compared only if their signatures are equal. Texts are
scored detokenised and canonical (`nmt.text.canonical`), as a reader sees them. Lower-cased tokenised BLEU is added for
comparisons with published Multi30k figures.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.alignment.splitting import moses
from nmt.drawing.layout import plain_table
from nmt.errors import UserError, check_parallel
from nmt.text.canonical import canonical
from nmt.text.scripts import LANGUAGES, base_language, script_of_language

# sacreBLEU tokenizers by script, because 13a would see one word per sentence. Korean spaces separate phrases.
_BLEU_TOKENIZERS = dict.fromkeys(LANGUAGES, "char") | {"Han": "zh", "Japanese": "ja-mecab"}
_ASIAN = {"Han", "Japanese", "Hangul"}
#: Sentences that are counted at a time.
_MANY = 500


class MetricScore(NamedTuple):
    """One figure with its signature.

    Attributes:
        value: the metric on its usual scale (BLEU and chrF 0 to 100, TER in per cent, where less is better).
        signature: sacreBLEU's signature: tokenizer, case, smoothing, version.
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
    """

    sentences: int
    bleu: MetricScore
    chrf: MetricScore
    ter: MetricScore
    tokenised_bleu: MetricScore


def bleu_tokenizer(language: str) -> str:
    """The sacreBLEU tokenizer of a language: "13a", or one for its script ("zh", "ja-mecab" if installed, "char")."""
    name = _BLEU_TOKENIZERS.get(script_of_language(language), "13a")
    if name == "ja-mecab" and not all(importlib.util.find_spec(part) for part in ("MeCab", "ipadic")):
        return "char"
    return name


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    check_parallel({"the translation": len(hypotheses), "the reference": len(references)})
    if not hypotheses:
        raise UserError("There is nothing to score: the text has no lines. Give a file with at least one line.")


def _score(metric: BLEU | CHRF | TER, hypotheses: Sequence[str], references: Sequence[str]) -> MetricScore:
    # The signature knows the number of references only once the metric has scored.
    value = metric._aggregate_and_compute(_counted(metric, hypotheses, references)).score
    return MetricScore(float(value), str(metric.get_signature()))


def _counted(metric: BLEU | CHRF | TER, hypotheses: Sequence[str], references: Sequence[str]) -> list[Any]:
    """The statistics of each sentence, as `corpus_score` sums them.

    sacreBLEU would hold the n-grams of all references at once: 20 kB a sentence for chrF. Its significance tests call
    these methods. They have no public names.
    """
    found: list[Any] = []
    for first in range(0, len(hypotheses), _MANY):
        texts = ([canonical(line) for line in side[first : first + _MANY]] for side in (hypotheses, references))
        found += metric._extract_corpus_statistics(next(texts), [next(texts)])
    return found


def bleu(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> MetricScore:
    """Corpus BLEU of detokenised text, cased. Validation and early stopping use it.

    Args:
        hypotheses: translations.
        references: their references.
        target_language: code of the target language; selects the tokenizer, which the signature names.

    Raises:
        UserError: the two have different lengths, or there is nothing to score.
    """
    _check(hypotheses, references)
    return _score(_bleu(target_language), hypotheses, references)


def _bleu(target_language: str) -> BLEU:
    return BLEU(tokenize=bleu_tokenizer(target_language))


def statistics(
    metric: Literal["bleu", "chrf"], hypotheses: Sequence[str], references: Sequence[str], target_language: str
) -> npt.NDArray[np.float64]:
    """Sufficient statistics of each sentence, as sacreBLEU counts them: the corpus score is a function of their sum.

    Args:
        metric: "bleu" or "chrf", with the settings of `score`.
        hypotheses: translations.
        references: their references.
        target_language: code of the target language.

    Returns:
        [N, S]: for BLEU two lengths, four counts of matching n-grams, four of all (S = 10); for chrF, for each
        of six orders, the n-grams of hypothesis, reference and both (S = 18).

    Raises:
        UserError: the two have different lengths, or there is nothing to score.
    """
    _check(hypotheses, references)
    scorer = _bleu(target_language) if metric == "bleu" else CHRF()
    return np.array(_counted(scorer, hypotheses, references), dtype=np.float64)


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """chrF2 of one sentence, 0 to 100, for ranking sentences. Do not average it."""
    return float(sacrebleu.sentence_chrf(canonical(hypothesis), [canonical(reference)]).score)


def tokenised_lowercase_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> MetricScore:
    """BLEU of lower-cased, normalised, tokenised text: only for comparisons with published Multi30k figures.

    Both sides go through `moses(language)`, and sacreBLEU does not tokenise (`tok:none`). This recipe is appended to
    sacreBLEU's signature.

    Raises:
        UserError: the two have different lengths, or there is nothing to score.
    """
    _check(hypotheses, references)
    prepare = moses(language)
    # force: do not warn that the text is tokenised.
    metric = BLEU(tokenize="none", force=True)
    score = _score(metric, [prepare(line) for line in hypotheses], [prepare(line) for line in references])
    return score._replace(signature=score.signature + f"|prep:lc.norm.tok.moses.{base_language(language)}")


def score(hypotheses: Sequence[str], references: Sequence[str], target_language: str) -> Scores:
    """Score one test set with every metric.

    Args:
        hypotheses: detokenised translations.
        references: their detokenised references.
        target_language: code of the target language ("de", "zh_Hans"). Text without spaces is split into characters
            (Chinese by sacreBLEU's rule, Japanese by MeCab if it is installed), and TER edits characters. The
            signatures say so.

    Raises:
        UserError: the two have different lengths, or there is nothing to score.
    """
    _check(hypotheses, references)
    asian = script_of_language(target_language) in _ASIAN
    return Scores(
        sentences=len(hypotheses),
        bleu=bleu(hypotheses, references, target_language),
        chrf=_score(CHRF(), hypotheses, references),
        # TER's Asian support does nothing unless it also normalises.
        ter=_score(TER(normalized=asian, asian_support=asian), hypotheses, references),
        tokenised_bleu=tokenised_lowercase_bleu(hypotheses, references, target_language),
    )


_COLUMNS = (("BLEU", "bleu"), ("chrF", "chrf"), ("TER", "ter"), ("BLEU lc tok", "tokenised_bleu"))


def as_table(scores: Mapping[str, Scores]) -> str:
    """A plain-text table with one row per split, and the signatures below.

    A signature that all splits share is printed once.
    """
    header = ["split", "sentences", *(title for title, _ in _COLUMNS)]
    rows = [
        [split, str(row.sentences), *(f"{getattr(row, field).value:.2f}" for _, field in _COLUMNS)]
        for split, row in scores.items()
    ]
    lines = [plain_table(header, rows), ""]
    for title, field in _COLUMNS:
        signatures = {split: getattr(row, field).signature for split, row in scores.items()}
        if len(set(signatures.values())) == 1:
            lines.append(f"{title}: {next(iter(signatures.values()))}")
        else:
            lines += [f"{title} ({split}): {signature}" for split, signature in signatures.items()]
    lines.append("TER: less is better. BLEU lc tok: lower-cased and tokenised, for published figures only.")
    return "\n".join(lines)


def as_json(scores: Scores) -> dict[str, object]:
    """The scores for `json.dumps`: every value with its signature."""
    figures: dict[str, object] = {field: getattr(scores, field)._asdict() for _, field in _COLUMNS}
    return {"sentences": scores.sentences, **figures}
