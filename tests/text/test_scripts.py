"""Scripts of text: which one it is, what is counted in it, and which language it cannot be."""

import pytest

from nmt.data.languages import sample
from nmt.text.scripts import LANGUAGES, language_by_script, lengths, script_of, unspaced

SENTENCES = {
    "Latin": "Ich fahre morgen nach Tokio.",
    "Cyrillic": "Завтра я еду в Токио.",
    "Han": "我明天去东京。",
    "Japanese": "明日は東京に行きます。",
    "Hangul": "나는 내일 도쿄에 간다.",
    "Thai": "พรุ่งนี้ฉันจะไปโตเกียว",
    "Arabic": "سأذهب إلى طوكيو غدا",
    "": "2024-05-03 ...",
}


@pytest.mark.parametrize("script", SENTENCES)
def test_the_script_of_a_sentence(script: str) -> None:
    assert script_of([SENTENCES[script]]) == script


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("ＡＢＣ", "Latin"),
        ("ﾄｳｷｮｳ", "Japanese"),
        ("人々", "Han"),
        ("我在 Microsoft 工作。", "Han"),  # half of the letters
        ("He lives in a town called Xi'an (西安).", "Latin"),
    ],
)
def test_special_and_mixed_text(text: str, script: str) -> None:
    assert script_of([text]) == script


def test_a_language_needs_few_letters_to_be_confirmed() -> None:
    text = ["She studied at Massachusetts Institute in 波士顿和纽约城"]
    assert (script_of(text), script_of(text, "zh"), script_of(text, "ja")) == ("Latin", "Han", "Japanese")


@pytest.mark.parametrize(
    ("script", "language", "expected"),
    [
        ("Han", "zh_Hant", "zh_Hant"),
        ("Han", "cmn", "cmn"),
        ("Han", "ja", "ja"),  # all in kanji
        ("Han", "target", "zh"),
        ("Han", "en", "zh"),
        ("Japanese", "zh", "ja"),
        ("Thai", "target", "th"),
        ("Latin", "target", "target"),
        ("Latin", "zh", "und"),  # pinyin, perhaps
        ("Cyrillic", "sr", "sr"),
        ("", "zh", "zh"),
    ],
)
def test_a_language_is_held_against_the_script(script: str, language: str, expected: str) -> None:
    assert language_by_script([SENTENCES[script]], language) == expected


@pytest.mark.parametrize("code", ["zh_Hant", "th", "lo", "km", "my", "ko"])
def test_a_date_in_a_language_is_recognised(code: str) -> None:
    target = [sample(code)]
    assert language_by_script(target, code) == code
    assert language_by_script(target, "en").split("_")[0] in (code.split("_")[0], "zh")
    assert script_of(target) in LANGUAGES


def test_what_is_counted() -> None:
    assert lengths([SENTENCES["Han"], "我。"]) == ([7, 2], "characters", 1.7)
    assert lengths([SENTENCES["Japanese"]]).counts == [11]
    assert lengths([SENTENCES["Thai"]]).unit == "characters"
    assert lengths(["我 明天 去 东京"]) == ([4], "words", 1), "segmented"
    assert lengths([SENTENCES["Hangul"], "가"]) == ([4, 1], "words", 1)
    assert lengths([SENTENCES["Latin"], ""]) == ([5, 0], "words", 1)
    assert lengths([]) == ([], "words", 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我爱你", True),
        ("我 爱 你", False),  # somebody has segmented it
        ("今日は東京タワーに行きました。", True),
        ("ฉันรักคุณ", True),
        ("I like 东京", False),
        ("나는 너를 사랑해", False),
        ("ولد صغير", False),
        ("", False),
    ],
)
def test_which_text_has_no_spaces(text: str, expected: bool) -> None:
    assert unspaced(text) == expected
