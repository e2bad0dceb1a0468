"""Trains and scores the models of docs/results.md, one after the other, and prints a table.

    python scripts/reproduce.py multi30k=DIR tatoeba=DIR [only=NAME,NAME] [KEY=VALUE ...]

Further KEY=VALUE pairs go to every training (threads=1, device=cuda, trainer.minutes=5 ...). What is finished is not
trained again, what was interrupted goes on.
"""

import json
import subprocess
import sys
from pathlib import Path

RECIPES = {
    "m30k-de-en": ["experiment=multi30k", "data.source=de", "data.target=en"],
    "m30k-de-en-luong": ["experiment=multi30k", "data.source=de", "data.target=en", "decoder=luong", "attention/score=general"],
    "m30k-en-de": ["experiment=multi30k", "data.source=en", "data.target=de"],
    "m30k-en-fr": ["experiment=multi30k", "data.source=en", "data.target=fr"],
    "tatoeba-de-en": ["experiment=tatoeba", "data.source=de", "data.target=en"],
}


def main(arguments: list[str]) -> int:
    """Runs the recipes whose data is at hand; returns 1 if one of them failed."""
    given = dict(argument.split("=", 1) for argument in arguments)
    roots = {name: given.pop(name, None) for name in ("multi30k", "tatoeba")}
    only = given.pop("only", ",".join(RECIPES)).split(",")
    further = [f"{key}={value}" for key, value in given.items()]
    status = 0
    rows = []
    for name in only:
        root = roots["tatoeba" if name.startswith("tatoeba") else "multi30k"]
        if root is None:
            continue
        train = [sys.executable, "-m", "nmt.train", *RECIPES[name], f"data.root={root}", f"name={name}", "resume=true"]
        evaluate = [sys.executable, "-m", "nmt.evaluate", f"run=checkpoints/{name}"]
        if subprocess.run([*train, *further], check=False).returncode or subprocess.run(evaluate, check=False).returncode:
            status = 1
            continue
        facts = json.loads(Path("checkpoints", name, "run.json").read_text(encoding="utf-8"))
        for path in sorted(Path("checkpoints", name, "evaluation").glob("*/scores.json")):
            scores = json.loads(path.read_text(encoding="utf-8"))
            rows.append((name, path.parent.name, facts["minutes"], scores))
    for name, split, minutes, scores in rows:
        print(f"{name:20} {split:18} {minutes:6.1f} min  {json.dumps(scores.get('scores', scores))[:200]}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
