"""A folder for the Hub: what leaves a run, and that it translates as the run does. Nothing here uses a network."""

import shutil
import socket
from pathlib import Path

import pytest

import nmt
from nmt.errors import UserError
from nmt.hub import HubTranslator
from tests.pipeline.small import call, snapshot

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
    assert texts(nmt.load(saved)) == expected  # a run for the commands, too
    assert call("check", f"run={saved}") == 0


def test_nothing_else_leaves_the_run(saved: Path, trained: Path) -> None:
    assert {path.relative_to(saved).as_posix() for path in saved.rglob("*") if path.is_file()} == {
        *("README.md", "best.safetensors", "checksums.json", "config.json", "config.yaml", "history.jsonl"),
        *("lexicon.safetensors", "overrides.json", "run.json", "tokenizer/tokenizer.model"),
    }
    places = [str(Path.cwd()).encode(), str(trained.parent).encode(), str(Path.home()).encode(), b"train.de"]
    for path in saved.rglob("*"):
        if path.suffix in (".json", ".yaml", ".md", ".jsonl"):
            assert not [place for place in places if place in path.read_bytes()], path


def test_the_card_says_what_it_is_and_how_good(saved: Path) -> None:
    card = (saved / "README.md").read_text(encoding="utf-8")
    metadata, body = card.removeprefix("---\n").split("\n---\n", 1)
    assert {"- de", "- en", "library_name: nmt", "pipeline_tag: translation"} <= {*metadata.splitlines()}
    assert "type: bleu" in metadata
    assert "A translator from `de` to `en`: gru encoder, bahdanau decoder, additive score" in body
    assert "| test | 20 | " in body
    assert "tok:13a" in body
    assert "300 pairs" in body


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
