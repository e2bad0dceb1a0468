"""The pages' requests, `torchrun`, jobs of Slurm and README's Python.

Slurm is not needed. A stand-in for `sbatch` runs the tasks of a job here; one for `srun` starts its command once for
each machine, all of them here. So two "machines" do find each other, but no queue has read the job's options.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

import nmt
from nmt.runs.run import Run
from tests.page_commands import PAGES, Block, Command, all_blocks, commands
from tests.small import call, start, write_lines
from tests.test_pages import BRIEF, FEW, FEW_DOCUMENTS, SMALL, with_this_python

pytestmark = pytest.mark.long

TIMEOUT = 600
EVERY = [command for page in PAGES for command in commands(page)]
TORCHRUN = [command for command in EVERY if command.line.startswith("torchrun")]
BLOCKS = [block for page in PAGES for block in all_blocks(page)]


def code(page: str, start: str) -> str:
    """The one block of a page that begins with these characters."""
    [found] = [block.text for block in BLOCKS if block.page == page and block.text.startswith(start)]
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that sees the sentences before and has been scored, under each name that a page gives it."""
    folder = tmp_path_factory.mktemp("home")
    line = ["data=documents", "context.sentences=2", "name=m30k", f"checkpoints={folder / 'checkpoints'}"]
    brief = [word for word in BRIEF if word != "trainer.tensorboard=false"]
    assert call("train", *line, *brief, *FEW_DOCUMENTS, *SMALL) == 0
    assert call("evaluate", f"run={folder / 'checkpoints' / 'm30k'}", "pictures=2", "device=cpu", "threads=1") == 0
    for name in {"NAME", *re.findall(r"checkpoints/(\w+)", " ".join(command.line for command in servers()))} - {"m30k"}:
        shutil.copytree(folder / "checkpoints" / "m30k", folder / "checkpoints" / name)
    return folder


def servers() -> list[Command]:
    """The commands of the pages that start a server."""
    return [command for command in EVERY if command.verb == "serve"]


@pytest.mark.parametrize("command", servers(), ids=lambda command: command.page)
def test_a_server_of_a_page_answers_the_requests_of_the_page(command: Command, home: Path) -> None:
    """Each `curl` is run as it stands, but for the port, which may be taken here."""
    for module in ("nmt.serve", "fastapi"):
        pytest.importorskip(module, reason="pip install -e '.[serve]'")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    requests = [each.line for each in EVERY if each.page == command.page and each.line.startswith("curl")]
    write_lines(home / "film.srt", ["1", "00:00:01,000 --> 00:00:02,000", "June 6, 1987"])
    for name in re.findall(r"checkpoints/([\w/-]+)", command.line):
        if not (home / "checkpoints" / name).exists():
            shutil.copytree(home / "checkpoints" / "m30k", home / "checkpoints" / name)
    program = start("serve", *command.words[3:], "port=0", "device=cpu", "threads=1", cwd=home)
    with program:
        try:
            assert program.stderr is not None
            lines = [next(program.stderr).decode()]
            while "missing. It is read" in lines[-1]:  # the memory of corrections, before the first one
                lines.append(next(program.stderr).decode())
            line = lines[-1]
            assert " at http://127.0.0.1:" in line, line + program.stderr.read().decode()
            place = line.rpartition(" at http://")[2].strip().rstrip("/")
            for request in [f"curl -s http://{place}/health", *requests]:
                # The run here is of other languages, its only ones.
                asked = request.replace("127.0.0.1:8765", place).replace(" -F source=de -F target=en", "")
                done = subprocess.run(
                    ["bash", "-ec", asked], capture_output=True, check=True, timeout=TIMEOUT, cwd=home
                )
                answer = json.loads(done.stdout)
                if "/translate " in request and "/v1/" not in request:
                    assert answer["translatedText"], answer
                elif "/translate_file " in request:
                    assert ".film." in answer["translatedFileUrl"], answer
                elif "/v1/corrections " in request or "/v1/memory " in request:
                    assert answer.get("added", True), answer
                    assert "matches" in answer or "added" in answer, answer
                elif request in requests:
                    wanted = json.loads(Command("", request).words[-1])
                    texts = wanted["text"] if isinstance(wanted["text"], list) else [wanted["text"]]
                    assert [each["source"]["text"] for each in answer["translations"]] == texts, answer
                    best = answer["translations"][0]["hypotheses"][0]
                    assert all(best[detail] for detail in wanted["include"])
                    assert bool(answer["translations"][0]["context"]) == ("context" in wanted)
                else:
                    assert answer["status"] == "ok", answer
            program.send_signal(signal.SIGTERM)
            assert program.wait(TIMEOUT) == 0
        finally:
            program.kill()


