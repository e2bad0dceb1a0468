"""Each test of the command line stands in an empty folder and sees a small configuration tree."""

import textwrap
from pathlib import Path

import pytest

from nmt.config import configuration
from tests.config.tree import TREE


@pytest.fixture(autouse=True)
def tree(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small configuration tree with every kind of node, and an empty folder to stand in."""
    folder = tmp_path_factory.mktemp("tree")
    for name, text in TREE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.setattr(configuration, "config_folder", lambda: folder)
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))
    return folder
