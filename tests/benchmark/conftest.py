"""What tests of the measuring scripts share: where these lie, and a stand-in for the peers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

# A peer's Python that says what the real ones say.
FAKE = """\
#!/bin/sh
''''exec '{python}' "$0" "$@" # '''
import pathlib, re, sys
words = sys.argv[1:]

def train(file, updates, every, report, model):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    updates, every = (int(re.search(rf"{{key}}: (\\d+)", text)[1]) for key in (updates, every))
    for update in range(every, updates + 1, every):
        print(report.format(update, 10 if update == every else 600))
    path = pathlib.Path(model.format(updates))
    path.parent.mkdir(exist_ok=True)
    path.touch()

if words[0] == "-c":
    print("version 9.8")
elif words[1:3] == ["joeynmt", "train"]:
    report = "Epoch   1, Step: {{:8d}}, Batch Acc: 0.100000, Tokens per Sec: {{:8.0f}}, Lr: 0.001"
    train("joey.yaml", "updates", "logging_freq", report, "joey/{{}}.ckpt")
elif words[1:3] == ["joeynmt", "test"]:
    lines = pathlib.Path("text.de").read_text(encoding="utf-8")
    pathlib.Path("joey.out.test").write_text(lines, encoding="utf-8")
    print("Generation took 0.1000[sec].\\nGeneration took 0.5000[sec].")
elif words[1] == "onmt.bin.train":
    report = "Step {{:2d}}/    6; acc: 1.0; ppl: 9.0; bsz:  123/ 119/ 8; 650/{{:3.0f}} tok/s;     20 sec;"
    train("onmt.yaml", "train_steps", "report_every", report, "onmt_model_step_{{}}.pt")
elif words[1] == "onmt.bin.translate":
    assert pathlib.Path(words[words.index("-model") + 1]).exists()
    lines = pathlib.Path("text.de").read_text(encoding="utf-8")
    pathlib.Path("onmt.out").write_text(lines, encoding="utf-8")
    print("[x INFO] Total translation time (s): 0.0\\n[x INFO] Average translation time (ms): 4.0")
else:
    sys.exit(3)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that pretends to have the peers installed."""
    path = tmp_path / "bin" / "python"
    path.parent.mkdir()
    path.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return str(path)
