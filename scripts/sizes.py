"""Prints how large files and functions are: `python scripts/sizes.py [--base REVISION]`, beside an earlier revision."""

import argparse
import ast
import io
import statistics
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("nmt", "scripts", "tests")
FEW = 60  # lines of a function


def sources(folder: str, revision: str | None) -> dict[str, str]:
    """The Python files of a folder by name, in the working tree or at a revision."""
    if revision is None:
        return {
            str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.glob(f"{folder}/**/*.py")
        }
    tar = subprocess.run(["git", "archive", revision, folder], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        members = [member for member in archive if member.name.endswith(".py")]
        files = {member.name: archive.extractfile(member) for member in members}
        return {name: file.read().decode("utf-8") for name, file in files.items() if file is not None}


def measures(files: dict[str, str]) -> dict[str, str]:
    """The rows of the table; parameters are counted without self and cls."""
    lines = {name: text.count("\n") for name, text in files.items()}
    lengths: dict[str, int] = {}
    parameters: dict[str, int] = {}
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                where = f"{name}:{node.lineno} {node.name}"
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                lengths[where] = (node.end_lineno or node.lineno) - node.lineno + 1
                parameters[where] = sum(argument.arg not in ("self", "cls") for argument in arguments)

    def most(counts: dict[str, int]) -> str:
        name = max(counts, key=lambda name: counts[name])
        return f"{counts[name]} ({name})"

    return {
        "files": str(len(files)),
        "lines": f"{sum(lines.values()):,}",
        "median file": f"{statistics.median(lines.values()):.0f}",
        "longest file": most(lines),
        "files over 400 lines": str(sum(count > 400 for count in lines.values())),
        "longest function": most(lengths),
        f"functions over {FEW} lines": str(sum(count > FEW for count in lengths.values())),
        "most parameters": most(parameters),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a Markdown table for each folder."""
    parser = argparse.ArgumentParser(prog="sizes.py", description="Prints how large files and functions are.")
    parser.add_argument("--base", metavar="REVISION", help="a revision of git to stand beside the working tree")
    base = parser.parse_args(arguments).base
    columns = [*([base] if base else []), None]
    for folder in FOLDERS:
        tables = [measures(sources(folder, revision)) for revision in columns]
        print(f"\n| {folder}/ | {' | '.join(revision or 'now' for revision in columns)} |")
        print(f"|---|{'---|' * len(columns)}")
        for row in tables[0]:
            print(f"| {row} | {' | '.join(table[row] for table in tables)} |")


if __name__ == "__main__":
    main()