def free_port() -> int:
    """A port that nothing uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def small(text: str, port: int) -> str:
    """Commands of `torchrun` for this machine: processes of two cores, seconds of training."""
    text = text.partition(" # ")[0].replace("HOST ", "127.0.0.1 ").replace("29500", str(port))
    text = text.replace("--nproc-per-node 8", "--nproc-per-node 1").replace("output=FILE", "output=translations")
    words = [*BRIEF, *FEW, *SMALL] if "nmt.train" in text else ["device=cpu", "threads=1"]
    return " ".join([text.strip(), *words, *(["pictures=1"] if "nmt.evaluate" in text else [])])


def succeed(lines: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
    """Run commands of a shell side by side, as the machines of a training do."""
    quiet = {**environment, "PYTHONWARNINGS": "ignore"}  # torchrun's own
    started = [
        subprocess.Popen(["bash", "-ec", line], cwd=folder, env=quiet, stderr=subprocess.PIPE, text=True)
        for line in lines
    ]
    for program in started:
        _, messages = program.communicate(timeout=TIMEOUT)
        assert program.returncode == 0, messages


def trained_by_two(run: Path) -> bool:
    """Whether two processes have trained a run, for the two updates of these tests."""
    return Run(run).facts()["step"] == 2 and "on cpu (2 processes" in (run / "train.log").read_text(encoding="utf-8")


def together(page: Sequence[Command]) -> list[list[Command]]:
    """The commands of a page; those of several machines at once."""
    machines = [command for command in page if "--node-rank" in command.words]
    return [*([command] for command in page if command not in machines), *([machines] if machines else [])]


@pytest.mark.parametrize("page", sorted({command.page for command in TORCHRUN}))
def test_the_commands_of_torchrun_run(page: str, tmp_path: Path) -> None:
    """Two processes of gloo each, or two "machines" with one process each, on this one."""
    write_lines(tmp_path / "FILE", ["June 6, 1987", "12 kilograms and 63.5%"])
    for group in together([command for command in TORCHRUN if command.page == page]):
        if len(group) > 1:
            shutil.rmtree(tmp_path / "checkpoints")
        port = free_port()
        succeed([small(command.line, port) for command in group], tmp_path, with_this_python())
        [run] = (tmp_path / "checkpoints").iterdir()
        assert trained_by_two(run)
    if page == "many-processes.md":
        assert len((tmp_path / "translations").read_text(encoding="utf-8").splitlines()) == 2
        assert not Run(run).splits(), "the last training is another one than that of the first lines"


def stand_ins(folder: Path, **programs: str) -> dict[str, str]:
    """The environment in which a shell finds these programs before others."""
    (folder / "bin").mkdir()
    for name, body in programs.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{textwrap.dedent(body)}", encoding="utf-8")
        path.chmod(0o755)
    environment = with_this_python()
    return {**environment, "PATH": f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"}


SRUN = """\
for machine in $(seq "$SLURM_NNODES"); do "$@" & jobs="$jobs $!"; done
status=0
for job in $jobs; do wait "$job" || status=1; done
exit $status
"""


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.kind == "script"], ids=lambda block: block.page)
def test_a_job_of_slurm_trains(block: Block, tmp_path: Path) -> None:
    """The script of the page, on two machines that are both this one; of its options only their form is checked."""
    options = re.findall(r"^#SBATCH (.*)$", block.text, re.MULTILINE)
    assert options
    assert all(re.fullmatch(r"--[a-z-]+=\S+", option) for line in options for option in line.split())
    environment = stand_ins(tmp_path, srun=SRUN, scontrol='[ "$1 $2 $3" = "show hostnames a,b" ] && echo localhost')
    job = {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "a,b", "SLURM_JOB_ID": "7"}
    succeed([small(block.text, free_port())], tmp_path, {**environment, **job})
    [run] = (tmp_path / "checkpoints").iterdir()
    assert trained_by_two(run)


def test_a_sweep_by_sbatch_trains_its_runs(tmp_path: Path) -> None:
    pipes = [command.line for command in EVERY if "sbatch" in command.line]
    assert len(pipes) == 1
    tasks = "cat > job; for task in 0 1 2; do SLURM_ARRAY_TASK_ID=$task bash job || exit 1; done"
    environment = stand_ins(tmp_path, sbatch=tasks, srun='exec "$@"')
    brief = " ".join([*BRIEF, *FEW, *SMALL])
    succeed([pipes[0].replace("dry_run=true", f"dry_run=true {brief}")], tmp_path, environment)
    runs = sorted(path.parent for path in (tmp_path / "checkpoints" / "SWEEP").glob("*/config.yaml"))
    assert [Run(run).facts()["step"] for run in runs] == [2, 2, 2]


def test_the_python_of_the_readme_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    names: dict[str, object] = {}
    exec(compile(code("README.md", "import nmt"), "README.md", "exec"), names)
    assert isinstance(names["translation"], nmt.TranslatedSentence)


def test_a_run_has_the_files_of_the_readme(home: Path) -> None:
    first, *rows = code("README.md", "checkpoints/NAME/").splitlines()
    found = {path.name + "/" * path.is_dir() for path in (home / first).iterdir()}
    for row in rows:
        names = re.split(r" {2,}", row.strip())[0].replace("evaluation/SPLIT/", "evaluation/").split()
        assert {*names} <= found, row
    [split] = (home / first / "evaluation").iterdir()
    assert (split / "report.html").is_file()
