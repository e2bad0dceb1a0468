"""An installed wheel works from any directory, configurations included."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(folder: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working tree, built without network."""
    pytest.importorskip("hatchling", reason="the wheel is built with hatchling, one of the dev extras")
    folder = tmp_path_factory.mktemp("wheel")
    # -P: a folder called `build` in the working tree is not the module of that name.
    run(ROOT, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a space in its name into which the wheel is installed."""
    target = tmp_path_factory.mktemp("somewhere else") / "site packages"
    with zipfile.ZipFile(wheel) as archive:  # what installing a wheel of pure Python comes to
        archive.extractall(target)
    return target


def test_the_wheel_holds_every_configuration_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    configs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").rglob("*.yaml")}
    assert {f"nmt/{name}" for name in configs} <= names
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nmt").rglob("*.py")}
    assert modules <= names
    shipped = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nmt" / "data" / "shipped").iterdir()}
    assert shipped <= names
    viewer = {path.relative_to(ROOT).as_posix() for path in (ROOT / "nmt" / "viewer" / "static").iterdir()}
    assert viewer <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "configs/", "data/", "checkpoints/")) for name in names)


@pytest.mark.long
def test_the_installed_verbs_work_from_another_directory(installed: Path, tmp_path: Path) -> None:
    program = (
        "import nmt; from nmt.config.composition import compose; "
        "print(nmt.__file__); print(compose('train', ['encoder=lstm']).encoder._target_)"
    )
    place, target = run(tmp_path, "-c", program, PYTHONPATH=str(installed)).splitlines()
    assert Path(place).is_relative_to(installed)
    assert target.startswith("nmt.model.")
    for verb in ("train", "translate", "evaluate"):
        told = run(tmp_path, "-m", f"nmt.{verb}", "--help", PYTHONPATH=str(installed))
        assert f"usage: python -m nmt.{verb}" in told
    assert "nmt.train" in run(tmp_path, "-m", "nmt", PYTHONPATH=str(installed))
    assert list(tmp_path.iterdir()) == []
