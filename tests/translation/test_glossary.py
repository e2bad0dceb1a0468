"""A glossary: which words match, what search must say, and that every kind of model says it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.search import BeamSearch, GreedySearch
from nmt.system.errors import UserError
from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.translation.glossary import Entry, Glossary, constraints_of, uses
from nmt.translation.request import Request
from nmt.translation.shortlist import Shortlist
from nmt.translation.term_files import open_glossary, read_terms, terms_of
from nmt.translation.translator import Translator
from tests.catalogue import DECODERS
from tests.test_configs import tokenizer
from tests.text.test_spans import foreign
from tests.translation.test_shortlist import lexicon as small_lexicon
from tests.translation.test_translator import small

VOCABULARY = tokenizer("unigram").target
TERMS = Glossary(terms_of({"eins": "seven", "zwei drei": ["red house", "blue"]}), ("placeholders", "numbers"))
SENTENCES = ["eins zwei drei", "rot", "vier eins eins", "zwei drei und zwei", "rot {0}, 12 (%s)"]


def found(text: str, *terms: str, keep: tuple[str, ...] = ()) -> list[str]:
    glossary = Glossary(terms_of(dict.fromkeys(terms, "x")), keep)  # type: ignore[arg-type]
    return [text[match.begin : match.end] for match in glossary.find(text)]


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("Der Hund und der Hunderter", ["Hund"], ["Hund"]),
        ("HUND hund Hund", ["Hund"], ["Hund"]),  # a term with capitals matches as it is
        ("BANK Bank bank", ["bank"], ["BANK", "Bank", "bank"]),
        ("New York Times in New York", ["new york", "new york times", "york"], ["New York Times", "New York"]),
        ("(Hund), Hund.", ["Hund"], ["Hund", "Hund"]),
        ("E-Mail an uns", ["e-mail"], ["E-Mail"]),
        ("我爱猫和狗", ["猫"], ["猫"]),
        ("zwei\u00a0 drei", ["zwei drei"], ["zwei\u00a0 drei"]),
        ("Hündin", ["Hund"], []),
    ],
)
def test_terms_match_words_longest_first(text: str, terms: list[str], expected: list[str]) -> None:
    assert found(text, *terms) == expected


KEPT = ["{0}", "{name}", "{{x}}", "%s", "%(n)d", "%1$s", "$VAR", "${HOME}", "&nbsp;", "a@b.org", "`x = 1`",
        "https://a.org/b?c=1"]  # fmt: skip


@given(st.lists(st.sampled_from(KEPT), min_size=1, max_size=4))
def test_placeholders_are_found_where_they_stand(placeholders: list[str]) -> None:
    text = "".join(f"Wort {each}, 50 % " for each in placeholders)
    assert found(text, "wort", keep=("placeholders",)) == [
        each for placeholder in placeholders for each in ("Wort", placeholder)
    ]


def test_numbers_are_kept_if_asked_for() -> None:
    assert found("3 von 1.234,5 um 12:30, B2B.", keep=("numbers",)) == ["3", "1.234,5", "12:30"]
    with pytest.raises(UserError, match="keep=names: must be one of placeholders, numbers"):
        Glossary(keep=["names"])  # type: ignore[list-item]


def said(translator: Translator, requests: list[Request]) -> None:
    """Check that every translation of every request uses each of its terms, and no more often than the source."""
    for request, nbest in zip(requests, translator.translate(requests), strict=True):
        assert request.glossary is not None
        for translation in nbest:
            for use in uses(request.glossary, request.text, translation.text, VOCABULARY):
                assert use.span is not None, (request.text, translation.text)
            assert translation.text.startswith(request.prefix)
            if not translator.attends:  # attention may stand on another word
                for word, source in (("seven", "eins"), ("red house|blue", "zwei drei")):
                    wanted = len(re.findall(source, request.text))
                    assert not wanted or len(re.findall(rf"(?i)\b({word})\b", translation.text)) == wanted


@pytest.mark.long
@pytest.mark.parametrize("decoder", DECODERS)
def test_every_model_uses_the_terms(decoder: str) -> None:
    more = ["encoder=conv"] if decoder == "conv" else []
    more = ["encoder=transformer"] if decoder == "transformer" else more
    translator = Translator(
        [small(f"decoder={decoder}", *more)], tokenizer("unigram"), BeamSearch(3, nbest=2), weights=False
    )
    said(translator, [Request(sentence, glossary=TERMS) for sentence in SENTENCES])


def test_an_ensemble_with_prefixes_uses_the_terms_in_the_vocabulary_that_a_shortlist_leaves() -> None:
    models = [small("decoder=luong"), small("decoder=none")]
    search = BeamSearch(4)
    requests = [
        Request(sentence, prefix, glossary=TERMS) for sentence, prefix in zip(SENTENCES, ["", "four", "on", "tw", ""])
    ]
    said(Translator(models, tokenizer("unigram"), search), requests)
    shortlist = Shortlist(small_lexicon(), 1, VOCABULARY.size, joint=True)
    shortlist.translations = shortlist.translations[:1].repeat(VOCABULARY.size, 1)
    said(
        Translator(models, tokenizer("unigram"), search, shortlist=shortlist), [r._replace(prefix="") for r in requests]
    )


def test_lines_without_terms_are_translated_as_before() -> None:
    translator = Translator([small()], tokenizer("unigram"), BeamSearch(3))
    plain = list(translator.translate(SENTENCES))
    again = list(
        translator.translate([Request(sentence, glossary=Glossary([Entry(["x"], ["y"])])) for sentence in SENTENCES])
    )
    assert [(each[0].text, each[0].score) for each in plain] == [(each[0].text, each[0].score) for each in again]


def test_a_long_line_in_parts_uses_the_terms_of_each_part() -> None:
    translator = Translator([small()], tokenizer("unigram"), BeamSearch(3), max_source_length=6)
    said(translator, [Request("eins rot blau rot " * 6, glossary=Glossary(terms_of({"eins": "seven"})))])


def test_a_term_in_a_script_without_spaces_is_a_word_among_words() -> None:
    """It has no pieces but bytes here. Text in such a script has no spaces around it."""
    glossary = Glossary(terms_of({"eins": "上海"}))
    translator = Translator([small()], tokenizer("unigram"), BeamSearch(4))
    requests = [Request(sentence, glossary=glossary) for sentence in ("eins zwei drei", "rot eins blau", "vier eins")]
    for (best,) in translator.translate(requests):
        assert re.search(r"(?<!\w)上海(?!\w)", best.text), best.text
    (match,) = glossary.find("rot eins blau")
    rows = ["我爱上海的猫和狗", "他在北京看书写字", "明天天气很好", "这本书很有意思"] * 20
    unspaced = TokenizerTrainer("char", vocabulary_size=330).train(rows, rows)[0].target
    spans = [(0, 3), (4, 8), (9, 13), None]
    for vocabulary, whole in ((VOCABULARY, True), (unspaced, False)):
        (constraint,) = constraints_of([match], "rot eins blau", spans, vocabulary)
        assert constraint.whole is whole


def test_greedy_search_says_what_to_do() -> None:
    translator = Translator([small()], tokenizer("unigram"), GreedySearch())
    with pytest.raises(UserError, match="need beam search\\. Give search=beam"):
        list(translator.translate([Request("eins", glossary=TERMS)]))


def test_files_of_terms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table, sheet, base = tmp_path / "a.tsv", tmp_path / "a.csv", tmp_path / "a.tbx"
    table.write_text("# animals\n\nHund | Hunde\thound|hounds\tnoun\nKatze\tcat\n")
    assert [(each.sources, each.targets) for each in read_terms(table, ("de", "en"))] == [
        (["Hund", "Hunde"], ["hound", "hounds"]),
        (["Katze"], ["cat"]),
    ]
    assert capfd.readouterr().err.count("columns after the second one are not read") == 1
    sheet.write_text('source;target\n"Hund";"hound; dog"\n')
    assert [(each.sources, each.targets) for each in read_terms(sheet, ("de", "en"))] == [(["Hund"], ["hound; dog"])]
    sheet.write_text('eins;uno, uno\n"zwei, drei";due\nrot;crimson\n')
    assert [each.sources[0] for each in read_terms(sheet, ("de", "en"))] == ["eins", "zwei, drei", "rot"]
    assert terms_of({"Hund": "hound |", "Katze": ["", "cat"]}) == [
        (["Hund"], ["hound"], "glossary['Hund']"),
        (["Katze"], ["cat"], "glossary['Katze']"),
    ]
    with pytest.raises(UserError, match=r"glossary\['Hund'\]: a source and a target term are expected"):
        terms_of({"Hund": " | "})
    base.write_text(
        '<?xml version="1.0"?><!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd"><martif type="TBX"><text><body>'
        '<termEntry id="1"><langSet xml:lang="de-DE">'
        "<tig><term>Hund</term></tig><tig><term>Köter</term></tig></langSet>"
        '<langSet xml:lang="en"><tig><term>the\n hound</term></tig></langSet></termEntry>'
        '<termEntry id="2"><langSet xml:lang="fr"><tig><term>chat</term></tig></langSet></termEntry>'
        "</body></text></martif>"
    )
    for languages in (("de", "en_GB"), ("deu_Latn", "eng"), ("ger", "en-US")):
        assert [(each.sources, each.targets) for each in read_terms(base, languages)] == [
            (["Hund", "Köter"], ["the hound"])
        ]
    with pytest.raises(
        UserError, match="no terms from cs to en, the languages of the run\\. Its languages: de, en, fr"
    ):
        read_terms(base, ("cs", "en"))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "Hund\thound\nKatze\n", "line 2: a source and a target term are expected. Write a line as"),
        ("a.tsv", "Hund\t|\n", "line 1: a source and a target term"),
        ("a.tsv", "# nothing\n", "has no terms"),
        ("a.tsv", "Hund\thound\n\nHund\tdog\n", "line 3: 'Hund' is 'dog', but .*line 1 says 'hound'. Keep one"),
        ("a.csv", "Hund\n", "line 1: a source and a target term"),
        ("a.tbx", "<tbx>", "line 1: not well-formed XML"),
        ("a.tbx", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "line 1: declares an entity"),
        ("a.tbx", "<x>" * 60 + "</x>" * 60, "elements within 50 others"),
        ("a.tsv", "Hund\tمرحبا\n", "line 1: the model cannot write 'مرحبا'"),
    ],
)
def test_a_mistake_in_a_glossary_has_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    words = foreign("identity", byte_fallback=False) if "the model" in message else VOCABULARY
    with pytest.raises(UserError, match=message):
        open_glossary(path, None, words, ("de", "en"))
