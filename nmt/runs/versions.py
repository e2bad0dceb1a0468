"""Versions of this program and of its libraries, for the facts of a run."""

import functools
import hashlib
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.config.configuration import config_folder

LIBRARIES = ("torch", "sentencepiece", "sacrebleu", "datasets", "hydra-core", "numpy", "safetensors")


def versions() -> dict[str, str]:
    """Versions of Python, nmt and the libraries."""
    by_package = {"python": platform.python_version(), "platform": platform.platform(), "nmt": __version__}
    return by_package | {name: _version(name) for name in LIBRARIES}


@functools.cache
def code_revision() -> str:
    """A hash of this program's Python files and yaml files."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for root, pattern in ((package, "*.py"), (config_folder(), "*.yaml")):
        for path in sorted(root.rglob(pattern)):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def version_of(facts: Mapping[str, Any]) -> str:
    """The version of the program that made a run: its number and the hash of its code, if known."""
    number, code = str(facts.get("versions", {}).get("nmt", "")), str((facts.get("code") or [""])[-1])
    known = [f"nmt {number}"] * bool(re.fullmatch(r"[\w.+-]{1,40}", number))
    return ", ".join([*known, *[f"code {code}"] * bool(re.fullmatch(r"[0-9a-f]{12}", code))]) or "unknown"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
