"""Catalogues of strings: what has no translation gets one, the rest keeps its bytes."""

import json
from pathlib import Path

import polib
import pytest
import yaml  # type: ignore[import-untyped]

from nmt.documents.formats import read_document
from nmt.system.errors import UserError
from tests.documents.trips import generated, round_trip, swapped, translate

PO = r"""# Titel
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: a.c:1
#, c-format
msgid "Datei \"%s\" fehlt."
msgstr ""

#, fuzzy
#| msgid "Alt"
msgid "Neu"
msgstr "Old"

msgid "Fertig"
msgstr "Done"

msgctxt "menu"
msgid "Eine Zeile\n"
"und noch eine\n"
msgstr ""

msgid "%d Datei"
msgid_plural "%d Dateien"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#~ msgid "Weg"
#~ msgstr "Gone"
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_only_missing_and_fuzzy_translations_are_filled(tmp_path: Path, ending: str) -> None:
    data = PO.replace("\n", ending).encode()
    seen, written = translate(tmp_path / "a.po", data, str.upper)
    assert seen == ['Datei "%s" fehlt.', "Neu", "Eine Zeile", "und noch eine", "%d Datei", "%d Dateien"]
    (tmp_path / "b.po").write_bytes(written)
    ours, theirs = polib.pofile(PO), polib.pofile(str(tmp_path / "b.po"))
    assert len(ours) == len(theirs)
    assert ours.metadata == theirs.metadata
    entries = {entry.msgid: entry for entry in theirs}
    assert entries['Datei "%s" fehlt.'].msgstr == 'DATEI "%S" FEHLT.'
    assert entries['Datei "%s" fehlt.'].flags == ["fuzzy", "c-format"]
    assert entries['Datei "%s" fehlt.'].occurrences == [("a.c", "1")]
    assert entries["Neu"].msgstr == "NEU"
    assert entries["Neu"].tcomment == "Machine translation."
    assert entries["Neu"].previous_msgid == "Alt"
    assert (entries["Fertig"].msgstr, entries["Fertig"].flags) == ("Done", [])
    assert entries["Eine Zeile\nund noch eine\n"].msgstr == "EINE ZEILE\nUND NOCH EINE\n"
    assert entries["%d Datei"].msgstr_plural == {0: "%D DATEI", 1: "%D DATEIEN", 2: "%D DATEIEN"}
    assert entries["Weg"].obsolete
    # A second translation changes nothing but what is still marked.
    assert len(translate(tmp_path / "c.po", written, str.upper)[0]) == len(seen)


def test_po_in_a_legacy_encoding(tmp_path: Path) -> None:
    data = PO.replace("UTF-8", "ISO-8859-1").replace("Neu", "Größe").encode("latin-1")
    seen, written = translate(tmp_path / "a.po", data, swapped)
    assert "Größe" in seen
    assert "gRÖßE".encode("latin-1") in written
    with pytest.raises(UserError, match="lacks"):
        translate(tmp_path / "a.po", data, lambda text: f"{text} 数据")


def test_json_strings(tmp_path: Path) -> None:
    data = '{"@@locale": "de", "a": {"b": ["Hallo Welt", 1e5, "12"], "@b": {"description": "nicht"}},\n '
    data += '"url": "https://a.b/c",  "k":"x\\ny \\u00fc"}'
    seen, written = translate(tmp_path / "a.json", data.encode(), str.upper)
    assert seen == ["Hallo Welt", "x", "y ü"]
    assert written.decode() == data.replace("Hallo Welt", "HALLO WELT").replace("x\\ny \\u00fc", "X\\nY \\u00dc")


@pytest.mark.parametrize(
    ("value", "text", "written"),
    [
        ("a < b and b > c", "a < b and b > c", "A < B AND B > C"),
        ("List<String> ist gut", "List<String> ist gut", "LIST<STRING> IST GUT"),
        ("Name: <name> &amp; so", "Name: <name> &amp; so", "NAME: <NAME> &AMP; SO"),
        ("<b>Ja</b>", "Ja", "<b>JA</b>"),
        ('Klick <a href="x">hier</a> &amp; da', "Klick hier & da", 'KLICK <a href="x">HIER</a> &amp; DA'),
        ("AT&T <i>gut</i>&nbsp;so", "AT&T gut\xa0so", "AT&T <i>GUT</i>&nbsp;SO"),
        ("ein <0>zwei</0> <1/> drei", "ein zwei drei", "EIN <0>ZWEI</0> <1/> DREI"),
        ("x <5 und y> 3", "x <5 und y> 3", "X <5 UND Y> 3"),
        ("<%= x %> und <b>y</b> > z", "<%= x %> und y > z", "<%= X %> UND <b>Y</b> > Z"),
        ("Code <code>a b</code> bleibt", "Code bleibt", "CODE <code>a b</code> BLEIBT"),
        ("<b>a</b> &lt; b", "a < b", "<b>A</b> &lt; B"),
        ("&lt;i&gt; a &amp; b < c <b>d</b>", "<i> a & b < c d", "&lt;I&gt; A &amp; B &lt; C <b>D</b>"),
        (
            "<p>Eins <b>zwei</b>.</p>\n<p>Drei<br/>vier</p>",
            "Eins zwei.",
            "<p>EINS <b>ZWEI</b>.</p>\n<p>DREI<br/>VIER</p>",
        ),
    ],
)
@pytest.mark.parametrize("ending", [".json", ".yaml", ".po"])
def test_html_in_strings_is_kept_as_html(tmp_path: Path, value: str, text: str, written: str, ending: str) -> None:
    """The model sees the text alone; what only looks like a tag is text."""
    quoted = json.dumps(value)
    data = {".json": f'{{"k": {quoted}}}', ".yaml": f"k: {quoted}\n", ".po": f'msgid {quoted}\nmsgstr ""\n'}[ending]
    seen, output = translate(tmp_path / f"a{ending}", data.encode(), str.upper)
    assert seen[0] == text
    content = output.decode()
    if ending == ".po":
        (entry,) = polib.pofile(content)
        assert entry.msgstr == written
    else:
        assert yaml.safe_load(content) == {"k": written}


def test_strings_of_tags_alone_are_left(tmp_path: Path) -> None:
    data = b'{"a": "<br>", "b": "<a href=\\"x\\"></a>", "c": "<\\/b> ja <b>nein<\\/b>"}'
    seen, written = translate(tmp_path / "a.json", data, str.upper)
    assert seen == ["ja nein"]
    assert written == data.replace(b"ja", b"JA").replace(b"nein", b"NEIN")


def test_messages_of_a_browser_extension(tmp_path: Path) -> None:
    data = json.dumps(
        {"name": {"message": "Hallo $NAME$", "description": "Gruß", "placeholders": {"name": {"content": "x"}}}}
    )
    assert translate(tmp_path / "messages.json", data.encode(), str.upper)[0] == ["Hallo $NAME$"]


YAML = """# Kommentar: bleibt
de:
  titel: Guten Tag  # so
  leer: ""
  zahl: 12
  'in': 'Es''s gut'
  laut: "Hallo\\tWelt"
  lang: |
    Erste Zeile
    zweite Zeile

  gefaltet: >-
    Das ist
    ein Satz.
  liste: [Ja, "Nein, danke", &anker Vielleicht]
  wieder: *anker
