"""Markdown, web pages and exchange files: tags never enter the text, and stand around the same words again."""

import html
from pathlib import Path

import pytest
from lxml import etree

from nmt.data.languages import canonical
from nmt.documents.formats import read_document
from nmt.documents.markup import inline, tokens_of
from nmt.system.errors import UserError
from nmt.text.tags import Segment, Tag
from tests.documents.trips import generated, round_trip, swapped, translate


@pytest.mark.parametrize(
    ("markup", "text", "tags"),
    [
        ("<b>alles</b> ", "alles", []),
        ("a <b>b</b> c", "a b c", [(2, 3, "<b>", "</b>")]),
        ("a <i><b>b</b></i> c", "a b c", [(2, 3, "<i><b>", "</b></i>")]),
        ("a <i>b <b>c</b></i>", "a b c", [(2, 5, "<i>", "</i>"), (4, 5, "<b>", "</b>")]),
        ("a<img> <i><hr>b</i><br> c", "a b c", [(1, 1, "<img>", ""), (2, 3, "<i><hr>", "</i>"), (3, 3, "<br>", "")]),
        ("a <i>b<br></i>c", "a bc", [(2, 3, "<i>", "<br></i>")]),
        ("a <b></b>\n  b &amp; <i>c", "a b & c", [(2, 2, "<b></b> ", ""), (6, 6, "<i>", "")]),
        ("<!-- x --> ", None, []),
    ],
)
def test_tags_of_a_segment(markup: str, text: str | None, tags: list[tuple[int, int, str, str]]) -> None:
    built = inline(tokens_of(markup, void={"img", "br", "hr"}))
    assert (built and built.segment) == (None if text is None else Segment(text, tuple(Tag(*tag) for tag in tags)))
    assert built is None or built.before + built.raw + built.after == markup


PAGE = """<!DOCTYPE html>
<html lang="de"><head><title>Das Haus</title><style>p { color: red }</style>
<meta charset="utf-8"><meta name="description" content='Ein "Haus"'></head>
<body><!-- Hallo -->
<P>Ein <a href="x?a=1&b=2" title="Der Titel">rotes <em>Haus</em></a>, nicht&nbsp;<code>code = 1</code> wahr?<br/>
  Neue Zeile.
<p translate="no">bleibt</p><img src=a.png alt='Bild' />
<ul><li>Punkt eins<li>Punkt <b>zwei</b></ul><pre>
 so </pre><script>if (a < b) { "<p>nein</p>" }</script>
</body></html>
"""


