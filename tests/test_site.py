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
    pytest.importorskip("mkdocs", reason="the site is built with mkdocs, one of the dev extras")
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
