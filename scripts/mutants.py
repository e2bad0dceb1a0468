"""Mutation test: puts semantic errors into the code, one at a time, and lists those that the tests do not detect.

    python scripts/mutants.py [--list] [--only TEXT,...] [--jobs N]

`tests/mutants.txt` lists the mutants: the error, the function to change (by its name in `nmt`, in any file), the
expression or statement with its replacement, and the tests that should fail. Code is compared as syntax, so formatting
does not matter. Everything runs in a temporary copy of the tree. The exit status is 1 if a mutant survives or no longer
applies, and 2 if a test fails without any mutant.

mutmut and cosmic-ray change operators and constants by rule. This gives thousands of mutants, of which many are
equivalent, and none is like "every head sees the coverage of head 0".
"""

import argparse
import ast
import functools
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.txt"
#: Files and folders of a copy of the tree.
COPIED = ("nmt", "configs", "docs", "tests", "scripts", "pyproject.toml", "README.md", "CONTRIBUTING.md")
SECONDS = 1800.0  # time limit for the tests of a mutant, after which they count as failed


class Mutant(NamedTuple):
    """One error: in the function `where`, `old` becomes `new`; `tests` are paths below tests/."""

    title: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]


class Result(NamedTuple):
    """The result of a mutant: "killed", "SURVIVED", "STALE" (it no longer applies) or "ERROR"; the test or reason."""

    mutant: Mutant
    status: str
    detail: str
    seconds: float


class Stale(Exception):  # noqa: N818  a state of the table, not a failure of the program
    """A mutant that no longer applies, with the reason."""


def parse(text: str) -> list[Mutant]:
    """Parse the table: blocks between empty lines; "tests: PATH ..." applies to the blocks below it; # is a comment.

    The block of a mutant has its title, the function, lines of "- old", and lines of "+ new".
    """
    mutants: list[Mutant] = []
    tests: tuple[str, ...] = ()
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text).strip()):
        if block.startswith("tests:"):
            tests = tuple(block.removeprefix("tests:").split())
            continue
        title, where, *lines = block.splitlines()
        old, new = ("\n".join(line[2:] for line in lines if line.startswith(sign)) for sign in "-+")
        if not (old and new and tests and len(lines) == old.count("\n") + new.count("\n") + 2):
            raise ValueError(f"{TABLE.name}: cannot read the mutant {title!r}")
        mutants.append(Mutant(title, where.strip(), old, new, tests))
    return mutants


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield all functions below a node with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}{node.name}" if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        if isinstance(node, ast.FunctionDef):
            yield name, node
        yield from functions(node, f"{name}." if name else prefix)


@functools.cache
def functions_of(module: str) -> list[tuple[str, ast.AST]]:
    """`functions` for the source text of a module."""
    return list(functions(ast.parse(module)))


def syntax(code: str) -> ast.expr | ast.stmt:
    """Parse `code`, which must be one expression or statement."""
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def apply(mutant: Mutant, package: Path) -> tuple[Path, str]:
    """The file that the mutant changes and its new text; raises `Stale` unless there is exactly one place."""
    old = syntax(mutant.old)
    places, known = [], False
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name, function in functions_of(text):
            if name == mutant.where:
                known = True
                same = (node for node in ast.walk(function) if isinstance(node, type(old)))
                places += [(path, text, node) for node in same if ast.dump(node) == ast.dump(old)]
    if len(places) != 1:
        reason = f"the code stands in it {len(places)} times" if known else "there is no such function"
        raise Stale(f"{mutant.where}: {reason}")
    ((path, text, node),) = places
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    # Columns count bytes.
    lines = text.encode().splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    new = f"({mutant.new})" if isinstance(old, ast.expr) else mutant.new
    return path, (before + new.encode() + after).decode()


