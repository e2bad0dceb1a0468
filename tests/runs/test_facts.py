"""Facts of all kinds in the files of a run: a command works, or ends with one message."""

import contextlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.runs.run import Run
from nmt.system import facts
from nmt.system.errors import UserError
from nmt.system.foreign import parse_json
from tests.small import call, write_lines

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers(-(10**400), 10**400)
    | st.sampled_from([-3, 0, 1, 1e6, 1e300, 2**53, 10**20])
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "x" * 10_000, "${oc.env:HOME}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
OFTEN = settings(max_examples=100, deadline=None, suppress_health_check=[*HealthCheck])
SELDOM = settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with an evaluation. Whoever changes a file writes it back."""
    copy = Path(shutil.copytree(trained, tmp_path_factory.mktemp("facts") / "numbers"))
    assert call("evaluate", f"run={copy}", "data=run", "pictures=0", "device=cpu", "threads=1") == 0
    write_lines(copy.parent / "in.txt", ["eins zwei"])
    return copy


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in containers, as its container and its key."""
    for key in [*tree] if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from places(tree[key])


@contextlib.contextmanager
def changed(path: Path, data: st.DataObject) -> Iterator[None]:
    """A JSON file, or a file of JSON lines, with another value at one place."""
    content = path.read_text(encoding="utf-8")
    lines = content.splitlines() if path.suffix == ".jsonl" else [content]
    at = data.draw(st.integers(0, len(lines) - 1))
    tree = json.loads(lines[at])
    holder, key = data.draw(st.sampled_from([*places(tree)]))
    holder[key] = data.draw(VALUES)
    path.write_text("\n".join([*lines[:at], json.dumps(tree), *lines[at + 1 :]]) + "\n", encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(content, encoding="utf-8")


def ends_well(verb: str, *line: str) -> None:
    """A verb ends with status 0, or with status 1 and one message."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = call(verb, *line)
    assert status == 0 or ((status == 1 and f"nmt.{verb}: " in errors.getvalue()) or verb == "check")
    assert "Traceback" not in errors.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("verb", ["translate", "check", "train"])
def test_a_command_works_with_a_fact_or_names_it(verb: str, run: Path) -> None:
    line = {
        "translate": [f"run={run}", f"input={run.parent / 'in.txt'}", "device=cpu", "threads=1"],
        "check": [f"run={run}"],
        "train": [f"name={run.name}", f"checkpoints={run.parent}", "resume=true"],  # it is finished
    }[verb]

    @SELDOM
    @given(st.data())
    def check(data: st.DataObject) -> None:
        with changed(run / "run.json", data):
            ends_well(verb, *line)

    check()


READERS: dict[str, Callable[[Path], object]] = {
    "run.json": lambda run: Run(run).facts(),
    "history.jsonl": lambda run: [f"{entry['valid_bleu']:.2f} {entry['step']:,}" for entry in Run(run).history()],
    "evaluation/test/scores.json": lambda run: [
        f"{Run(run).scores('test')[metric]['value']:.2f}" for metric in ("bleu", "chrf", "ter")
    ],
}


def compared(run: Path) -> object:
    return pytest.importorskip("nmt.compare.reader").read_result("run", Run(run), "test")


def served(run: Path) -> object:
    rows = pytest.importorskip("nmt.serve.corpus_rows").described(Run(run), None, Run(run))
    return json.dumps(rows, allow_nan=False, ensure_ascii=False).encode()


READERS |= {f"evaluation/test/{name}.json ": compared for name in ("scores", "sentences", "references", "words")}
READERS |= {f"evaluation/test/{name}.json  ": served for name in ("sentences", "attention")}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_a_fact_or_names_its_file(name: str, run: Path) -> None:
    @OFTEN
    @given(st.data())
    def check(data: st.DataObject) -> None:
        path = run / name.strip()
        with changed(path, data), contextlib.suppress(UserError):
            READERS[name](run)

    check()


@OFTEN
@given(VALUES)
def test_json_that_is_read_can_be_written_and_computed_with(value: object) -> None:
    with contextlib.suppress(UserError):
        content = parse_json(Path("file"), json.dumps(value))
        json.dumps(content, allow_nan=False, ensure_ascii=False).encode()
        for holder, key in places([content]):
            assert not isinstance(holder[key], int) or float(holder[key]) is not None


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "1e999", "1" * 21, "-" + "9" * 400, '"\\ud83d"', "[" * 9999])
def test_json_that_no_program_writes_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="file is damaged"):
        parse_json(Path("file"), text)


@pytest.mark.parametrize(
    ("fact", "value", "rule"),
    [
        ("length_ratio", 1e6, "length_ratio must be a number from 0 to 50"),
        ("length_ratio", True, "length_ratio must be a number from 0 to 50"),
        ("languages", ["en"], "languages must be a list of 2, each text of 5,000 characters at most"),
        ("precision", {"valid_bleu": {"bf16": None}}, "precision.valid_bleu.bf16 must be a number"),
    ],
)
def test_a_fault_names_the_fact_and_the_rule(fact: str, value: object, rule: str) -> None:
    assert facts.fault({"status": "finished", fact: value}, facts.RUN).startswith(rule)
    assert facts.fault({"status": "finished"}, facts.RUN) == ""
