"""A folder for the Hub: what leaves a run, and that it translates as the run does. Nothing here uses a network."""

import shutil
import socket
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

import nmt
from nmt.hub import HubTranslator
from nmt.runs.run import Run
from nmt.system.errors import UserError
from tests.small import call, copied, snapshot

SENTENCES = ["eins zwei", "rot und blau", "haus"]


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(scope="module")
def saved(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was scored."""
    here = tmp_path_factory.mktemp("hub")
    run = shutil.copytree(trained, here / "run")
    assert call("evaluate", f"run={run}", "pictures=0", "data=run") == 0
    folder = here / "saved"
    HubTranslator(run, "device=cpu").save_pretrained(folder)
    return folder


def texts(translator: nmt.RunTranslator) -> list[str]:
    return [translation.text for translation in translator.translate(SENTENCES)]


def test_it_translates_as_the_run_does(saved: Path, trained: Path) -> None:
    expected = texts(nmt.load(trained))
    loaded = HubTranslator.from_pretrained(saved, "device=cpu")
    assert texts(loaded) == expected
    assert loaded.translate(SENTENCES)[0].links()
    (saved.parent / "pairs.tmx").write_text(
        '<tmx version="1.4"><header srclang="*"/><body><tu><tuv xml:lang="en"><seg>kept</seg></tuv>'
        '<tuv xml:lang="de"><seg>haus</seg></tuv></tu></body></tmx>'
    )
    assert [each.text for each in loaded.translate(["haus"], memory=saved.parent / "pairs.tmx")] == ["kept"]
    assert texts(nmt.load(saved)) == expected  # a run for the commands, too
    assert call("check", f"run={saved}") == 0


def test_nothing_else_leaves_the_run(saved: Path, trained: Path) -> None:
    assert {path.relative_to(saved).as_posix() for path in saved.rglob("*") if path.is_file()} == {
        *("README.md", "best.safetensors", "checksums.json", "config.json", "config.yaml", "history.jsonl"),
        *("lexicon.safetensors", "words.safetensors", "overrides.json", "run.json", "tokenizer/tokenizer.model"),
    }
    assert "examples" not in Run(saved).facts(), "no text of the validation set"
    places = [str(Path.cwd()).encode(), str(trained.parents[2]).encode(), str(Path.home()).encode(), b"train.de"]
    for path in saved.rglob("*"):
        if path.suffix in (".json", ".yaml", ".md", ".jsonl"):
            assert not [place for place in places if place in path.read_bytes()], path


def test_the_scores_of_the_card_are_in_the_form_of_the_hub(saved: Path) -> None:
    """As the library reads them: a result for each metric, with the signature that it was computed with."""
    data = ModelCard.load(saved / "README.md").data
    scores = Run(saved.parent / "run").scores("test")
    assert data.eval_results is not None
    assert [(each.metric_type, each.metric_value, each.metric_args) for each in data.eval_results] == [
        (metric, round(scores[metric]["value"], 2), {"signature": scores[metric]["signature"]})
        for metric in ("bleu", "chrf", "ter")
    ]
    assert {(each.task_type, each.dataset_split) for each in data.eval_results} == {("translation", "test")}
    assert "tok:13a" in data.eval_results[0].metric_args["signature"]
    assert data.metrics == ["bleu", "chrf", "ter"]


def test_a_licence_is_unknown_until_somebody_chooses_one(saved: Path, tmp_path: Path) -> None:
    def licence(folder: Path) -> object:
        return ModelCard.load(folder / "README.md").data.license

    assert licence(saved) == "unknown"
    translator = HubTranslator.from_pretrained(saved, "device=cpu")
    translator.save_pretrained(tmp_path / "again", model_card_kwargs={"license": "cc-by-4.0"})
    one, other = ((folder / "README.md").read_text(encoding="utf-8") for folder in (saved, tmp_path / "again"))
    assert other == one.replace("license: unknown", "license: cc-by-4.0")
    chosen = HubTranslator.from_pretrained(tmp_path / "again", "device=cpu")
    chosen.save_pretrained(tmp_path / "kept")
    assert licence(tmp_path / "kept") == "cc-by-4.0"


def test_the_card_of_a_run_without_attention_speaks_of_none(unattentive: Path) -> None:
    card = str(HubTranslator(unattentive, "device=cpu").generate_model_card())
    assert "gru encoder, no attention;" in card
    assert "print(translation.text)" in card
    assert "heatmap" not in card


def test_nothing_of_another_run_stays_and_the_run_itself_is_not_written_over(
    trained: Path, saved: Path, tmp_path: Path
) -> None:
    folder, run = tmp_path / "taken", copied(trained, tmp_path)
    shutil.copytree(saved, folder)
    (folder / "tokenizer" / "source.model").write_bytes(b"of another run")
    (folder / "doubt.json").write_text("{}", encoding="utf-8")
    (run / "doubt.json").unlink(missing_ok=True)
    before = snapshot(run)
    HubTranslator(run, "device=cpu").save_pretrained(folder)
    assert not (folder / "tokenizer" / "source.model").exists()
    assert not (folder / "doubt.json").exists()
    assert texts(HubTranslator.from_pretrained(folder, "device=cpu")) == texts(nmt.load(trained))
    with pytest.raises(UserError, match="is the run itself"):
        HubTranslator(run, "device=cpu").save_pretrained(run)
    with pytest.raises(UserError, match="is a run that can be resumed"):
        HubTranslator(saved, "device=cpu").save_pretrained(run)
    with pytest.raises(UserError, match="the best weights are saved"):
        HubTranslator(run, "device=cpu", "checkpoint=last").save_pretrained(tmp_path / "last")
    assert snapshot(run) == before


def test_a_repository_of_the_cache_is_read_through_its_links(saved: Path, tmp_path: Path, trained: Path) -> None:
    """As the library keeps it: files of contents, and a snapshot of links to them."""
    repository, revision = tmp_path / "models--owner--name", "0" * 40
    snapshot_folder = repository / "snapshots" / revision
    for number, path in enumerate(sorted(path for path in saved.rglob("*") if path.is_file())):
        blob = repository / "blobs" / str(number)
        blob.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, blob)
        link = snapshot_folder / path.relative_to(saved)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (snapshot_folder / "evil.py").write_text("raise SystemExit")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    loaded = HubTranslator.from_pretrained("owner/name", cache_dir=tmp_path, local_files_only=True)
    assert texts(loaded) == texts(nmt.load(trained))
    loaded.save_pretrained(tmp_path / "again")
    kept = ("README.md", "best.safetensors", "config.yaml", "run.json", "tokenizer/tokenizer.model")
    one, other = snapshot(saved), snapshot(tmp_path / "again")
    assert all(one[name] == other[name] for name in kept)
    assert not any("evil" in name for name in other)


def test_mistakes_are_told(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no folder owner/missing, and the Hub"):
        HubTranslator.from_pretrained("owner/missing", cache_dir=tmp_path, local_files_only=True)
    damaged = shutil.copytree(saved, tmp_path / "damaged")
    data = bytearray((damaged / "best.safetensors").read_bytes())
    data[-1] ^= 1
    (damaged / "best.safetensors").write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        HubTranslator.from_pretrained(damaged)
