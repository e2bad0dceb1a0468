"""Chromium, and the server of the page with a model of each kind, for all modules of the tests in a browser."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.small import BOTH, call, start, words, write_text

TIMEOUT = 600
SIZES = {"wide": (1200, "light"), "tablet": (800, "light"), "phone": (360, "light"), "dark": (1200, "dark")}
Visit = Callable[..., Any]
#: A Transformer that learns the language of number words.
LAYERS = ("encoder.size=32", "attention/score=scaled_dot", "attention.size=null", "optimizer.lr=0.005",
          "encoder.layers=2", "decoder.layers=2", "attention.heads=2", "trainer.validate_every=200")  # fmt: skip


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Opens pages. None may do what a user would not see: errors of the console, requests elsewhere."""
    contexts, problems = [], list[str]()

    def visited(
        url: str, width: int = 1200, scheme: str = "light", *, shows: str = ".nmt-viewer section", touch: bool = False
    ) -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=touch, accept_downloads=True)
        contexts.append(context)
        page, own = context.new_page(), (url.partition("#")[0], "data:", "blob:")
        page.set_default_timeout(120_000)
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
        page.goto(url)
        page.wait_for_selector(shows)
        return page

    yield visited
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def ask(visit: Visit) -> Visit:
    """Opens the page of a server with a sentence."""

    def asked(address: str, chosen: str = "", *size: Any, text: str = "drei rot haus") -> Any:
        words = f"text={quote(text)}{chosen}" if text else chosen
        return visit(f"{address}#{words}", *size, shows="#explain:not([hidden])")

    return asked


def said(page: Any) -> str:
    """The translation on the page of a server."""
    return str(page.locator("#sentence .sentence").nth(1).inner_text())


def saved(page: Any, section: str, form: str) -> bytes:
    """What the first button of this form saves in a section."""
    with page.expect_download() as waiting:
        page.locator(f"{section} .saving button", has_text=form).first.click()
    return Path(waiting.value.path()).read_bytes()


def barriers(page: Any, **options: Any) -> list[Any]:
    """The serious barriers that axe finds."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'")
    violations = axe.Axe().run(page, **options).response["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]][:3])
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]


def begin(run: Path | str, folder: Path, *words: str) -> "tuple[subprocess.Popen[bytes], str]":
    """The program of the server, and the address that it prints once it takes requests."""
    for module in ("nmt.serve", "fastapi", "uvicorn"):
        pytest.importorskip(module, reason="pip install -e '.[serve]'")
    program = start("serve", f"run={run}", "port=0", "device=cpu", "threads=1", *words, cwd=folder)
    assert program.stderr is not None
    line = program.stderr.readline().decode()
    if "missing. It is read" in line:  # the memory, before the first correction
        line = program.stderr.readline().decode()
    assert " at http://127.0.0.1:" in line, line + program.stderr.read().decode()
    return program, line.rpartition(" at ")[2].strip()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: "learnt" (recurrent) and "transformer" are evaluated, "conv" has learnt little."""
    text, folder = write_text(tmp_path_factory.mktemp("text")), tmp_path_factory.mktemp("runs")
    made = {
        "learnt": ("trainer.steps=200", "trainer.validate_every=100"),
        "conv": ("encoder=conv", "decoder=conv", "trainer.steps=20"),
        "transformer": (*BOTH, *LAYERS, "trainer.steps=200"),
    }
    for name, line in made.items():
        assert call("train", *words(text, folder, f"name={name}", *line)) == 0
    for name in ("learnt", "transformer"):
        assert call("evaluate", f"run={folder / name}", "pictures=3", "threads=1") == 0
    return folder


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[str]:
    """The address of a server with all runs, the recurrent one first."""
    folders = ",".join(str(runs / name) for name in ("learnt", "conv", "transformer"))
    program, address = begin(f"[{folders}]", runs)
    with program:
        yield address
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0
