"""The server as a program: its signals, strangers' clients, and many clients at once."""

import json
import signal
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.serve.connections import listening
from nmt.serve.server import addresses
from tests.small import call, pairs
from tests.viewer.conftest import TIMEOUT, begin

pytestmark = pytest.mark.long


PAIRS = pairs(200)


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "::1"])
def test_the_addresses_can_be_opened(host: str) -> None:
    """What stands for all addresses of a computer is no address that a browser opens."""
    if ":" in host and not has_ipv6():
        pytest.skip("this computer has no IPv6")
    with listening(host, 0) as listener:
        address, port = listener.getsockname()[:2]
        places = addresses(address)
        for place in places:
            socket.create_connection((place.strip("[]"), port), TIMEOUT).close()
    assert not {"0.0.0.0", "[::]"} & {*places}
    assert len(places) == 1 or host in ("0.0.0.0", "::")


@pytest.fixture(scope="module")
def address(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program, found = begin(trained, tmp_path_factory.mktemp("server"))
    with program:
        yield found
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0


def asked(address: str, path: str, **body: Any) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{address}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return json.load(answer)


def translated(address: str, texts: list[str]) -> list[str]:
    answer = asked(address, "v1/translate", text=texts, include=[])
    return [each["hypotheses"][0]["text"] for each in answer["translations"]]


def test_a_public_client_of_libretranslate_works_unchanged(address: str) -> None:
    library = pytest.importorskip("libretranslatepy", reason="libretranslatepy is not installed")
    found = library.LibreTranslateAPI(address)
    language, other = found.languages()
    (target,) = language["targets"]
    assert other == {"code": target, "name": "English", "targets": []}
    for source, translation in PAIRS[:5]:
        assert found.translate(source, language["code"], target, timeout=TIMEOUT) == translation
    assert found.detect("zwei drei")[0]["language"] == language["code"]
    lines = found.translate("\n".join(source for source, _ in PAIRS[:3]), "auto", target, timeout=TIMEOUT)
    assert lines.split("\n") == [translation for _, translation in PAIRS[:3]]


def asked_get(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}{path}", timeout=TIMEOUT) as answer:
        return json.load(answer)


def test_sigterm_finishes_what_has_been_taken(trained: Path, tmp_path: Path) -> None:
    program, address = begin(trained, tmp_path)
    with program:
        source = [PAIRS[at % len(PAIRS)][0] for at in range(1000)]
        answers: list[list[str]] = []
        client = threading.Thread(target=lambda: answers.append(translated(address, source)))
        client.start()
        while not asked_get(address, "health")["queue"]["rows"]:
            assert client.is_alive()
        program.send_signal(signal.SIGTERM)
        client.join(TIMEOUT)
        assert answers == [[PAIRS[at % len(PAIRS)][1] for at in range(1000)]]
        assert program.wait(TIMEOUT) == 0
        assert program.stderr is not None
        said = program.stderr.read().decode()
        assert "zwei" not in said
        assert "Traceback" not in said


def test_a_taken_port_is_told_in_one_line(trained: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert call("serve", f"run={trained}", f"port={port}", "device=cpu") == 1
    message = capfd.readouterr().err
    assert message.count("\n") == 1
    assert f"port={port}" in message
    assert call("serve", f"run={trained}", "shortlist=50", "device=cpu") == 1
    assert "shortlist=" in capfd.readouterr().err
