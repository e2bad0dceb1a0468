"""eole and Marian as peers: a program in their place takes the configuration, and says what they say."""

import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from benchmarking.peers import PEERS, Eole, Marian, Peer, PeerError, Task, find
from benchmarking.settings import WIRINGS, Sizes

#: In place of a Python with eole: writes what was asked for, and says eole's lines.
PROGRAM = """#!{python}
import sys
from pathlib import Path

words = sys.argv[1:]
if words[0] == "-c":
    print("version 0.6.4")
elif words[2] == "train":
    for tokens in (10, 200, 300):
        print(f"Step 10/ 60; acc: 1.0; ppl: 9.0; bsz:  90/  80/80; 999/{{tokens:3d}} tok/s;      1 sec;")
elif "-gpu_ranks" in words:
    sys.exit("no GPU here")
else:
    Path("eole.out").write_text(Path(words[words.index("-src") + 1]).read_text().upper())
    print("[2026] Average prediction time (ms): 12.5")
"""
#: In place of a Python with Marian.
MARIAN = """#!{python}
import os
import sys
from pathlib import Path

words = sys.argv[1:]
if words[0] == "-c":
    print("version 1.12.42")
elif words[2] == "train":
    assert os.environ["OMP_NUM_THREADS"] == "1" and words[-2:] == ["--cpu-threads", "2"], words
    for words_a_second in (10, 200, 300):
        print(f"[data] Ep. 1 : Up. 10 : Sen. 80 : Cost 9.00 : Time 1.00s : {{words_a_second}}.00 words/s : gNorm 1.0")
else:
    Path("marian.out").write_text(Path(words[words.index("-i") + 1]).read_text().upper())
    print("[date] Total time: 0.02500s wall")
"""


def found(kind: type[Peer], program: str, tmp_path: Path, *, cuda: bool = False) -> Peer | str:
    """The peer, a program in its place."""
    data = tmp_path / "data"
    data.mkdir()
    for language in ("de", "en"):
        (data / f"test.{language}").write_text("eins\nzwei\ndrei\n")
    (data / "counted.txt").write_text("\u2581ein\t1\ns\t1\n", encoding="utf-8")
    (data / "tokenizer.model").write_bytes(b"pieces")
    python = tmp_path / "python"
    python.write_text(program.format(python=sys.executable))
    python.chmod(0o755)
    sizes = Sizes(**{**dict.fromkeys(Sizes._fields, 8), "embedding": 6})
    return find(kind, str(python), Task(data, tmp_path / kind.name, ("de", "en"), sizes, 80, 50, 2, cuda, 2))


@pytest.fixture
def peer(tmp_path: Path) -> Eole:
    made = found(Eole, PROGRAM, tmp_path)
    assert isinstance(made, Eole)
    return made


def test_marian_is_configured_and_its_speeds_are_read(tmp_path: Path) -> None:
    marian = found(Marian, MARIAN, tmp_path)
    assert isinstance(marian, Marian)
    assert WIRINGS[marian.beside].overrides[0] == "decoder=conditional"
    assert marian.train(60) == pytest.approx(2 / (1 / 200 + 1 / 300))
    settings = yaml.safe_load((marian.task.folder / "marian.yaml").read_text("utf-8"))
    assert settings | {"dim-emb": 6, "dim-rnn": 8, "mini-batch": 80, "after": "60u", "disp-freq": "10u"} == settings
    assert [Path(path).read_bytes() for path in settings["vocabs"]] == [b"pieces"] * 2
    translated = marian.translate()
    assert translated.sentences_per_second == 80
    assert translated.texts == ["EINS", "ZWEI"]


def test_marian_is_not_measured_on_a_gpu(tmp_path: Path) -> None:
    assert found(Marian, MARIAN, tmp_path, cuda=True) == "Marian is measured on a CPU only."


def test_eole_is_configured_and_its_speeds_are_read(peer: Eole) -> None:
    """The first report is left out."""
    assert Eole in PEERS
    assert peer.version == "0.6.4"
    assert peer.train(60) == pytest.approx(2 / (1 / 200 + 1 / 300))
    settings = yaml.safe_load((peer.task.folder / "eole.yaml").read_text("utf-8"))
    assert settings["model"]["embeddings"]["word_vec_size"] == 6
    assert settings["training"] | {"batch_size": 80, "train_steps": 60, "gpu_ranks": []} == settings["training"]
    assert settings["training"]["model_path"] == str(peer.task.folder / "eole_model")
    assert (peer.task.folder / "vocab.txt").read_text("utf-8") == "\u2581ein\ns\n"
    translated = peer.translate()
    assert translated.sentences_per_second == 80
    assert translated.texts == ["EINS", "ZWEI"]


def test_eole_on_a_gpu_is_told_so_and_its_failure_is_said(peer: Eole) -> None:
    peer.task = peer.task._replace(cuda=True)
    peer.train(60)
    assert yaml.safe_load((peer.task.folder / "eole.yaml").read_text("utf-8"))["training"]["gpu_ranks"] == [0]
    with pytest.raises(PeerError, match="no GPU here"):
        peer.translate()