"""


def test_yaml_strings(tmp_path: Path) -> None:
    seen, written = translate(tmp_path / "a.yaml", YAML.encode(), lambda text: f"{text.upper()}: #1")
    assert seen[:6] == ["Guten Tag", "Es's gut", "Hallo", "Welt", "Erste Zeile", "zweite Zeile"]
    assert seen[6:] == ["Das ist ein Satz.", "Ja", "Nein, danke", "Vielleicht"]
    assert written.decode().splitlines()[0] == YAML.splitlines()[0]
    content = yaml.safe_load(written)["de"]
    assert content["titel"] == "GUTEN TAG: #1"
    assert content["zahl"] == 12
    assert content["in"] == "ES'S GUT: #1"
    assert content["laut"] == "HALLO: #1\tWELT: #1"
    assert content["lang"] == "ERSTE ZEILE: #1\nZWEITE ZEILE: #1\n"
    assert content["gefaltet"] == "DAS IST EIN SATZ.: #1"
    assert content["liste"] == ["JA: #1", "NEIN, DANKE: #1", "VIELLEICHT: #1"]
    assert content["wieder"] == "VIELLEICHT: #1"
    assert "  # so\n" in written.decode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.po", "kein Katalog"),
        ("a.po", 'msgid "offen\nmsgstr ""\n'),
        ("a.json", '{"a": "b"'),
        ("a.json", "[" * 100_000),
        ("a.yaml", "a: [b"),
        ("a.yaml", "[" * 5000),
        ("a.yml", "a: *b"),
    ],
)
def test_damaged_catalogues(tmp_path: Path, name: str, data: str) -> None:
    with pytest.raises(UserError, match=f"{name}: not a valid"):
        translate(tmp_path / name, data.encode(), str)


TEXTS = (
    "Guten Tag",
    "Ja, {name}: %d.",
    "Erste Zeile\nzweite",
    " mit Rand ",
    "Größe — äöü",
    "12",
    "#!-[x]",
    "a\tb\\\"c'",
)


def test_round_trip_of_json(tmp_path: Path) -> None:
    def document(texts: list[str], number: int) -> bytes:
        value = {f"k{at}": text if at % 2 else [text, {"x": text}, None, at] for at, text in enumerate(texts)}
        return json.dumps(value, ensure_ascii=number % 2 == 0, indent=number % 3 or None).encode()

    round_trip(tmp_path / "a.json", document, TEXTS, lambda data: str(json.loads(data)))


def test_round_trip_of_yaml(tmp_path: Path) -> None:
    def document(texts: list[str], number: int) -> bytes:
        value = {f"k{at}": text if at % 2 else [text, {"x": text}] for at, text in enumerate(texts)}
        style = (None, '"', "'", "|")[number % 4]
        return bytes(yaml.safe_dump(value, allow_unicode=True, default_style=style, encoding="utf-8", width=1000))

    round_trip(tmp_path / "a.yaml", document, TEXTS, lambda data: str(yaml.safe_load(data)))


def test_round_trip_of_po(tmp_path: Path) -> None:
    def document(texts: list[str], number: int) -> bytes:
        catalogue = polib.POFile(wrapwidth=(78, 20)[number % 2])
        catalogue.metadata = {"Content-Type": "text/plain; charset=utf-8"}
        for at, text in enumerate(dict.fromkeys(texts)):
            catalogue.append(polib.POEntry(msgid=text, occurrences=[("a.py", str(at))], flags=["fuzzy"] * (at % 2)))
        return str(catalogue).encode()

    for data in generated(document, TEXTS):
        seen, written = translate(tmp_path / "a.po", data, swapped)
        before, after = polib.pofile(data.decode()), polib.pofile(written.decode())
        assert [(each.msgid, each.occurrences) for each in before] == [(each.msgid, each.occurrences) for each in after]
        assert all(each.msgstr == swapped(each.msgid) * any(map(str.isalpha, each.msgid)) for each in after)
        assert translate(tmp_path / "a.po", written, swapped) == (seen, written)


@pytest.mark.parametrize("ending", [".arb", ".yaml"])
def test_messages_with_a_choice_are_kept(ending: str, tmp_path: Path) -> None:
    choice = "{count, plural, =0{kein Hund} other{{count} Hunde}} im Haus"
    path = tmp_path / f"a{ending}"
    path.write_text(json.dumps({"a": "Hallo {name}", "b": choice}), encoding="utf-8")
    document = read_document(path)
    assert [segment.text for segment in document.segments] == ["Hallo {name}"]
    assert document.notes == ["messages with {..., plural or select, ...}, which are left as they were: 1."]
