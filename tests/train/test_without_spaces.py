"""Text without spaces, in files as people have them: languages, vocabularies and scores are right without settings."""

import json
from pathlib import Path

import pytest

from nmt.runs.run import Run
from tests.data.generated import generated
from tests.small import Capture, call, write_lines

pytestmark = pytest.mark.long


SHORT = ["trainer.epochs=null", "trainer.steps=2", "trainer.tensorboard=false", "threads=1", "device=cpu"]
CODES = {"zh_Hans": "cmn", "ja": "jpn", "th": "tha"}
ATTRIBUTION = "CC-BY 2.0 (France) Attribution: tatoeba.org #1276 (CK) & #2481 (Martha)"


def tatoeba(folder: Path, locale: str, pairs: int = 300) -> Path:
    """A file as Tatoeba's are: English, the other language, the attribution."""
    train = generated("phrases", target=locale, train=pairs)["train"]
    lines = [f"{pair.source}\t{pair.target}\t{ATTRIBUTION}" for _, pair, _ in train]
    return write_lines(folder / f"{CODES[locale]}.txt", lines)


def scores(run: Run, folder: str = "evaluation") -> dict[str, object]:
    """The record of the test set."""
    record: dict[str, object] = json.loads((run.folder / folder / "test" / "scores.json").read_text(encoding="utf-8"))
    return record


@pytest.mark.parametrize(
    ("locale", "script", "tokenizers"),
    [("zh_Hans", "Han", {"zh"}), ("ja", "Japanese", {"ja-mecab", "char"}), ("th", "Thai", {"char"})],
)
def test_a_file_of_tatoeba_trains_and_is_scored_by_its_script(
    locale: str, script: str, tokenizers: set[str], here: Path, capfd: Capture
) -> None:
    path = tatoeba(here, locale)
    assert call("train", f"data.files=[{path.name}]", "name=mine", *SHORT) == 0
    run = Run(here / "checkpoints" / "mine")
    err = capfd.readouterr().err
    assert f"en to {CODES[locale]}: 300 pairs from {path.name}" in err
    assert f"the source is in Latin script, the target in {script}" in err
    assert "BLEU treats it as" not in err, "the name of the file and the text agree"
    config = run.config()
    assert (config.tokenizer.joint, config.model.tie_embeddings) == (False, "target")
    assert call("evaluate", f"run={run.folder}", "pictures=0", "extra_length=3") == 0
    record = scores(run)
    assert (record["source_language"], record["target_language"]) == ("en", CODES[locale])
    assert any(f"tok:{tokenizer}|" in record["bleu"]["signature"] for tokenizer in tokenizers)  # type: ignore[index]
    # A run that goes on keeps its vocabularies.
    assert call("train", "name=mine", "resume=true", "trainer.steps=3") == 0


def test_unnamed_text_is_scored_by_its_script_and_evaluate_can_be_told(here: Path, capfd: Capture) -> None:
    path = tatoeba(here, "ja").rename(here / "mine.tsv")
    assert call("train", f"data.files={path.name}", "name=mine", *SHORT) == 0
    run = Run(here / "checkpoints" / "mine")
    err = capfd.readouterr().err
    assert "The target text is in Japanese script: BLEU treats it as ja. Override: data.target=CODE, or later" in err
    line = (f"run={run.folder}", "pictures=0", "extra_length=3")
    assert call("evaluate", *line) == 0
    assert scores(run)["target_language"] == "ja"
    assert call("evaluate", *line, "languages=[english,cn]") == 0
    record = scores(run)
    assert (record["source_language"], record["target_language"]) == ("en", "zh")
    assert "tok:zh|" in record["bleu"]["signature"]  # type: ignore[index]
    assert call("evaluate", *line, "languages=[en]") == 1
    assert "languages=" in capfd.readouterr().err
