"""What a translator needs beside translations: terms, a memory, corrections that are kept, and files."""

import importlib.util
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from nmt.serve.translated_files import PATIENCE, WAITING, WaitingFiles
from nmt.translation.glossary import Glossary
from tests.serve.conftest import pool_of, post, served_by
from tests.serve.test_clients import multipart
from tests.small import translation_of

SRT = "1\r\n00:00:01,000 --> 00:00:04,000\r\n<i>eins</i> zwei drei\r\n\r\n"


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, because corrections are kept in it."""
    return Path(shutil.copytree(trained, tmp_path_factory.mktemp("kept") / "run"))


@pytest.fixture(scope="module")
def server(run: Path) -> Iterator[TestClient]:
    with served_by(pool_of(run, words=(f"memory={run / 'corrections.tmx'}",))) as opened:
        yield opened


def send(to: TestClient, name: str, data: bytes, expected: int = 200, **fields: str) -> Any:
    answer = to.post("/translate_file", files={"file": (name, data)}, data={"source": "de", "target": "en", **fields})
    assert answer.status_code == expected, answer.text
    return answer.json()


def fetched(to: TestClient, answer: Any) -> tuple[str, bytes]:
    """The name and content of a translated file."""
    got = to.get(urlsplit(answer["translatedFileUrl"]).path)
    assert got.status_code == 200
    return got.headers["content-disposition"].partition("''")[2], got.content


def best(to: TestClient, text: str, **more: Any) -> Any:
    return post(to, "/v1/translate", text=text, **more)["translations"][0]["hypotheses"][0]


def test_a_correction_is_kept_offered_and_answers(server: TestClient, run: Path) -> None:
    assert not best(server, "eins zwei")["remembered"]
    assert post(server, "/v1/memory", text="eins zwei")["matches"] == []
    pair = {"source": "eins zwei", "target": "ONE & two"}
    assert post(server, "/v1/corrections", **pair) == {"file": str(run / "corrections.tmx"), "added": True}
    assert not post(server, "/v1/corrections", **pair)["added"]
    for include in (["alignment"], ["weights", "beam", "stages", "alternatives"]):
        answer = best(server, "eins zwei", include=include)
        assert (answer["text"], answer["remembered"]) == ("ONE & two", True)
        assert all(piece["forced"] for piece in answer["pieces"])
        own = best(server, "eins zwei", include=include, memory=False)
        assert (own["text"], own["remembered"]) == ("one two", False)
    assert best(server, "eins zwei", prefix="two")["text"].startswith("two")
    similar = post(server, "/v1/memory", text="eins zwei drei")["matches"]
    assert [(each["source"], each["target"]) for each in similar] == [("eins zwei", "ONE & two")]
    assert 0.6 <= similar[0]["similarity"] < 1
    libre = server.post("/translate", json={"q": "eins zwei. drei", "source": "de", "target": "en"}).json()
    assert libre == {"translatedText": f"{best(server, 'eins zwei.')['text']} {translation_of('drei')}"}


def test_nothing_is_kept_that_nobody_may_keep(server: TestClient, run: Path, trained: Path) -> None:
    path = run / "corrections.tmx"
    before = path.read_bytes() if path.exists() else None
    pair = {"source": "drei", "target": "three"}
    for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        assert server.post("/v1/corrections", json=pair, headers=headers).status_code in (403, 421)
    post(server, "/v1/corrections", 422, source="drei", target=" ")
    post(server, "/v1/corrections", 422, source="drei", target="a\0b")
    post(server, "/v1/corrections", 422, source="drei" * 4000, target="x")
    post(server, "/v1/corrections", 404, model="nobody", **pair)
    with served_by(pool_of(trained), corrections=False) as closed:
        post(closed, "/v1/corrections", 403, **pair)
        assert closed.get("/v1/models").json()["offers"]["corrections"] is False
    assert (path.read_bytes() if path.exists() else None) == before
    assert not (trained / "corrections.tmx").exists()


def test_a_damaged_memory_leaves_the_pairs_of_before(server: TestClient, run: Path) -> None:
    post(server, "/v1/corrections", source="acht", target="EIGHT")
    path = run / "corrections.tmx"
    whole = path.read_bytes()
    assert best(server, "acht")["text"] == "EIGHT"
    path.write_bytes(whole[:-20])
    assert best(server, "acht")["text"] == "EIGHT"
    post(server, "/v1/corrections", 503, source="neun", target="NINE")
    assert path.read_bytes() == whole[:-20]
    path.write_bytes(whole)
    assert best(server, "acht")["text"] == "EIGHT"


def test_terms_are_in_the_answer_with_their_places(server: TestClient) -> None:
    terms = {"glossary": {"drei vier": ["nine"]}, "keep": ["placeholders"]}
    (document,) = post(server, "/v1/translate", text="drei vier {0}", **terms)["translations"]
    text = document["hypotheses"][0]["text"]
    assert [each["source"] for each in document["terms"]] == [[0, 9], [10, 13]]
    assert [text[slice(*each["target"])] for each in document["terms"]] == ["nine", "{0}"]
    (document,) = post(server, "/v1/translate", text="drei vier {0}")["translations"]
    assert "terms" not in document


@pytest.mark.parametrize("source", ["de", "auto"])
def test_a_document_comes_back_as_a_document(server: TestClient, source: str) -> None:
    answer = send(server, "C:\\x\\film ü.srt", SRT.encode(), source=source)
    name, data = fetched(server, answer)
    assert name == "film%20%C3%BC.en.srt"
    plain = re.sub("</?i>", "", data.decode())
    assert plain == re.sub("</?i>", "", SRT).replace("eins zwei drei", translation_of("eins zwei drei"))
    assert data.count(b"<i>") == data.count(b"</i>") == 1
    assert server.get("/download_file/x.film.srt").status_code == 404


def test_files_have_terms_and_the_memory(server: TestClient) -> None:
    post(server, "/v1/corrections", source="sieben acht", target="7 & 8")
    page = "<p>sieben acht</p><p>vier</p>"
    answer = send(server, "a.html", page.encode(), glossary=json.dumps({"vier": "nine"}))
    assert fetched(server, answer)[1].decode() == "<p>7 &amp; 8</p><p>nine</p>"


def test_placeholders_of_sent_catalogues_are_kept(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'{"a": "eins {name} zwei", "b": "drei %s vier"}'
    content = fetched(server, send(server, "a.json", data))[1].decode()
    assert content.count("{name}") == content.count("%s") == 1
    monkeypatch.setattr(Glossary, "find", lambda *_: pytest.fail("nothing is to be kept"))
    send(server, "a.json", data, keep="[]")
    send(server, "a.srt", SRT.encode())


def test_a_greedy_run_keeps_placeholders_too(trained: Path) -> None:
    with served_by(pool_of(trained, words=("search=greedy",))) as greedy:
        assert fetched(greedy, send(greedy, "a.json", b'{"b": "drei %s vier"}'))[1].count(b"%s") == 1
        given = {"q": "drei %s vier", "source": "de", "target": "en", "keep": ["placeholders"]}
        assert "%s" in post(greedy, "/translate", **given)["translatedText"]


def test_names_of_files_as_programs_write_them(server: TestClient) -> None:
    content = {"content-type": "multipart/form-data; boundary=x"}
    for name in ("filename=a.srt; filename*=utf-8''a%C3%BC.srt", "filename*=UTF-8'de'a%C3%BC.srt", "filename=au.srt"):
        form = f"--x\r\nContent-Disposition: form-data; name=file; {name}\r\n\r\n{SRT}\r\n--x--\r\n"
        answer = server.post("/translate_file", content=form.encode(), headers=content)
        assert answer.status_code == 200, answer.text
        assert fetched(server, answer.json())[0] == ("a%C3%BC.en.srt" if "*" in name else "au.en.srt")


def test_encodings_are_named_and_files_without_text_are_said(server: TestClient) -> None:
    data = SRT.replace("zwei drei", "fünf kleine").encode("cp1252")
    assert fetched(server, send(server, "a.srt", data, encoding="cp1252"))
    assert "latin77" in send(server, "a.srt", data, 400, encoding="latin77")["detail"]
    unit = '<tu><tuv xml:lang="fr"><seg>un</seg></tuv></tu>'
    memory = f'<tmx version="1.4"><header srclang="fr"/><body>{unit}</body></tmx>'
    assert any("nothing to translate" in note for note in send(server, "a.tmx", memory.encode())["notes"])


def test_files_that_are_refused(server: TestClient) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "<a>")
    for name, data, said in (
        ("a.pdf", b"%PDF", "Send one of: .csv"),
        ("file", b"x", "without an ending"),
        ("a.docx", b"PK", "a.docx"),
        ("a.docx", bomb.getvalue(), "a.docx"),
        ("a.json", b"{", "a.json"),
        ("a.srt", b"\xff\xfe\xfd", "a.srt"),
        ("a.xlf", b"<!DOCTYPE a [<!ENTITY b 'c'>]><xliff/>", "entities"),
    ):
        problem = send(server, name, data, 400)
        assert said in problem["detail"] + problem["cure"], name
    assert "de to en" in send(server, "a.srt", SRT.encode(), 400, source="fr")["cure"]
    assert send(server, "a.srt", SRT.encode(), 400, glossary="{")["field"] == "glossary"
    send(server, "a.srt", b" " * 200_000, 413)
    assert multipart(server, "/translate_file", ("source", "de")).status_code == 400
    assert server.post("/translate_file", json={"q": "a"}).status_code == 400


def test_a_server_without_the_extra_says_so(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for problem in (
        send(server, "a.srt", SRT.encode(), 501),
        post(server, "/v1/corrections", 501, source="eins", target="one"),
    ):
        assert "documents" in problem["detail"]
        assert "[documents]" in problem["cure"]
    assert post(server, "/v1/memory", text="eins") == {"matches": []}


def test_translated_files_wait_for_a_time_and_make_room() -> None:
    now = 0.0
    files = WaitingFiles(10, clock=lambda: now)
    keys = [files.add("a.srt", bytes(10)) for _ in range(WAITING + 1)]
    assert len(set(keys)) == WAITING + 1
    for gone in (keys[0], "a.srt"):
        with pytest.raises(Exception, match="not any more"):
            files.get(gone)
    assert files.get(keys[1]).name == "a.srt"
    now = PATIENCE
    with pytest.raises(Exception, match="not any more"):
        files.get(keys[1])
