"""The benchmark's part "startup": the time until a verb, and the server's page, have answered a line."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from benchmarking import crew
from benchmarking.numbers import summary
from benchmarking.session import Benchmark, say
from benchmarking.settings import Json
from nmt.checksums import NAME
from nmt.errors import UserError


def measure(session: Benchmark, weights: Path) -> Json:
    """How long `nmt.translate` takes to answer a line: beside torch's import and reading weights, and unchecked.

    Where the packages of `nmt[serve]` are installed, also how long `nmt.serve` takes from its start to the first answer
    of its page.
    """
    run = session.folder / "run"
    settings = {"scale": session.scale, "sizes": session.sizes, "folder": session.data, "weights": weights, "run": run}
    crew.once("founding", settings, session.log)
    reading = (
        "import sys, time, torch, safetensors.torch; began = time.perf_counter(); "
        "safetensors.torch.load_file(sys.argv[1]); print(time.perf_counter() - began)"
    )
    verb = ["-m", "nmt.translate", f"run={run}", "device=cpu", f"threads={session.threads}"]
    rounds: list[dict[str, float]] = []
    warm_up = () if session.options.quick else ("to warm up",)
    for number in (*warm_up, *session.numbers()):
        imported, _ = _python(session, "-c", "import torch")
        read = float(_python(session, "-c", reading, str(run / "best.safetensors"))[1])
        answered, answer = _python(session, *verb)
        checksums = run / NAME
        aside = checksums.rename(session.folder / NAME)
        unchecked, same = _python(session, *verb)
        aside.rename(checksums)
        if len(answer.splitlines()) != 1 or same != answer:
            raise RuntimeError(f"nmt.translate answered one line with {answer!r}, without checksums {same!r}")
        rounds.append(
            {
                "answer_seconds": answered,
                "import_torch_seconds": imported,
                "read_model_seconds": read,
                "ratio": answered / (imported + read),
                "checked_over_unchecked": answered / unchecked,
            }
        )
        if importlib.util.find_spec("fastapi") is not None:
            served = _served(session, run)
            rounds[-1] |= {"served_seconds": served, "served_over_answer": served / answered}
        say(f"round {number}, start-up: {answered:.2f} s to answer a line, {imported + read:.2f} s at the least")
    return summary(rounds[len(warm_up) :])


def _served(session: Benchmark, run: Path) -> float:
    """Seconds from the start of a server to the answer to what its page asks first."""
    words = [f"run={run}", "port=0", "device=cpu", f"threads={session.threads}"]
    include = ["alignment", "weights", "self_weights", "alternatives", "stages", "beam"]
    body = json.dumps({"text": _line(session).decode().strip(), "include": include}).encode()
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "nmt.serve", *words],
        cwd=session.folder,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        said = ""
        for said in server.stderr:
            if "http://" in said:
                break
        try:
            address = said[said.index("http://") :].strip()
            request = urllib.request.Request(f"{address}v1/translate", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as answer:
                json.load(answer)
            return time.perf_counter() - began
        except (ValueError, OSError) as error:
            raise UserError(f"nmt.serve did not answer: {said.strip() or error}") from error
        finally:
            server.terminate()


def _line(session: Benchmark) -> bytes:
    """The first line of the test set."""
    language = session.corpus["languages"][0]
    return (session.data / f"test.{language}").read_bytes().split(b"\n")[0] + b"\n"


def _environment() -> dict[str, str]:
    """Ours, but compiled modules are kept, as they are for a user: without them each start compiles all of nmt."""
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}


def _python(session: Benchmark, *words: str) -> tuple[float, str]:
    """Seconds that a process of this Python took, given the first line of the test set, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=session.folder,
        env=_environment(),
        input=_line(session),
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise UserError(f"{' '.join(words[:2])} ended with status {done.returncode}: {message}")
    return seconds, done.stdout.decode()
