"""Weights that the operating system cannot write end with its reason, not with that of a library."""

import resource
from pathlib import Path

import pytest

from nmt.model.weights import save_weights
from nmt.system.errors import UserError
from tests.catalogue import model


def test_weights_beyond_the_file_size_limit_are_refused_and_leave_no_file(tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(UserError) as caught:
            save_weights(path, model())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(caught.value).startswith(f"Cannot write {path}: File too large. ")
    assert list(tmp_path.iterdir()) == []
