"""Write docs/api.md, the reference of the Python interface, from the docstrings of its public names.

`python scripts/api_page.py` writes the page, `python scripts/api_page.py --check` fails if the page is out of date.
"""

import argparse
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nmt
from nmt.system.errors import UserError
from nmt.translation.types import Doubt, Translation, Views

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
TITLE = """# Python API

This page is made from the docstrings by `python scripts/api_page.py`. [Using nmt from Python](python.md)
has examples.
"""
#: Classes of arguments and results that are documented in addition to the names of `nmt`.
VALUES = (Translation, Doubt, Views, UserError)
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):")
_ITEM = re.compile(r"    ([\w*]+(?:, [\w*]+)*): (.*)")
_MODULES = re.compile(r"(?:\w+\.)+(?=[A-Za-z])")
_QUOTED_TYPE = re.compile(r"'([A-Z]\w*)'")
_OTHER_PAGE = re.compile(r"docs/([\w-]+\.md)")


def signature(function: object, name: str) -> str:
    """The signature of a function, without `self` and without the modules of types."""
    if not callable(function):
        raise TypeError(f"{name} cannot be called.")
    call_signature = inspect.signature(function)
    parameters = [parameter for parameter in call_signature.parameters.values() if parameter.name != "self"]
    return name + _QUOTED_TYPE.sub(r"\1", _MODULES.sub("", str(call_signature.replace(parameters=parameters))))


def prose(docstring: str) -> Iterator[str]:
    """Yield the lines of a docstring in Markdown; its sections become lists."""
    listing = False
    linked = _OTHER_PAGE.sub(r"[\1](\1)", inspect.cleandoc(docstring))
    for line in linked.splitlines():
        if section := _SECTION.fullmatch(line):
            listing = True
            yield from (f"**{section[1]}**", "")
        elif listing and (item := _ITEM.fullmatch(line)):
            yield f"- `{item[1]}`: {item[2]}"
        elif listing and line.startswith(" "):
            yield f"  {line.strip()}"
        else:
            listing = listing and not line
            yield line


def described(value: object, name: str) -> Iterator[str]:
    """Yield the docstring of a public name in Markdown (ValueError if it has none)."""
    docstring = inspect.getdoc(value)
    if not docstring:
        raise ValueError(f"{name} has no docstring.")
    yield from (*prose(docstring), "")


def methods(kind: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods that a class itself defines, in the order of its source."""
    yield from (
        (name, value) for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")
    )


def page() -> str:
    """The text of the page."""
    lines = [TITLE]
    for name in sorted(nmt.__all__, key=lambda name: (name[0].isupper(), name)):
        value = getattr(nmt, name)
        if not inspect.isclass(value):
            lines += [f"## nmt.{name}", "", f"    {signature(value, f'nmt.{name}')}", "", *described(value, name)]
            continue
        lines += [f"## nmt.{name}", "", *described(value, name)]
        for method, function in methods(value):
            lines += [
                f"### {name}.{method}",
                "",
                f"    {signature(function, method)}",
                "",
                *described(function, method),
            ]
    for value in VALUES:
        lines += [f"## {value.__module__}.{value.__name__}", "", *described(value, value.__name__)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page, or with --check exit with status 1 if it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the page is out of date")
    check: bool = parser.parse_args().check
    text = page()
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/api.md is out of date. Write it again: python scripts/api_page.py")


if __name__ == "__main__":
    main()
