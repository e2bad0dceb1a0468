"""Other programs on the same work (peers): Joey NMT, OpenNMT-py, eole and Marian, each in its own environment.

They get the same text, the same pieces and, as far as each program supports it, the same model and recipe. Their speed
is what they report themselves: target tokens per second in training without the first report, and sentences per second
in translating after the model is loaded.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarking.settings import HEADS, Json, Sizes
from nmt.system.files import write_text

#: Maximum number of pieces in a peer's translation.
LONGEST_OUTPUT = 80


class Task(NamedTuple):
    """The work of a peer.

    Attributes:
        data: the folder of the corpus.
        folder: the working folder of the peer.
        languages: source and target.
        sizes: the sizes of the model.
        batch: sentences per batch.
        longest: maximum pieces per side; longer pairs are left out.
        threads: number of CPU threads.
        cuda: whether to use the GPU.
        lines: number of lines of the test set to translate.
    """

    data: Path
    folder: Path
    languages: tuple[str, str]
    sizes: Sizes
    batch: int
    longest: int
    threads: int
    cuda: bool
    lines: int


class Translated(NamedTuple):
    """The speed in sentences per second after loading, and the translations."""

    sentences_per_second: float
    texts: list[str]


class PeerError(Exception):
    """A peer failed; the message has its output."""


class Peer(ABC):
    """A program in a virtual environment.

    Attributes:
        name: name of the package.
        title: name in texts.
        module: name of the Python module.
        variable: environment variable with the path of its Python.
        beside: the wiring of nmt with the same model.
        on_gpu: whether the peer is also measured on a GPU.
        library_threads: number of threads for OpenMP and MKL; None for all CPU threads.
    """

    name = ""
    title = ""
    module = ""
    variable = ""
    beside = "bahdanau"
    on_gpu = True
    library_threads: int | None = None

    def __init__(self, python: str, version: str, task: Task) -> None:
        self.python, self.version, self.task = python, version, task
        self.updates = 0
        self.peak_memory = 0
        task.folder.mkdir(parents=True, exist_ok=True)
        self.lines = self._take_lines()

    def _take_lines(self) -> int:
        """Write the part of the test set to translate; return the number of lines."""
        count = 0
        for language in self.task.languages:
            lines = (self.task.data / f"test.{language}").read_text(encoding="utf-8").split("\n")[:-1]
            selected = lines[: self.task.lines]
            write_text(self.task.folder / f"text.{language}", "".join(f"{line}\n" for line in selected))
            count = len(selected)
        return count

    def train(self, updates: int) -> float:
        """Train a new model for `updates` updates; return the reported target tokens per second.

        Raises:
            PeerError: the peer failed, or did not report its speed.
        """
        return self._speed(self._train(updates))

    @abstractmethod
    def translate(self) -> Translated:
        """Translate the text with the last trained model, a beam of 5, and 64 sentences at a time.

        Raises:
            PeerError: see `train`.
        """

    @abstractmethod
    def _train(self, updates: int) -> str:
        """Train and save a new model; return the output of the program."""

    @abstractmethod
    def _speed(self, output: str) -> float:
        """Target tokens per second, from the output of a training."""

    def _settings(self, updates: int) -> Json:
        """The values for the fields of the configuration file's template."""
        task = self.task
        every = max(1, updates // 6)  # six reports of the speed, if there are enough updates
        return {
            **task.sizes._asdict(),
            "data": task.data,
            "folder": task.folder,
            "source": task.languages[0],
            "target": task.languages[1],
            "batch": task.batch,
            "longest": task.longest,
            "longest_output": LONGEST_OUTPUT,
            "updates": updates,
            "every": every,
            "never": every * 10**6,
            "validate_every": every * 10**6,
            "save_every": updates,
            "cuda": task.cuda,
            "gpu": "world_size: 1\ngpu_ranks: [0]\n" if task.cuda else "",
        }

    def _run(self, *words: str) -> str:
        """Run a command of the peer; return its output, standard output and error together (PeerError)."""
        environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
        for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[variable] = str(self.library_threads or self.task.threads)
        environment.pop("PYTHONPATH", None)
        log = self.task.folder / "said.txt"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [self.python, *words], cwd=self.task.folder, env=environment, stdout=file, stderr=file,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                status = self._wait(process)
            finally:
                if process.returncode is None:
                    process.kill()
                    process.wait()
        output = log.read_text(encoding="utf-8", errors="replace")
        if status != 0:
            tail = "\n    ".join(output.splitlines()[-6:])
            raise PeerError(f"{self.title} ended with status {status} ({' '.join(words)}):\n    {tail}")
        return output

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a process; return its exit status, and note its peak memory if the system provides it."""
        if not hasattr(os, "wait4"):
            return process.wait()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak_memory = max(self.peak_memory, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
        return process.returncode

    def _texts(self, path: Path) -> list[str]:
        try:
            return path.read_text(encoding="utf-8").split("\n")[: self.lines]
        except OSError as error:
            raise PeerError(f"{self.title} left no translations in {path}.") from error

    def _numbers(self, pattern: str, output: str, what: str) -> list[float]:
        numbers = [float(number) for number in re.findall(pattern, output)]
        if not numbers:
            raise PeerError(f"{self.title} said nothing of {what}.")
        return numbers


class Joey(Peer):
    """Joey NMT 2.3."""

    name, title, module, variable = "joeynmt", "Joey NMT", "joeynmt", "NMT_JOEY_PYTHON"

    def _model(self, update: int) -> Path:
        return self.task.folder / "joey" / f"{update}.ckpt"

    def _train(self, updates: int) -> str:
        self._configure(updates)
        # Joey NMT saves weights at every validation and at the end.
        output = self._run("-m", "joeynmt", "train", "joey.yaml", "--skip-test")
        self.updates = updates
        return output

    def _configure(self, updates: int) -> None:
        text = _template("joey.yaml").format(**self._settings(updates), model=self._model(updates))
        write_text(self.task.folder / "joey.yaml", text)

    def _speed(self, output: str) -> float:
        return speed(self._numbers(r"Tokens per Sec:\s*([\d.]+)", output, "its speed"))

    def translate(self) -> Translated:
        self._configure(self.updates)
        output = self._run("-m", "joeynmt", "test", "joey.yaml", "--output-path", "joey.out")
        # The first reported time is for the validation set, here two lines.
        seconds = self._numbers(r"Generation took ([\d.]+)\[sec\]", output, "how long it took")[-1]
        return Translated(self.lines / seconds, self._texts(self.task.folder / "joey.out.test"))


class OpenNMT(Peer):
    """OpenNMT-py 3.5."""

    name, title, module, variable = "opennmt-py", "OpenNMT-py", "onmt", "NMT_ONMT_PYTHON"
    template = "onmt.yaml"

    def _train(self, updates: int) -> str:
        settings = self._settings(updates)
        write_text(self.task.folder / "onmt.yaml", _template(self.template).format(**settings))
        output = self._run("-m", "onmt.bin.train", "-config", "onmt.yaml")
        self.updates = updates
        return output

    def _speed(self, output: str) -> float:
        return speed(self._numbers(r"[\d.]+/\s*([\d.]+) tok/s", output, "its speed"))

    def translate(self) -> Translated:
        output = self._run(
            "-m", "onmt.bin.translate", "-model", f"onmt_model_step_{self.updates}.pt",
            "-src", f"text.{self.task.languages[0]}", "-output", "onmt.out",
            "-beam_size", "5", "-batch_size", "64", "-max_length", str(LONGEST_OUTPUT), "-length_penalty", "avg",
            "-transforms", "sentencepiece", "-src_subword_model", str(self.task.data / "tokenizer.model"),
            "-tgt_subword_model", str(self.task.data / "tokenizer.model"), "-report_time",
            "-gpu", "0" if self.task.cuda else "-1",
        )  # fmt: skip
        milliseconds = self._numbers(r"Average translation time \(ms\): ([\d.]+)", output, "how long it took")[-1]
        return Translated(1000 / milliseconds, self._texts(self.task.folder / "onmt.out"))


class OpenNMTTransformer(OpenNMT):
    """The Transformer of OpenNMT-py, pre-normalised like the project's."""

    template = "onmt_transformer.yaml"

    def _settings(self, updates: int) -> Json:
        settings = super()._settings(updates)
        return {**settings, "heads": HEADS, "inner": 4 * self.task.sizes.embedding}


class Eole(OpenNMT):
    """eole 0.6, OpenNMT-py's successor, with the same format of speed reports."""

    name, title, module, variable = "eole", "eole", "eole", "NMT_EOLE_PYTHON"
    template = "eole.yaml"

    def _settings(self, updates: int) -> Json:
        ranks = "world_size: 1\n  gpu_ranks: [0]" if self.task.cuda else "world_size: 1\n  gpu_ranks: []"
        return {**super()._settings(updates), "gpu": ranks}

    def _train(self, updates: int) -> str:
        counted = (self.task.data / "counted.txt").read_text(encoding="utf-8").split("\n")[:-1]
        write_text(self.task.folder / "vocab.txt", "".join(f"{line.partition(chr(9))[0]}\n" for line in counted))
        write_text(self.task.folder / "eole.yaml", _template(self.template).format(**self._settings(updates)))
        output = self._run("-m", "eole.bin.main", "train", "-config", "eole.yaml")
        self.updates = updates
        return output

    def translate(self) -> Translated:
        output = self._run(
            "-m", "eole.bin.main", "predict", "-model_path", "eole_model",
            "-src", f"text.{self.task.languages[0]}", "-output", "eole.out",
            "-beam_size", "5", "-batch_size", "64", "-max_length", str(LONGEST_OUTPUT), "-length_penalty", "avg",
            "-report_time", *(["-world_size", "1", "-gpu_ranks", "0"] if self.task.cuda else []),
        )  # fmt: skip
        milliseconds = self._numbers(r"Average prediction time \(ms\): ([\d.]+)", output, "how long it took")[-1]
        return Translated(1000 / milliseconds, self._texts(self.task.folder / "eole.out"))


class Marian(Peer):
    """Marian 1.12 from pip, compiled for AVX only; a build from source is faster.

    Each thread computes a part of a batch.
    """

    name, title, module, variable = "pymarian", "Marian", "pymarian", "NMT_MARIAN_PYTHON"
    beside, on_gpu, library_threads = "conditional", False, 1

    def _train(self, updates: int) -> str:
        for earlier in self.task.folder.glob("marian.npz*"):  # Marian would resume the earlier training
            earlier.unlink()
        shutil.copyfile(self.task.data / "tokenizer.model", self.task.folder / "vocab.spm")
        write_text(self.task.folder / "marian.yaml", _template("marian.yaml").format(**self._settings(updates)))
        output = self._run("-m", "pymarian", "train", "-c", "marian.yaml", *self._threads)
        self.updates = updates
        return output

    @property
    def _threads(self) -> Sequence[str]:
        return "--cpu-threads", str(self.task.threads)

    def _speed(self, output: str) -> float:
        return speed(self._numbers(r"([\d.]+) words/s", output, "its speed"))

    def translate(self) -> Translated:
        output = self._run(
            "-m", "pymarian", "decode", "-m", "marian.npz", "-v", "vocab.spm", "vocab.spm",
            "-i", f"text.{self.task.languages[0]}", "-o", "marian.out",
            "--beam-size", "5", "--mini-batch", "64", "--maxi-batch", "100", "--normalize", "1",
            "--quiet-translation", *self._threads,
        )  # fmt: skip
        seconds = self._numbers(r"Total time: ([\d.]+)s wall", output, "how long it took")[-1]
        return Translated(self.lines / seconds, self._texts(self.task.folder / "marian.out"))


PEERS: tuple[type[Peer], ...] = (Joey, OpenNMT, Eole, Marian)
#: The names for `--peers`, in the order of `PEERS`.
NAMES = tuple(kind.name for kind in PEERS)


def _template(name: str) -> str:
    """The template of a peer's configuration file, with fields for `Peer._settings`."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def speed(reports: Sequence[float]) -> float:
    """Mean tokens per second of all reports except the first; reports cover equal numbers of updates."""
    later = [report for report in reports[1:] if report > 0]
    return statistics.harmonic_mean(later) if later else reports[0]


def find(kind: type[Peer], given: str | None, task: Task) -> Peer | str:
    """The peer, or the reason why it is not measured."""
    if task.cuda and not kind.on_gpu:
        return f"{kind.title} is measured on a CPU only."
    python = given or os.environ.get(kind.variable)
    if not python:
        return f"{kind.title} is not measured: name the Python of its environment ({kind.variable}=PYTHON)."
    program = f"import {kind.module}, importlib.metadata as m; print('version', m.version({kind.name!r}))"
    try:
        done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{kind.title} is not measured: {python} does not run ({error})."
    match = re.search(r"^version (\S+)", done.stdout, re.MULTILINE)
    if done.returncode or not match:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"{kind.title} is not measured: {python} cannot import it ({reason})."
    # Absolute, because the peer runs in another folder.
    return kind(os.path.abspath(python) if os.path.dirname(python) else python, match[1], task)
