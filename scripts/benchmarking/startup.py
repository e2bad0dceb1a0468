"""The benchmark's part "startup": the time until a verb has answered a line."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarking import crew
from benchmarking.numbers import summary
from benchmarking.session import Benchmark, say
from benchmarking.settings import Json
from nmt.checksums import NAME
from nmt.errors import UserError


def measure(session: Benchmark, weights: Path) -> Json:
    """How long `nmt.translate` takes to answer a line: beside torch's import and reading weights, and unchecked."""
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
        say(f"round {number}, start-up: {answered:.2f} s to answer a line, {imported + read:.2f} s at the least")
    return summary(rounds[len(warm_up) :])


def _python(session: Benchmark, *words: str) -> tuple[float, str]:
    """Seconds that a process of this Python took, given the first line of the test set, and what it printed."""
    language = session.corpus["languages"][0]
    line = (session.data / f"test.{language}").read_bytes().split(b"\n")[0] + b"\n"
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], cwd=session.folder, env=environment, input=line, capture_output=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise UserError(f"{' '.join(words[:2])} ended with status {done.returncode}: {message}")
    return seconds, done.stdout.decode()
