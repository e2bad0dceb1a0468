"""A folder that is replaced is the earlier one or the new one, wherever its process is killed."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.system.errors import UserError
from nmt.system.files import read_whole, replacing_folder


class KilledError(BaseException):
    """Stands for SIGKILL: from then on the process changes nothing more."""


def write(folder: Path, text: str) -> None:
    with replacing_folder(folder, ["a", "b"]) as new:
        for name in ("a", "b"):
            (new / name).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()} if folder.exists() else {}


@pytest.mark.parametrize("call", range(9))
def test_a_kill_leaves_one_or_the_other(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "test"
    write(folder, "old")
    (folder / "own").write_text("of somebody")
    count = 0

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count > call:
                raise KilledError
            return original(*arguments, **named)

        return work

    with monkeypatch.context() as patch:
        for name in ("rename", "chmod"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
        try:
            write(folder, "new")
        except KilledError:
            assert count > call
    left = contents(folder)
    assert left.get("a") == left.get("b")
    assert left.get("a") in ("old", "new", None)
    if left.get("a") is None:
        assert contents(tmp_path / ".test.before") == {"a": "old", "b": "old", "own": "of somebody"}
    with pytest.raises(ZeroDivisionError), replacing_folder(folder, ["a", "b"]):
        raise ZeroDivisionError
    assert contents(folder) == {"a": left.get("a", "old"), "b": left.get("a", "old"), "own": "of somebody"}
    write(folder, "newer")
    assert contents(folder) == {"a": "newer", "b": "newer", "own": "of somebody"}
    assert [path.name for path in tmp_path.iterdir()] == ["test"]


def test_a_folder_that_is_read_meanwhile_is_read_again(tmp_path: Path) -> None:
    folder, reads = tmp_path / "test", list[str]()
    write(folder, "old")

    def read() -> list[str]:
        first = (folder / "a").read_text()
        reads.append(first)
        if len(reads) == 1:
            write(folder, "new")
        elif len(reads) == 2:
            shutil.rmtree(folder)
            write(folder, "newer")
            raise UserError("files of two folders")
        return [first, (folder / "b").read_text()]

    assert read_whole(folder, read) == ["newer", "newer"]
    assert reads == ["old", "new", "newer"]
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "none", (tmp_path / "none" / "a").read_text)
