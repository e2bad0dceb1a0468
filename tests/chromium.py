"""Chromium, for all tests in a browser."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="pip install -e '.[browser]'")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the PATH")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--host-resolver-rules=MAP *.example.org 127.0.0.1"]
        )
        yield started
        started.close()
