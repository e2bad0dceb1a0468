"""Trains and scores the models of docs/results.md, one after the other, and prints a table.

    python scripts/reproduce.py [multi30k=DIR] [tatoeba=DIR] [only=NAME,NAME] [KEY=VALUE ...]

NAME is the name of a model, or its beginning: only=builtin trains the eight models of the built-in corpus.
Further KEY=VALUE pairs go to every training (threads=1, device=cuda, trainer.minutes=5 ...). What is finished is not
trained again, what was interrupted goes on.
"""

import json
import sys
from pathlib import Path

import cldr_text
from verbs import key_values, script, verb

from nmt.errors import UserError

ADDITIVE = ["decoder=bahdanau", "attention/score=additive", "tokenizer.vocabulary_size=8000"]
SMALL = [
    *("model.embedding_size=64", "encoder.size=64", "decoder.size=128", "attention.size=64", "model.dropout=0.1"),
    *("data=text", "optimizer.lr=0.004", "trainer.epochs=10", "trainer.validate_every=800"),
]
BUILTIN = [pair for other in ("fr", "zh_Hans", "ja", "th") for pair in (("en", other), (other, "en"))]
RECIPES = {
    "m30k-de-en": ["experiment=multi30k", "data.source=de", "data.target=en"],
    "m30k-de-en-bahdanau": ["experiment=multi30k", "data.source=de", "data.target=en", *ADDITIVE],
    "m30k-en-de": ["experiment=multi30k", "data.source=en", "data.target=de"],
    **{
        f"m30k-{source}-{target}-{name}": [
            f"experiment=multi30k_{name}",
            f"data.source={source}",
            f"data.target={target}",
        ]
        for name in ("transformer", "rdrop")
        for source, target in (("en", "de"), ("de", "en"))
    },
    "m30k-en-fr": ["experiment=multi30k", "data.source=en", "data.target=fr"],
    "tatoeba-de-en": ["experiment=tatoeba", "data.source=de", "data.target=en"],
    **{
        f"builtin-{a}-{b}": [
            f"data.source={a}",
            f"data.target={b}",
            *(f"data.{split}=data/builtin-{a}-{b}/{split}" for split in ("train", "valid", "test")),
            *SMALL,
        ]
        for a, b in BUILTIN
    },
}


def main(arguments: list[str]) -> int:
    """Run the recipes whose data is at hand; return the exit status of the last that failed, or 0."""
    given = key_values(arguments)
    roots = {name: given.pop(name, None) for name in ("multi30k", "tatoeba")}
    beginnings = given.pop("only", ",".join(RECIPES)).split(",")
    further = [f"{key}={value}" for key, value in given.items()]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in RECIPES):
            raise UserError(f"only={beginning} is none of the models: {', '.join(RECIPES)}.")
    rows: list[str] = []
    failed = 0
    for name in (name for name in RECIPES if name.startswith(tuple(beginnings))):
        words = [*RECIPES[name], f"name={name}", "resume=auto", *further]
        if not name.startswith("builtin"):
            root = roots["tatoeba" if name.startswith("tatoeba") else "multi30k"]
            if root is None:
                print(f"{name}: its data set was not named, skipped", file=sys.stderr)
                continue
            words.append(f"data.root={root}")
        else:
            cldr_text.main(["phrases", f"data/{name}", *(w[5:] for w in words[:2]), "train=10000"])
        status = verb("train", *words)
        status = status or verb("evaluate", f"run=checkpoints/{name}")
        if not status:
            rows += _rows(Path("checkpoints", name))
        elif status > 128:  # stopped by a signal
            return status
        failed = status or failed
    print("| run | minutes | test | BLEU | chrF | TER | BLEU lc tok |\n|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    return failed


def _rows(run: Path) -> list[str]:
    """A line of the table for each test split of a run."""
    minutes = json.loads((run / "run.json").read_text(encoding="utf-8"))["minutes"]
    rows = []
    for path in sorted(run.glob("evaluation/*/scores.json")):
        scores = json.loads(path.read_text(encoding="utf-8"))
        values = [f"{scores[metric]['value']:.2f}" for metric in ("bleu", "chrf", "ter", "tokenised_bleu")]
        rows.append(f"| {run.name} | {minutes:.0f} | {path.parent.name} | {' | '.join(values)} |")
    return rows


if __name__ == "__main__":
    sys.exit(script("reproduce.py", main))
