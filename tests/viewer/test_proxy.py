"""The page behind nginx, under a path and with another name, in a real Chromium. Run by hand with `-m browser`."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.test_program import TIMEOUT, begin
from tests.viewer.test_browser import browser

__all__ = ["browser"]

pytestmark = pytest.mark.browser
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
NAME = "nmt.example.org"
#: Two ways of a proxy: nginx's usual one, which sends its own name for the server, and one that keeps the browser's.
CONFIG = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port}; server_name {name};
    location /nmt/ {{ proxy_pass {address}; }}
    location = /bare {{ proxy_pass {address}; }}
    location /bare/ {{ proxy_pass {address}; }}
    location /kept/ {{ proxy_pass {address}; proxy_set_header Host $host; proxy_buffering off; }}
    location /twice {{ proxy_pass {address}; }}
  }}
}}
"""


@pytest.fixture(scope="module")
def proxy(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of nginx in front of a server that knows the name."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    folder = tmp_path_factory.mktemp("nginx")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program, address = begin(runs / "learnt", runs, f"hosts=[{NAME}]")
    config = CONFIG.format(folder=folder, port=port, name=NAME, address=address)
    (folder / "nginx.conf").write_text(config, encoding="utf-8")
    nginx = subprocess.Popen([NGINX, "-e", folder / "error.log", "-c", folder / "nginx.conf", "-p", folder])
    with program, nginx:
        while not listens(port):
            assert nginx.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
            time.sleep(0.05)
        yield port
        for each in (nginx, program):
            each.send_signal(signal.SIGTERM)
            assert each.wait(TIMEOUT) == 0


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("path", ["nmt/", "nmt", "bare", "kept/", "twice/", "twice"])
def test_the_page_works_under_a_path_and_another_name(browser: Any, proxy: int, path: str, tmp_path: Path) -> None:
    import playwright.sync_api as api

    context = browser.new_context(accept_downloads=True)
    page, problems = context.new_page(), list[str]()
    page.set_default_timeout(1000 * TIMEOUT)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("response", lambda answer: answer.status >= 400 and problems.append(f"{answer.status} {answer.url}"))
    page.goto(f"http://{NAME}:{proxy}/{path}#text=zwei+drei")
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two three")
    page.get_by_label("Text to translate").fill("zwei vier")
    page.get_by_role("button", name="Translate").click()
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two four")
    page.locator("#explain").get_by_role("button").first.click()
    api.expect(page.locator("#explain table").first).to_be_visible()
    api.expect(page.locator("#corpus tbody tr").first).to_be_visible()
    assert page.url.startswith(f"http://{NAME}:{proxy}/{path.rstrip('/')}")
    page.reload()  # the address holds what is shown
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two four")
    page.get_by_role("link", name="API").click()
    page.get_by_role("link", name="openapi.json").click()
    assert "/v1/translate" in page.content()
    context.close()
    assert problems == []