def run_tests(tree: Path, tests: Sequence[str], seconds: float | None = SECONDS) -> tuple[int, str]:
    """Run tests; return pytest's exit status (1 after a timeout), and the first failed test or the last output."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
    try:
        done = subprocess.run(
            [*command, *(f"tests/{test}" for test in tests)],
            cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"no end after {seconds} seconds"
    failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", done.stdout, re.M)
    return done.returncode, failed[1] if failed else (done.stdout + done.stderr)[-1000:].strip()


def judge(mutant: Mutant, tree: Path) -> tuple[str, str]:
    """Try a mutant in a copy of the tree; return status and detail of its `Result`."""
    try:
        path, text = apply(mutant, tree / "nmt")
    except Stale as reason:
        return "STALE", str(reason)
    before = path.read_bytes()
    path.write_text(text, encoding="utf-8")
    try:
        status, detail = run_tests(tree, mutant.tests)
    finally:
        path.write_bytes(before)
    if status == 0:
        return "SURVIVED", " ".join(mutant.tests)
    return "killed" if status == 1 else "ERROR", detail


def copy_tree(root: Path, into: Path) -> Path:
    """Copy the parts of the tree that tests need into a new folder; return the folder."""
    into.mkdir()
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (root / name).exists():
            shutil.copy(root / name, into / name)
    return into


def locate_all(mutants: Sequence[Mutant], root: Path) -> Iterator[Result]:
    """Yield for each mutant whether it applies, and in which file."""
    for mutant in mutants:
        try:
            yield Result(mutant, "applies", str(apply(mutant, root / "nmt")[0].relative_to(root)), 0.0)
        except Stale as reason:
            yield Result(mutant, "STALE", str(reason), 0.0)


def try_all(mutants: Sequence[Mutant], root: Path, jobs: int) -> Iterator[Result]:
    """Try each mutant in one of `jobs` copies of the tree; yield the results as they arrive.

    Raises:
        RuntimeError: a test fails without any mutant.
    """
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        copies = [copy_tree(root, Path(folder, str(number))) for number in range(jobs)]
        status, detail = run_tests(copies[0], sorted({test for mutant in mutants for test in mutant.tests}), None)
        if status:
            raise RuntimeError(f"A test fails without any mutant: {detail}")
        free: queue.Queue[Path] = queue.Queue()
        for tree in copies:
            free.put(tree)

        def work(mutant: Mutant) -> Result:
            tree, started = free.get(), time.monotonic()
            try:
                return Result(mutant, *judge(mutant, tree), time.monotonic() - started)
            finally:
                free.put(tree)

        for done in as_completed([pool.submit(work, mutant) for mutant in mutants]):
            yield done.result()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, table: Path = TABLE) -> int:
    """Try the selected mutants; return the exit status."""
    parser = argparse.ArgumentParser(prog="mutants.py", description="Lists mistakes that the tests do not notice.")
    parser.add_argument("--list", action="store_true", help="name the mutants and whether they apply; run nothing")
    parser.add_argument("--only", metavar="TEXT,...", help="mutants whose title, function or tests contain a TEXT")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="test runs at a time, a core each (1)")
    options = parser.parse_args(arguments)
    mutants = parse(table.read_text(encoding="utf-8"))
    if options.only:
        texts = options.only.split(",")
        mutants = [entry for entry in mutants if any(text in " ".join((*entry[:2], *entry.tests)) for text in texts)]
    counts: Counter[str] = Counter()
    try:
        for result in locate_all(mutants, root) if options.list else try_all(mutants, root, options.jobs):
            counts[result.status] += 1
            mutant = result.mutant
            print(
                f"{result.status:8} {mutant.title} ({mutant.where}): {result.detail} [{result.seconds:.0f} s]",
                flush=True,
            )
    except RuntimeError as error:
        print(error)
        return 2
    print(f"{len(mutants)} mutants: {', '.join(f'{count} {status}' for status, count in counts.items())}")
    return int(not set(counts) <= {"killed", "applies"})


if __name__ == "__main__":
    raise SystemExit(main())
