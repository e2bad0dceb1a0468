"""The page behind nginx, under a path, with another name and with HTTPS, in a real Chromium.

Run by hand with `-m browser`.
"""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.conftest import TIMEOUT, begin

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
    listen 127.0.0.1:{port}; listen 127.0.0.1:{secure} ssl; server_name {name};
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    location /nmt/ {{ proxy_pass {address}; }}
    location = /bare {{ proxy_pass {address}; }}
    location /bare/ {{ proxy_pass {address}; }}
    location /kept/ {{ proxy_pass {address}; proxy_set_header Host $host; proxy_buffering off; }}
    location /twice {{ proxy_pass {address}; }}
  }}
}}
"""


@pytest.fixture(scope="module")
def proxy(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The ports of nginx in front of a server that knows the name, by scheme."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("nginx or openssl is not installed")
    folder = tmp_path_factory.mktemp("nginx")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        port, secure = (each.getsockname()[1] for each in (one, two))
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-keyout", "key.pem"]
    subprocess.run([*made, "-out", "cert.pem"], cwd=folder, check=True, capture_output=True)
    program, address = begin(runs / "learnt", runs, f"hosts=[{NAME}]")
    config = CONFIG.format(folder=folder, port=port, secure=secure, name=NAME, address=address)
    (folder / "nginx.conf").write_text(config, encoding="utf-8")
    nginx = subprocess.Popen([NGINX, "-e", folder / "error.log", "-c", folder / "nginx.conf", "-p", folder])
    with program, nginx:
        while not listens(port):
            assert nginx.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
            time.sleep(0.05)
        yield {"http": port, "https": secure}
        for each in (nginx, program):
            each.send_signal(signal.SIGTERM)
            assert each.wait(TIMEOUT) == 0


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("path", ["nmt/", "nmt", "bare", "kept/", "twice/", "twice"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_page_works_under_a_path_and_another_name(
    browser: Any, proxy: dict[str, int], scheme: str, path: str, tmp_path: Path
) -> None:
    """With https, the browser also says which site a request comes from."""
    import playwright.sync_api as api

    address = f"{scheme}://{NAME}:{proxy[scheme]}"
    # Chromium reads ahead in a page, so it asks for files before the page has said where it is.
    early = {f"{address}/viewer/{name}" for name in ("style.css", "page.js")} if path in ("bare", "twice") else set()
    context = browser.new_context(ignore_https_errors=True)
    page, problems = context.new_page(), list[str]()
    page.set_default_timeout(1000 * TIMEOUT)
    api.expect.set_options(timeout=1000 * TIMEOUT)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("response", lambda answer: problems.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"{address}/{path}#text=zwei+drei")
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two three")
    page.get_by_label("Text to translate").fill("zwei vier")
    page.get_by_role("button", name="Translate").click()
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two four")
    page.locator("#explain").get_by_role("button").first.click()
    api.expect(page.locator("#explain table").first).to_be_visible()
    api.expect(page.locator("#corpus tbody tr").first).to_be_visible()
    assert page.url.startswith(f"{address}/{path.rstrip('/')}")
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    page.reload()  # the address holds what is shown
    api.expect(page.locator("#sentence .sentence").last).to_have_text("two four")
    page.get_by_role("link", name="API").click()
    page.get_by_role("link", name="openapi.json").click()
    assert "/v1/translate" in page.content()
    context.close()
    assert {*problems} <= early
