"""Metrics against figures done by hand, and against the official Multi30k references."""

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.evaluation import metrics
from nmt.system.errors import UserError


def test_identical_text_is_perfect() -> None:
    lines = ["Ein Hund läuft durch das Gras.", "Zwei Männer sitzen auf einer Bank."]
    scores = metrics.score(lines, lines, "de")
    assert scores.sentences == 2
    assert scores.bleu.value == pytest.approx(100)
    assert scores.chrf.value == pytest.approx(100)
    assert scores.ter.value == 0
    assert scores.tokenised_bleu.value == pytest.approx(100)


def test_bleu_by_hand_with_a_brevity_penalty() -> None:
    # Every n-gram of the hypothesis stands in the reference: precisions 1, 5 words against 7: exp(1 - 7/5).
    found = metrics.bleu(["a b c d e"], ["a b c d e f g"], "en")
    assert found.value == pytest.approx(100 * math.exp(1 - 7 / 5))


def test_bleu_by_hand_with_precisions() -> None:
    # "a b c d x" against "a b c d e": 4/5 words, 3/4 pairs, 2/3 triples, 1/2 quadruples, no penalty.
    found = metrics.bleu(["a b c d x"], ["a b c d e"], "en")
    assert found.value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


def test_bleu_is_of_the_corpus_not_the_mean_of_sentences() -> None:
    # Counts are summed: words 5+4 of 10, pairs 4+3 of 8, triples 3+2 of 6, quadruples 2+1 of 4.
    found = metrics.bleu(["a b c d e", "a b c d x"], ["a b c d e", "a b c d e"], "en")
    assert found.value == pytest.approx(100 * (9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25)


def test_ter_by_hand() -> None:
    # One substitution in five reference words.
    assert metrics.score(["a b c d x"], ["a b c d e"], "en").ter.value == pytest.approx(20)


def test_many_lines_are_scored_as_sacrebleu_does_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    references = [f"Ein Hund und {row} Katzen laufen durch das hohe Gras der Wiese {row % 7}." for row in range(200)]
    hypotheses = [line.replace("Katzen", "Hunde") if row % 3 else line[:40] for row, line in enumerate(references)]
    monkeypatch.setattr(metrics, "_MANY", 20)
    tracemalloc.start()
    scores = metrics.score(hypotheses, references, "de")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = {BLEU: scores.bleu, CHRF: scores.chrf, TER: scores.ter}
    for metric, ours in found.items():
        theirs = metric()
        assert ours.value == pytest.approx(theirs.corpus_score(hypotheses, [references]).score, abs=1e-12)
        assert ours.signature == str(theirs.get_signature())
    assert peak < 200 * 10_000  # bytes; 24,000 a sentence if all references are counted at once


def test_case_counts_except_in_the_tokenised_figure() -> None:
    scores = metrics.score(["EIN HUND LÄUFT DURCH GRAS."], ["ein hund läuft durch gras."], "de")
    assert scores.bleu.value < 50
    assert scores.tokenised_bleu.value == pytest.approx(100)
    assert "case:mixed" in scores.bleu.signature


def test_signatures_name_tokenizer_and_version() -> None:
    scores = metrics.score(["Ein Hund."], ["Ein Hund."], "de")
    for part in ("nrefs:1", "tok:13a", "smooth:exp", "version:"):
        assert part in scores.bleu.signature
    assert "nc:6" in scores.chrf.signature
    assert "tok:tercom" in scores.ter.signature
    assert "tok:none" in scores.tokenised_bleu.signature
    assert scores.tokenised_bleu.signature.endswith("prep:lc.norm.tok.moses.de")


@pytest.mark.parametrize(
    ("language", "tokenizers"),
    [
        ("de", {"13a"}),
        ("zh", {"zh"}),
        ("zh_Hans_CN", {"zh"}),
        ("zh-TW", {"zh"}),
        ("ja", {"ja-mecab", "char"}),
        ("ko", {"char"}),
        ("th", {"char"}),
    ],
)
def test_tokenizer_follows_the_target_language(language: str, tokenizers: set[str]) -> None:
    assert metrics.bleu_tokenizer(language) in tokenizers


def test_chinese_is_scored_by_character_and_says_so() -> None:
    # 13a would see one word a sentence and give no credit for four of five characters.
    scores = metrics.score(["我爱你们吗"], ["我爱你们吧"], "zh")
    assert scores.bleu.value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert scores.ter.value == pytest.approx(20)
    assert "tok:zh" in scores.bleu.signature
    assert "asian:yes" in scores.ter.signature


def test_unequal_numbers_of_lines_are_named() -> None:
    with pytest.raises(UserError, match="the translation has 3 lines and the reference has 2 lines"):
        metrics.score(["a", "b", "c"], ["a", "b"], "en")


def test_nothing_to_score() -> None:
    with pytest.raises(UserError, match="nothing to score"):
        metrics.score([], [], "en")


def test_empty_lines_are_scored() -> None:
    scores = metrics.score(["", "a b c d"], ["", "a b c d"], "en")
    assert scores.sentences == 2
    assert scores.bleu.value == pytest.approx(100)


def test_table_lines_up_and_prints_a_shared_signature_once() -> None:
    scores = metrics.score(["a b c d e"], ["a b c d e f g"], "en")
    table = metrics.as_table({"test_2016": scores, "x": scores}).splitlines()
    assert len({len(line) for line in table[:4]}) == 1
    assert table[0].split()[:3] == ["split", "sentences", "BLEU"]
    assert table[2].split()[:3] == ["test_2016", "1", "67.03"]
    assert [line for line in table if "tok:13a" in line] == [f"BLEU: {scores.bleu.signature}"]


def test_table_names_the_split_of_a_signature_that_differs() -> None:
    table = metrics.as_table({"a": metrics.score(["x"], ["x"], "de"), "b": metrics.score(["x"], ["x"], "zh")})
    assert "BLEU (a): " in table
    assert "BLEU (b): " in table


def test_json_keeps_value_and_signature_together() -> None:
    scores = metrics.score(["a b c d e"], ["a b c d e"], "en")
    assert metrics.as_json(scores)["bleu"] == {"value": scores.bleu.value, "signature": scores.bleu.signature}


# Texts that BLEU cannot judge, and several references

WORDS = ["zero", "onetwo", "two-three", "a b"]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_chrf_judges_where_most_references_are_shorter_than_an_ngram(lengths: list[int]) -> None:
    known = [length for length in lengths if length]
    short = [length for length in known if length < 4]
    assert (metrics.judge(lengths) == "chrf") == (2 * len(short) > len(known))
    assert metrics.short_share(lengths) == pytest.approx(100 * len(short) / max(1, len(known)))


def test_a_word_list_is_judged_by_chrf_and_exact_matches() -> None:
    scores = metrics.score([*WORDS[:3], "a c"], WORDS, "en")
    assert (scores.bleu.value, scores.judged_by, scores.exact, scores.short) == (0, "chrf", 75, 100)
    assert scores.chrf.value > 80
    table = metrics.as_table({"words": scores}).splitlines()
    assert table[0].split()[2:4] == ["chrF", "BLEU"]
    assert table[2].split()[-1] == "75.0"
    known = metrics.as_json(scores)
    assert (known["judged_by"], known["exact_matches"], known["short_references"]) == ("chrf", 75, 100)


def test_tokens_are_counted_as_bleu_does() -> None:
    assert metrics.reference_lengths(["20:00, ja.", "", "a b c d"], "de") == [6, 0, 4]
    assert metrics.reference_lengths(["我爱你们"], "zh") == [4]


LINES = st.lists(st.text("abcde .", min_size=1, max_size=20), min_size=3, max_size=3)


@given(LINES, LINES, LINES)
def test_several_references_are_scored_as_sacrebleu_does(texts: list[str], first: list[str], second: list[str]) -> None:
    """A reference that is empty beside another one is missing."""
    scores = metrics.score(texts, first, "en", [second])
    streams = [[line if line.strip() else None for line in lines] for lines in (first, second)]
    for row, known in enumerate(zip(*streams, strict=True)):
        if known == (None, None):
            streams[0][row] = first[row]
    for metric, ours in ((BLEU(), scores.bleu), (CHRF(), scores.chrf), (TER(), scores.ter)):
        assert ours.value == pytest.approx(metric.corpus_score(texts, streams).score, abs=1e-9)  # type: ignore[arg-type]
        assert ours.signature == str(metric.get_signature())
    equal = [one in (a, b) for one, a, b in zip(texts, first, second, strict=True) if a.strip() and b.strip()]
    assert scores.exact >= 100 * sum(equal) / 3 - 1e-9


def test_an_exact_match_equals_any_reference() -> None:
    assert metrics.exact_share(["a", "b", "c", ""], ["a", "x", "x", "y"], ["x", "b", "x", ""]) == 50
    assert metrics.sentence_chrf("abcdef", "uvwxyz", "abcdef") == 100


def test_unequal_references_are_named() -> None:
    with pytest.raises(UserError, match="the reference has 1 line"):
        metrics.score(["a", "b"], ["a", "b"], "en", [["a"]])


def test_sacrebleu_says_nothing_and_tokenised_text_gets_one_note(caplog: pytest.LogCaptureFixture) -> None:
    lines = [f"Der Hund sieht {number} Katzen ." for number in range(120)]
    metrics.score(lines, lines, "de")
    assert caplog.text == ""
    note = metrics.tokenised_note("tok.de", [*lines, "Und ?", "Nein!"])
    assert note is not None
    assert note.startswith("tok.de looks tokenised: 98 % of its lines end in ' .'.")
    assert metrics.tokenised_note("x", [line.replace(" .", ".") for line in lines]) is None
    assert metrics.tokenised_note("x", []) is None