def test_a_page(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.html", PAGE.encode(), swapped)
    texts = {"Das Haus", 'Ein "Haus"', "Der Titel", "Ein rotes Haus, nicht\u00a0wahr?", "Neue Zeile.", "Bild"}
    assert set(seen) == texts | {"Punkt eins", "Punkt zwei"}
    expected = PAGE.replace("<br/>\n  ", "<br/>").replace("&nbsp;", "\u00a0")
    for text in (
        "Das Haus",
        'Ein "Haus"',
        "Der Titel",
        "rotes ",
        ">Haus<",
        "nicht",
        "wahr",
        "Neue Zeile",
        "Bild",
        "Punkt",
        "zwei",
        "eins",
    ):
        expected = expected.replace(text, swapped(text))
    expected = expected.replace(">Ein ", ">eIN ")
    assert written.decode() == expected


MARKDOWN = """---
title: Bleibt
---
# Der *große* Titel #

Ein Absatz mit [einem **fetten** Wort](http://a.b/c_d "T") und `code`,
der weitergeht\\!\x20\x20
Neue Zeile.

> Zitat von <b>mir</b>
> und dir <http://x.y>.

    bleibt Code

- [ ] Punkt
  1. Nummer

| Kopf | Zwei |
|------|------|
| a \\| b | *c*  |

[ref]: http://bleibt
"""


def test_markdown(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.md", MARKDOWN.encode(), swapped)
    texts = ["Der große Titel", "Ein Absatz mit einem fetten Wort und , der weitergeht!", "Neue Zeile."]
    assert seen[:3] == texts
    assert seen[3:] == ["Zitat von mir und dir .", "Punkt", "Nummer", "Kopf", "Zwei", "a | b", "c"]
    expected = MARKDOWN.replace("`,\nder", "`, der").replace("weitergeht\\!", "weitergeht!").replace("\n> und", " und")
    words = ("Der *große* Titel", "Ein Absatz mit", "einem", "fetten", "Wort", " und ", "der weitergeht", "Neue Zeile")
    for text in (*words, "Zitat von", ">mir<", "dir", "Punkt", "Nummer", "Kopf", "Zwei", "a \\| b", "*c*"):
        expected = expected.replace(text, swapped(text))
    assert written.decode() == expected.replace("</B>", "</b>")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", "eins `zwei` drei. `vier` Fünf.\n"),
        ("a.md", "eins `zwei`  \n\\# drei  \n3\\. vier [^1] fünf[^2].\n\n[^1]: sechs\n"),
        ("a.html", "<p>eins <img><br>zwei <b><img> drei</b></p>"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\neins.\n2\n00:00:03,000 --> 00:00:04,000\nzwei.\n- ja.\n- nein.\n"),
    ],
)
def test_what_stands_between_words_stays_there(tmp_path: Path, name: str, data: str) -> None:
    seen, written = translate(tmp_path / name, data.encode(), str.upper)
    assert written.decode().lower() == data.lower()
    assert translate(tmp_path / name, written, str)[0] == [text.upper() for text in seen]


def test_links_by_reference_keep_their_labels(tmp_path: Path) -> None:
    end = "\n\n[eins zwei]: http://a\n[drei]: http://b\n"
    _, written = translate(tmp_path / "a.md", f"Rot [eins zwei], [drei][] und [vier][drei].{end}".encode(), str.upper)
    assert written.decode() == f"ROT [EINS ZWEI][eins zwei], [DREI][drei] UND [VIER][drei].{end}"
    end, text = "\n\n[*eins* zwei]: http://a\n[`f` _a\\*b_]: http://b\n", "[*eins*\n  zwei] und [`f` _a\\*b_]"
    for before, after in (("Rot ", " gut."), ("", "")):
        _, written = translate(tmp_path / "a.md", f"{before}{text}{after}{end}".encode(), str.upper)
        link = "[*EINS* ZWEI][*eins* zwei] UND [`f` _A\\*B_][`f` _a\\*b_]"
        assert written.decode() == f"{before.upper()}{link}{after.upper()}{end}"
    _, written = translate(tmp_path / "a.md", b"[eins zwei]\n\n[eins zwei]: http://a\n", str.upper)
    assert written == b"[EINS ZWEI][eins zwei]\n\n[eins zwei]: http://a\n"


def test_a_link_that_looks_like_a_footnote_is_a_link(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.md", b"Rot [^1](http://a) eins[^2] (zwei).\n", str.upper)
    assert len(seen) == 1
    assert written == b"ROT [^1](http://a) EINS[^2] (ZWEI).\n"


def test_a_translation_is_no_markup(tmp_path: Path) -> None:
    odd = "# a_b *c* [d](e) <f> `g` & &amp; |"
    for name, data in (("a.md", b"Hallo\n"), ("a.html", b"<p>Hallo</p>")):
        _, written = translate(tmp_path / name, data, lambda _: odd)
        assert translate(tmp_path / name, written, str)[0] == [odd]


XLIFF = """<?xml version="1.0" encoding="utf-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="de"><body>
<trans-unit id="1"><source>Klick <g id="1">hier</g><x id="2"/>!</source></trans-unit>
<trans-unit id="2"><source>Alt &amp; neu</source><target state="translated">Old</target></trans-unit>
<trans-unit id="3"><source>Leer</source>
  <target/><note>Notiz</note></trans-unit>
<trans-unit id="4" translate="no"><source>Kept</source></trans-unit>
<trans-unit id="5" approved="yes"><source>Fertig</source><target>Done</target></trans-unit>
<trans-unit id="6"><source><bpt id="1">&lt;b></bpt>Neu<ept id="1">&lt;/b></ept></source>
<target state="new">Neu</target></trans-unit>
</body></file></xliff>
"""


def test_xliff(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.xlf", XLIFF.encode(), swapped)
    assert seen == ["Klick hier!", "Leer", "Neu"]
    state = ' state="needs-review-translation" state-qualifier="leveraged-mt"'
    expected = XLIFF.replace(
        '</source></trans-unit>\n<trans-unit id="2"',
        f'</source><target{state}>kLICK <g id="1">HIER</g><x id="2"/>!</target></trans-unit>\n<trans-unit id="2"',
    )
    expected = expected.replace("<target/>", f"<target{state}>lEER</target>")
    expected = expected.replace(
        '<target state="new">Neu', f'<target{state}><bpt id="1">&lt;b></bpt>nEU<ept id="1">&lt;/b></ept>'
    )
    assert written.decode() == expected
    etree.fromstring(written)


def test_xliff_2(tmp_path: Path) -> None:
    data = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"><file id="f">{}</file></xliff>'
    segment = '<segment{}><source>Ein <pc id="1">Haus</pc></source>{}</segment>'
    seen, written = translate(tmp_path / "a.xlf", data.format(segment.format(' state="initial"', "")).encode(), swapped)
    assert seen == ["Ein Haus"]
    filled = segment.format(' state="translated"', '<target>eIN <pc id="1">hAUS</pc></target>')
    assert written.decode() == data.format(filled)
    assert translate(tmp_path / "a.xlf", written, swapped) == ([], written)


TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="de"/><body>
<tu tuid="1"><tuv xml:lang="de-AT"><seg>Ein <bpt i="1">&lt;b></bpt>Haus<ept i="1"/></seg></tuv></tu>
<tu><tuv xml:lang="de"><seg>Eins</seg></tuv><tuv xml:lang="en-GB"><seg>One</seg></tuv></tu>
</body></tmx>"""


@pytest.mark.parametrize("codes", [("de", "en"), ("deu_Latn", "eng_Latn"), ("ger", "eng"), ("de-AT", "EN-us")])
def test_languages_of_a_memory_are_matched_whatever_their_codes(tmp_path: Path, codes: tuple[str, str]) -> None:
    unit = '<tu><tuv xml:lang="deu-Latn"><seg>Ein Haus</seg></tuv>{}</tu>'
    done = '<tuv xml:lang="en_GB"><seg>A house</seg></tuv>'
    path = tmp_path / "a.tmx"
    path.write_text(f"<tmx><body>{unit.format('')}{unit.format(done)}</body></tmx>")
    document = read_document(path, *codes, canonical=canonical)
    assert [segment.text for segment in document.segments] == ["Ein Haus"]


def test_scripts_of_a_memory_are_two_languages(tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    variants = ('<tuv xml:lang="en"><seg>A house</seg></tuv>', '<tuv xml:lang="zho_Hant"><seg>一棟房子</seg></tuv>')
    path.write_text(f"<tmx><body><tu>{''.join(variants)}</tu></body></tmx>", encoding="utf-8")
    for code, count in (("zh-TW", 0), ("zh", 1), ("zh-Hans", 1), ("cmn_Hant", 0)):
        assert len(read_document(path, "en", code, canonical=canonical).segments) == count, code


def test_tmx(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.tmx", TMX.encode(), swapped)
    assert seen == ["Ein Haus"]
    added = '<tuv xml:lang="en" creationid="MT"><seg>eIN <bpt i="1">&lt;b></bpt>hAUS<ept i="1"/></seg></tuv></tu>\n'
    assert written.decode() == TMX.replace("</tu>\n", added, 1)


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.xlf", BOMB),
        ("a.tmx", BOMB.replace('"aaaa"', 'SYSTEM "file:///etc/passwd"')),
        ("a.xlf", "<a>" * 100_000),
        ("a.xlf", XLIFF[:-20]),
        ("a.xlf", "<html></html>"),
        ("a.tmx", XLIFF),
        ("a.xliff", "PK\x03\x04"),
        ("a.html", "\0\0"),
    ],
)
def test_damaged_markup(tmp_path: Path, name: str, data: str) -> None:
    with pytest.raises(UserError, match=name):
        translate(tmp_path / name, data.encode(), str)


WORDS = (
    "Guten Tag",
    "ein *Haus*",
    "<b>fett</b> &amp; <i>schräg</i>",
    "a < b",
    "Größe",
    "12",
    "[x](y) z",
    "  Rand\n",
    "`c` d",
)


def test_round_trip_of_pages(tmp_path: Path) -> None:
    def page(texts: list[str], number: int) -> bytes:
        names = ("p", "div", "li", "td", "h1")
        body = "".join(f"<{name}>{text}</{name}>\n" for text, name in zip(texts, names[number % 3 :] + names))
        return f"<html>{body}".encode()

    round_trip(tmp_path / "a.html", page, WORDS, _plain)


def test_round_trip_of_markdown(tmp_path: Path) -> None:
    def page(texts: list[str], number: int) -> bytes:
        starts = ("", "# ", "- ", "> ", "1. ", "    ")
        return "\n\n".join(starts[(number + at) % 6] + text for at, text in enumerate(texts)).encode()

    round_trip(tmp_path / "a.md", page, WORDS, _plain)


def _plain(data: bytes) -> str:
    return " ".join(html.unescape(data.decode()).replace("\\", "").split())


def test_round_trip_of_exchange_files(tmp_path: Path) -> None:
    def document(texts: list[str], number: int) -> bytes:
        units = "".join(
            f'<trans-unit id="{at}"><source>{text}</source>{"<target/>" * (at % 2)}</trans-unit>\n'
            for at, text in enumerate(texts)
        )
        return XLIFF[: XLIFF.index("<trans-unit")].encode() + units.encode() + b"</body></file></xliff>"

    for data in generated(document, [text for text in WORDS if "a < b" not in text]):
        _, written = translate(tmp_path / "a.xlf", data, swapped)
        before, after = etree.fromstring(data), etree.fromstring(written)
        for unit, filled in zip(before.iter("{*}trans-unit"), after.iter("{*}trans-unit"), strict=True):
            source, kept = unit.find("{*}source"), filled.find("{*}source")
            assert source is not None
            assert kept is not None
            assert etree.tostring(source) == etree.tostring(kept)
            text = "".join(map(str, source.itertext()))
            if any(map(str.isalpha, text)):
                target = filled.find("{*}target")
                assert target is not None
                assert "".join(map(str, target.itertext())) == swapped(text)
                assert [each.tag for each in target.iter()][1:] == [each.tag for each in source.iter()][1:]
