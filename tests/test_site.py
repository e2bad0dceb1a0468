"""The documentation site: it builds without a warning, loads nothing from another host, and is up to date."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small import ROOT, environment

#: Attributes of HTML by which a browser loads something at once. A link that somebody may click is not among them.
LOADED = re.compile(r"""<(?:script|img|iframe|link|source|video|audio|object|embed|input)\b[^>]*?"""
                    r"""\s(?:src|href|srcset|data)\s*=\s*["']?((?:https?:)?//[^"'\s>]+)""", re.IGNORECASE)  # fmt: skip
#: The same in style sheets.
STYLED = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
#: The same in scripts.
FETCHED = re.compile(r"""(?:fetch|importScripts|import|open|Worker)\s*\(\s*(?:["']GET["']\s*,\s*)?["'](https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    for package in ("mkdocs", "latex2mathml"):
        pytest.importorskip(package, reason="the site is built with mkdocs and latex2mathml, two of the dev extras")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {path.parent.name for path in site.glob("*/index.html")} >= pages - {"index"}
    assert (site / "index.html").is_file()


def test_equations_are_mathml_and_no_latex_is_left(site: Path) -> None:
    written = sum(path.read_text(encoding="utf-8").count("```math") for path in (ROOT / "docs").glob("*.md"))
    pages = [path.read_text(encoding="utf-8") for path in site.glob("*/index.html")]
    assert sum(page.count('<div class="equation" tabindex="0"><math ') for page in pages) == written > 30
    assert not any("language-math" in page for page in pages)


def test_the_notebook_is_a_page_with_its_outputs(site: Path) -> None:
    page = (site / "attention-notebook" / "index.html").read_text(encoding="utf-8")
    assert page.count("<iframe") == 3
    assert page.count('alt="heatmap of the weights"') == 1
    assert "[output " not in page
    assert "attention-notebook/" in (site / "index.html").read_text(encoding="utf-8")


def test_the_script_of_the_theme_finds_what_it_looks_for(site: Path) -> None:
    """It switches style sheets of highlight.js, and reads the ids of headings as selectors."""
    for path in site.glob("**/index.html"):
        page = path.read_text(encoding="utf-8")
        assert page.count('id="hljs-light"') == page.count('id="hljs-dark"') == 1
        assert re.findall(r'<h[1-6] id="[^a-z_][^"]*"', page) == [], path


def test_a_page_loads_nothing_from_another_host(site: Path) -> None:
    loads: list[tuple[str, str]] = []
    for path in site.rglob("*"):
        patterns = {".html": [LOADED, STYLED, FETCHED], ".css": [STYLED], ".js": [FETCHED]}.get(path.suffix, [])
        text = path.read_text(encoding="utf-8") if patterns else ""
        loads += [(path.name, found) for pattern in patterns for found in pattern.findall(text)]
    assert loads == []


def test_the_reference_is_that_of_the_docstrings() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/api_page.py", "--check"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
