"""A run of each direction."""

from pathlib import Path

import pytest

from tests.small import call, copied, words


@pytest.fixture(scope="module")
def trained(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run that has learnt the language: error rates are kept in it."""
    return copied(trained, tmp_path_factory.mktemp("copy"))


@pytest.fixture(scope="session")
def back(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the other direction that has learnt nothing."""
    folder = tmp_path_factory.mktemp("runs")
    turned = ["data.source=en", "data.target=de"]
    assert call("train", *words(text, folder, "name=back", "trainer.steps=2", *turned)) == 0
    return folder / "back"
