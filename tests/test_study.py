"""The page of the study and what other pages quote are what its records say."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import attention_study
from study import output, records

from nmt.system.errors import UserError

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def study() -> output.Study:
    folder = ROOT / records.FOLDER
    further = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in output.FURTHER)
    return output.Study(records.load_all(folder), *further)


def test_the_pages_are_those_of_the_records(study: output.Study) -> None:
    pages = attention_study.pages(study, ROOT)
    assert set(pages) == {ROOT / "docs/attention-study.md", *(ROOT / path for path in attention_study.QUOTING)}
    for path, text in pages.items():
        assert path.read_text("utf-8") == text, f"{path.name}: run python scripts/attention_study.py report"


def test_the_records_are_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / records.FOLDER).glob("*.parquet")) <= 3_000_000


def test_a_field_that_the_study_does_not_have_is_named(study: output.Study) -> None:
    with pytest.raises(UserError, match="luong-genral"):
        study.filled("{converged: luong-genral - none}")
    for field in ("{nonsense short: bahdanau}", "{nonsense short: bahdanau - none}"):
        with pytest.raises(UserError, match="nonsense"):
            study.filled(field)
