"""LibreTranslate's clients: the requests that they send, read in their sources, and whatever else somebody may send."""

import json
import re
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from nmt.alignment.linker import Linker
from tests.serve.conftest import pool_of, served_by
from tests.small import call, pairs, translation_of, words, write_lines

TEXTS = [source for source, _ in pairs(20)]
FORM = {"content-type": "application/x-www-form-urlencoded"}
CODES = {"source": "de", "target": "en"}


def translated(to: TestClient, **fields: Any) -> Any:
    answer = to.post("/translate", json={**CODES, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


def multipart(to: TestClient, path: str, *fields: tuple[str, str], **headers: str) -> Any:
    """The answer to a form as curl -F and FormData of browsers send it."""
    lines = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    content = "".join([*lines, "--b--\r\n"] if fields else []).encode()
    return to.post(path, content=content, headers={"content-type": "multipart/form-data; boundary=b", **headers})


def test_weblate_finds_both_languages_and_translates_units(both: TestClient) -> None:
    codes = [language["code"] for language in both.get("/languages").json()]
    assert codes == ["de", "en"]
    body = {"api_key": "", "q": TEXTS, "source": codes[0], "target": codes[1]}
    answer = both.post("/translate", json=body).json()
    assert answer == {"translatedText": [translation_of(text) for text in TEXTS]}


def test_mastodon_translates_a_post(both: TestClient) -> None:
    targets = {
        each["code"]: [code for code in each["targets"] if code != each["code"]]
        for each in both.get("/languages").json()
    }
    assert targets == {"de": ["en"], "en": []}
    mention = '<span class="h-card"><a href="https://m.example/@a" class="u-url mention">@<span>zwei</span></a></span>'
    post = f'<p>{mention} {TEXTS[0]}</p><p>{TEXTS[3]}<br /><span translate="no">:drei:</span></p><p>👍</p>'
    body = {"q": [post, TEXTS[1]], "source": "auto", "target": "en", "format": "html", "api_key": None}
    answer = both.post("/translate", json=body).json()
    expected = post.replace(TEXTS[0], translation_of(TEXTS[0])).replace(TEXTS[3], translation_of(TEXTS[3]))
    assert answer["translatedText"] == [expected, translation_of(TEXTS[1])]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["de", "de"]


@pytest.mark.parametrize("wrap", ["<p>{} <b>{}</b>{}</p>", '<a href="x">{}</a> <i>{}</i>{}', "{} <img src=x>{}{}<br>"])
def test_a_sentence_with_inline_tags_is_translated_as_a_whole(both: TestClient, wrap: str) -> None:
    texts = [text.split() for text in TEXTS if len(text.split()) > 2]
    given = [wrap.format(first, second, "".join(f" {word}" for word in rest)) for first, second, *rest in texts]
    answers = translated(both, q=given, format="html")
    plain = [re.sub("<[^>]*>", "", answer) for answer in answers]
    assert [" ".join(each.split()) for each in plain] == [translation_of(" ".join(text)) for text in texts]
    assert [sorted(re.findall("<[^>]*>", answer)) for answer in answers] == [
        sorted(re.findall("<[^>]*>", text)) for text in given
    ]


def test_tags_stand_where_the_command_puts_them(
    both: TestClient, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the shares of links and the run's lexicon, and not by the heaviest weights alone; plain text needs none."""
    texts = [text.split() for text in TEXTS if len(text.split()) > 3]
    lines = [" ".join([first, f"<b>{second} {third}</b>", *rest]) for first, second, third, *rest in texts]
    source = write_lines(tmp_path / "in", lines)
    assert call("translate", f"run={trained}", f"input={source}", f"output={tmp_path / 'out'}", "tags=html") == 0
    expected = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    assert translated(both, q=lines, format="html") == expected
    with monkeypatch.context() as patch:
        patch.setattr(Linker, "links", lambda self, best: [(0, len(best.text.split()) - 1)])
        (answer,) = translated(both, q=["<b>eins</b> zwei drei"], format="html")
        assert re.search("<b>[a-z]+</b>$", answer), "the links of the linker"
        patch.setattr(Linker, "links", lambda *_: pytest.fail("a text without tags needs no links"))
        assert translated(both, q=TEXTS[0]) == translated(both, q=TEXTS[0], format="html")


def test_a_model_without_attention_keeps_tags(unattentive: Path) -> None:
    with served_by(pool_of(unattentive)) as opened:
        answer = translated(opened, q="eins <b>zwei</b> drei <i>vier</i>", format="html")
        plain = opened.post("/translate", json={"q": "eins zwei drei vier", **CODES}).json()["translatedText"]
    assert re.findall("</?[bi]>", answer) == ["<b>", "</b>", "<i>", "</i>"]
    assert re.sub("<[^>]*>", "", answer) == plain


def test_libretranslate_sh_sends_multipart_forms_and_posts_for_languages(both: TestClient) -> None:
    fields = (("q", TEXTS[0]), ("source", "de"), ("target", "en"), ("api_key", "x"))
    answer = multipart(both, "/translate", *fields).json()
    assert answer == {"translatedText": translation_of(TEXTS[0])}
    assert multipart(both, "/detect", ("q", TEXTS[0])).json()[0]["language"] == "de"
    assert both.post("/languages").json() == both.get("/languages").json()


def test_linguist_sends_form_data_from_an_extension(both: TestClient) -> None:
    fields = (("q", TEXTS[0]), ("source", "auto"), ("target", "en"), ("format", "text"), ("api_key", ""))
    answer = multipart(both, "/translate", *fields, origin="moz-extension://a")
    assert answer.json()["translatedText"] == translation_of(TEXTS[0])


def test_crow_translate_detects_then_translates(both: TestClient) -> None:
    text = urllib.parse.quote(TEXTS[0])
    code = both.post("/detect", content=f"&q={text}&api_key=", headers=FORM).json()[0]["language"]
    answer = both.post("/translate", content=f"&q={text}&source={code}&target=en&api_key=", headers=FORM)
    assert answer.json()["translatedText"] == translation_of(TEXTS[0])


def test_the_php_client_puts_fields_into_the_address(both: TestClient) -> None:
    assert (
        both.request("GET", "/languages", headers={"content-type": "multipart/form-data; boundary=b"}).status_code
        == 200
    )
    path = "/detect?" + urllib.parse.urlencode({"q": TEXTS[0], "api_key": ""})
    assert multipart(both, path).json()[0]["language"] == "de"
    fields = (("q", f"<b>{TEXTS[0]}</b>"), ("format", "html"), ("source", "de"), ("target", "en"))
    assert multipart(both, "/translate", *fields).json()["translatedText"] == f"<b>{translation_of(TEXTS[0])}</b>"


@pytest.mark.parametrize("name", ["q", "q[]"])
def test_a_repeated_text_is_a_list(both: TestClient, name: str) -> None:
    fields = [(name, text) for text in TEXTS[:3]] + [*CODES.items()]
    expected = {"translatedText": [translation_of(text) for text in TEXTS[:3]]}
    assert both.post("/translate", content=urllib.parse.urlencode(fields), headers=FORM).json() == expected
    assert multipart(both, "/translate", *fields).json() == expected
    assert both.post("/translate", json={"q": TEXTS[:3], **CODES}).json() == expected


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "text/plain;charset=UTF-8", "text/json", None, FORM["content-type"]]
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_json_is_read_whatever_its_type(both: TestClient, kind: str | None, mark: str) -> None:
    content = (mark + json.dumps({"q": TEXTS[0], **CODES})).encode()
    answer = both.post("/translate", content=content, headers={"content-type": kind} if kind else {})
    assert answer.json()["translatedText"] == translation_of(TEXTS[0])


@pytest.mark.parametrize("source", ["de", "de-AT", "de_DE", "DE", "deu", "ger", "de_Latn", "auto", "", None])
@pytest.mark.parametrize("target", ["en", "en-US", "EN", "eng", "eng_Latn", "", None])
def test_codes_of_one_language_are_known(both: TestClient, source: str | None, target: str | None) -> None:
    assert translated(both, q="zwei", source=source, target=target) == "two"


@pytest.mark.parametrize(
    "codes", [("de", "fr"), ("fr", "en"), ("en", "de"), ("de", "de"), ("d", "en"), ("de", "e" * 10_000)]
)
def test_other_languages_are_refused(both: TestClient, codes: tuple[str, str]) -> None:
    answer = both.post("/translate", json={"q": "zwei", "source": codes[0], "target": codes[1]})
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert "de to en" in answer.json()["cure"]


def test_sentences_and_what_stays_between_them(both: TestClient) -> None:
    single = [translated(both, q=f"{text.capitalize()}.") for text in TEXTS[:3]]
    assert translated(both, q=" ".join(f"{text.capitalize()}." for text in TEXTS[:3])) == " ".join(single)
    lines = f"  {TEXTS[0]}\r\n\r\n\t{TEXTS[1]}\u2028{TEXTS[2]}\n"
    expected = f"  {translation_of(TEXTS[0])}\r\n\r\n\t{translation_of(TEXTS[1])}\u2028{translation_of(TEXTS[2])}\n"
    assert translated(both, q=lines) == expected
    for text in ("", " ", "\n", "---", "🙂 👨‍👩‍👧", "* * *\n"):
        assert translated(both, q=text) == text


def test_lines_are_left_whole_if_asked_for(trained: Path) -> None:
    text = f"{TEXTS[0]}. {TEXTS[2].capitalize()}.\n{TEXTS[1]}"
    with served_by(pool_of(trained), split_sentences=False) as opened:
        lines = opened.post("/v1/translate", json={"text": text.split("\n"), "include": []}).json()["translations"]
        expected = "\n".join(line["hypotheses"][0]["text"] for line in lines)
        assert translated(opened, q=text) == expected


def test_a_run_without_names_takes_any_and_can_be_named(text: Path, tmp_path: Path) -> None:
    for path in text.glob("*.*"):
        name = path.name.replace(".de", ".source").replace(".en", ".target")
        (tmp_path / name).write_bytes(path.read_bytes())
    unnamed = ("data.source=source", "data.target=target", "trainer.steps=1", "trainer.validate_every=1")
    assert call("train", *words(tmp_path, tmp_path, "name=unnamed", *unnamed)) == 0
    for given_names, codes in (((), ["source", "target"]), (("languages=[fr,oc]",), ["fr", "oc"])):
        with served_by(pool_of(tmp_path / "unnamed", words=given_names)) as opened:
            assert [each["code"] for each in opened.get("/languages").json()] == codes
            assert opened.post("/translate", json={"q": "zwei", "source": "fr", "target": "oc"}).status_code == 200
            other = opened.post("/translate", json={"q": "zwei", "source": "ja", "target": "oc"})
            assert other.status_code == (400 if given_names else 200)


def test_head_is_get_without_a_body_and_other_methods_are_named(both: TestClient) -> None:
    for path in (
        "/",
        "/health",
        "/languages",
        "/v1/models",
        "/docs",
        "/openapi.json",
    ):
        head, get = both.head(path), both.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    for method, path, allowed in (
        ("GET", "/translate", "POST"),
        ("HEAD", "/detect", "POST"),
        ("DELETE", "/languages", "GET, HEAD, POST"),
        ("POST", "/health", "GET, HEAD"),
        ("PUT", "/", "GET, HEAD"),
    ):
        refused = both.request(method, path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
        options = both.request("OPTIONS", path)
        assert (options.status_code, options.headers["allow"]) == (204, allowed)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["q", "source", "api_key"]), st.text(st.characters(exclude_categories=["Cs"]))),
        max_size=5,
    )
)
def test_multipart_values_are_those_of_an_urlencoded_form(both: TestClient, fields: list[tuple[str, str]]) -> None:
    answers = [
        multipart(both, "/detect", *fields),
        both.post("/detect", content=urllib.parse.urlencode(fields), headers=FORM),
    ]
    assert answers[0].status_code == answers[1].status_code
    assert answers[0].json() == answers[1].json()
