"""What the viewer computes, run by node, and its modules joined into one file."""

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from nmt.viewer import embed
from tests.viewer import documents

STATIC = Path(embed.__file__).parent / "static"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="node is not installed")


def node(folder: Path, *words: str) -> str:
    done = subprocess.run([str(NODE), *words], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_node
@pytest.mark.parametrize("tests", ["pure.mjs", "pure_page.mjs"])
def test_what_the_viewer_computes(tests: str, tmp_path: Path) -> None:
    for path in (*STATIC.glob("*.js"), Path(__file__).parent / tests):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    known = {"dogs": documents.dogs(), "stages": documents.stages(), "beam": documents.beam()}
    (tmp_path / "documents.json").write_text(json.dumps(known), encoding="utf-8")
    said = node(tmp_path, "--test", "--test-reporter=tap", tests)
    passed = re.search(r"^# pass (\d+)$", said, re.MULTILINE)
    written = (tmp_path / tests).read_text(encoding="utf-8").count('\ntest("')
    assert passed is not None
    assert int(passed[1]) == written > 10


@needs_node
@pytest.mark.parametrize("entry", ["report.js", "page.js"])
def test_the_modules_make_one_script(entry: str, tmp_path: Path) -> None:
    (tmp_path / "joined.mjs").write_text(embed.bundle(entry), encoding="utf-8")
    node(tmp_path, "--check", "joined.mjs")
    assert not re.search(r"^\s*(import|export)\b", embed.bundle(entry), re.MULTILINE)


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_no_file_of_the_viewer_parses_text_or_asks_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in text
    addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "names of XML, never fetched"
    lines = text.splitlines()
    assert len(lines) <= 400
    assert max(map(len, lines)) <= 120


def test_numbers_can_be_read_on_every_shade() -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1, in light and dark."""

    def luminance(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    shades = re.findall(r"\.([pn]\d+)\s\{\sbackground:\s(#\w{6});\scolor:\s(#\w{6});\s*\}", embed.static("style.css"))
    assert len(shades) == 2 * 21
    for name, *colours in shades:
        dark, light = sorted(map(luminance, colours))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, colours)


@pytest.mark.parametrize("text", documents.HOSTILE)
def test_text_in_a_script_element_stays_data(text: str) -> None:
    class Page(HTMLParser):
        found: list[str]
        tags: list[str]
        inside = False

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.tags.append(tag)
            self.inside = ("type", "application/json") in attrs

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

        def handle_data(self, data: str) -> None:
            if self.inside:
                self.found.append(data)

    reader = Page()
    reader.found, reader.tags = [], []
    data = {"sentences": [{"line": 1, "translations": [], "reference": text}], "corpus": None}
    reader.feed(embed.viewer("v", data))
    assert json.loads("".join(reader.found)) == data
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 1


def test_a_page_says_what_may_run() -> None:
    page = embed.page("a < b", "<p>text</p>")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert "<title>a &lt; b</title>" in page
    assert "script-src" not in embed.page("t", "", script=False)
    assert "<script" not in embed.page("t", "", script=False)


def test_a_frame_holds_a_whole_page() -> None:
    found = re.search(r'srcdoc="([^"]*)"', embed.frame("t", '<p class="x">"quoted" & more</p>'))
    assert found is not None
    assert '<p class="x">"quoted" & more</p>' in html.unescape(found[1])
    assert 'sandbox="allow-scripts' in embed.frame("t", "")
    assert "allow-same-origin" not in embed.frame("t", "")


def test_what_cannot_be_shown_is_an_error() -> None:
    with pytest.raises(ValueError, match="id"):
        embed.viewer('v" onload="x', {})
    with pytest.raises(ValueError, match="JSON"):
        embed.embedded_json(float("nan"))
