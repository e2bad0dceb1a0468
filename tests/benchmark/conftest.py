"""What tests of the measuring scripts share: where these lie, and a stand-in for the peers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

# A peer's Python that says what the real ones say. By its log an update takes 2 seconds and keeping weights 7.
FAKE = """\
#!/bin/sh
''''exec '{python}' "$0" "$@" # '''
import datetime, os, pathlib, re, sys
words = sys.argv[1:]
second = datetime.timedelta(seconds=1)

def train(file, updates, every, kept, began, report, files):
    text = pathlib.Path(file).read_text(encoding="utf-8")
    updates, every, kept = (int(re.search(rf"{{key}}: (\\d+)", text)[1]) for key in (updates, every, kept))
    now = datetime.datetime(2030, 1, 1, 0, 0, 3, tzinfo=datetime.UTC)
    stamp = lambda: now.strftime("%Y-%m-%d %H:%M:%S,000")
    print(began.format(stamp()))
    for update in range(1, updates + 1):
        now += 2 * second
        if update % every == 0:
            print(report.format(stamp(), update, 10 if update == every else 600))
        if update % kept == 0 or update == updates:
            for own, seconds in files.items():
                now += seconds * second
                path = pathlib.Path(own.format(update))
                path.parent.mkdir(exist_ok=True)
                path.touch()
                os.utime(path, (now.timestamp(), now.timestamp()))

if words[0] == "-c":
    print("version 9.8")
elif words[1:3] == ["joeynmt", "train"]:
    train(
        "joey.yaml", "updates", "logging_freq", "validation_freq",
        "{{}} - INFO - joeynmt.training - EPOCH 1",
        "{{}} - INFO - joeynmt.training - Epoch   1, Step: {{:8d}}, Batch Loss:    80.500000, Batch Acc: 0.100000, "
        "Tokens per Sec: {{:8.0f}}, Lr: 0.001000",
        {{"joey/{{}}.ckpt": 5, "joey/{{}}.hyps": 2}},
    )
elif words[1:3] == ["joeynmt", "test"]:
    lines = pathlib.Path("text.de").read_text(encoding="utf-8")
    pathlib.Path("joey.out.test").write_text(lines, encoding="utf-8")
    print("Generation took 0.1000[sec].\\nGeneration took 0.5000[sec].")
elif words[1] == "onmt.bin.train":
    train(
        "onmt.yaml", "train_steps", "report_every", "save_checkpoint_steps",
        "[{{}} INFO] Start training loop and validate every 1000000 steps...",
        "[{{}} INFO] Step {{:2d}}/    6; acc: 1.0; ppl: 9.0; xent: 9.1; lr: 0.00100; sents:      16; "
        "bsz:  123/ 119/ 8; 650/{{:3.0f}} tok/s;     20 sec;",
        {{"onmt_model_step_{{}}.pt": 7}},
    )
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
