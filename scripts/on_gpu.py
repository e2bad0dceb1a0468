"""One command for the day on which there is a GPU: does it compute right, how fast is it, how good in minutes?

    python scripts/on_gpu.py folder=DIR multi30k=DIR [joey_python=PYTHON] [eole_python=PYTHON] [steps=STEP,...]
                             [minutes=3] [device=cuda]

It measures step by step, each in a process of its own: `ceilings` (what the card can do), `parity` (losses, gradients
and beams of five variants beside the CPU's), `updates` (with and without graphs, Triton), `training-80`, `-512` and
`-2048` (sentences a batch; with 512 also Joey NMT and eole, if their Pythons are given, and an encoder-decoder of
torch's own GRUs), `transformer` (beside `torch.nn.Transformer` in the same loop), `translating` (1, 64 and 512
sentences at a time) and `multi30k` (trained for some minutes, and scored). Each step writes `STEP.json` into the
folder, and is left out if that is there already. `page.md` has all figures. `quick=true` tries everything with tiny
sizes, and `device=cpu` where there is no GPU.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# As a plain script: a machine that got the wheels alone has not installed the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from verbs import key_values, script, verb

from nmt.runs.run import Run
from nmt.system.compute import choose_device
from nmt.system.errors import UserError
from nmt.system.files import write_json, write_text

ROOT = Path(__file__).resolve().parents[1]
BATCHES = (80, 512, 2048)
STEPS = (
    *("ceilings", "parity", "updates"),
    *(f"training-{batch}" for batch in BATCHES),
    *("transformer", "translating", "multi30k"),
)
KNOWN = {"folder", "multi30k", "joey_python", "eole_python", "steps", "minutes", "device", "quick"}


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    given = key_values(arguments)
    if unknown := sorted(given.keys() - KNOWN):
        raise UserError(f"{unknown[0]}= does not exist; choose of {', '.join(sorted(KNOWN))}.")
    if "folder" not in given:
        print(__doc__, file=sys.stderr)
        return 1
    return measure(given)


def measure(given: dict[str, str]) -> int:
    """Measure the steps that have no figures yet; write the page; 1 if a step failed."""
    folder = Path(given["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    steps = given.get("steps", ",".join(STEPS)).split(",")
    if unknown := [step for step in steps if step not in STEPS]:
        raise UserError(f"steps={unknown[0]} does not exist; choose of {', '.join(STEPS)}.")
    choose_device(given.get("device", "cuda"))  # before any work
    for step in steps:
        if (folder / f"{step}.json").exists():
            print(f"{step}: figures are there already.", file=sys.stderr)
            continue
        began = time.monotonic()
        try:
            figures = work(step, folder, given)
        except UserError as error:
            figures = {"failed": str(error)}
        figures["seconds"] = time.monotonic() - began
        (folder / f"{step}-failed.json").unlink(missing_ok=True)
        write_json(folder / f"{step}{'-failed' if 'failed' in figures else ''}.json", figures)
        print(f"{step}: {figures['seconds']:.0f} s{', failed' if 'failed' in figures else ''}.", file=sys.stderr)
        write_text(folder / "page.md", page_of(folder))
    print(f"{folder / 'page.md'}", file=sys.stderr)
    return int(any((folder / f"{step}-failed.json").exists() for step in steps))


def page_of(folder: Path) -> str:
    """The page of all figures in the folder."""
    from gpu.page import page

    found = {}
    for step in STEPS:
        paths = [folder / f"{step}.json", folder / f"{step}-failed.json"]
        figures = [json.loads(path.read_text("utf-8")) for path in paths if path.exists()]
        found.update({step: figures[0]} if figures else {})
    for figures in found.values():
        figures.pop("seconds", None)
    return page(found)


def work(step: str, folder: Path, given: dict[str, str]) -> dict[str, Any]:
    """Do a step and return its figures (UserError if it fails)."""
    device, quick = given.get("device", "cuda"), given.get("quick") == "true"
    data = ["--data", given["multi30k"]] if "multi30k" in given else []
    common = ["--device", device, *data, *(["--quick"] if quick else ["--rounds", "3"])]
    calls = {
        "ceilings": f"measures.ceilings(device, {256 if quick else 8192})",
        "parity": "measures.parity(device)",
        "updates": f"updates.updates(device, {[8] if quick else list(BATCHES)}, {2 if quick else 200}, {quick})",
    }
    if step in calls:
        code = f"import json, torch; from gpu import measures, updates; device = torch.device('{device}'); "
        code += f"print(json.dumps({calls[step]}))"
        figures: dict[str, Any] = json.loads(ended([sys.executable, "-c", code]).splitlines()[-1])
        return {**figures, **unequal(figures)} if step == "parity" else figures
    if step == "multi30k":
        return multi30k(folder, device, quick, given)
    words = ["--only", step.partition("-")[0], *common]
    if step.startswith("training"):
        words += ["--batch", step.partition("-")[2]]
    pythons = [f"--{key.replace('_', '-')}={given[key]}" for key in ("joey_python", "eole_python") if key in given]
    if step == "training-512" and pythons:
        words += ["--peers", *pythons]
    target = folder / f"{step}.figures.json"
    ended([sys.executable, str(ROOT / "scripts" / "benchmark.py"), *words, "--json", str(target)])
    results: dict[str, Any] = json.loads(target.read_text("utf-8"))
    target.unlink()
    # On a CPU, to try the script: where the figures of a GPU are.
    return results if "cuda" in results else {**results, "cuda": {"float32": results}}


def unequal(variants: dict[str, Any]) -> dict[str, str]:
    """The reason why `parity` failed, if it did: an error, or a gradient that is too far from the CPU's."""
    from gpu.measures import MOST_DIFFERENT

    wrong = [
        f"{name}: {own.get('error') or '{:.0e} in {}'.format(own['gradients'], own['parameter'])}"
        for name, own in variants.items()
        if "error" in own or not own["gradients"] <= MOST_DIFFERENT
    ]
    return (
        {"failed": f"gradients differ from the CPU's by more than {MOST_DIFFERENT:g}: {'; '.join(wrong)}"}
        if wrong
        else {}
    )


def multi30k(folder: Path, device: str, quick: bool, given: dict[str, str]) -> dict[str, Any]:
    """Train German to English for some minutes, and score the best weights."""
    name = f"multi30k-{time.strftime('%Y%m%d-%H%M%S')}"
    words = [f"name={name}", f"checkpoints={folder}", f"device={device}", f"cache={folder / 'cache'}"]
    if quick or "multi30k" not in given:
        words += ["data=builtin", "data.train_pairs=200", "data.test_pairs=10", "data.valid_pairs=10"]
        words += ["model.embedding_size=16", "encoder.size=16", "decoder.size=16", "attention.size=16"]
        words += ["tokenizer.vocabulary_size=400", "trainer.steps=4"]
    else:
        words += ["experiment=multi30k_luong", f"data.root={given['multi30k']}", "data.source=de", "data.target=en"]
        words += [f"trainer.minutes={given.get('minutes', '3')}"]
    status = verb("train", *words) or verb("evaluate", f"run={folder / name}", "pictures=0", f"device={device}")
    if status:
        raise UserError(f"exit status {status}; the messages are above.")
    run = Run(folder / name)
    best = max((entry for entry in run.history() if entry["best"]), key=lambda entry: int(entry["step"]))
    return {
        "bleu": run.scores(run.splits()[0])["bleu"]["value"],
        "valid_bleu": best["valid_bleu"],
        "minutes": best["minutes"],
        "history": run.history(),
    }


def ended(command: list[str]) -> str:
    """What a command prints on standard output; its messages go to standard error (UserError if it fails)."""
    paths = [str(ROOT), str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        raise UserError(f"exit status {done.returncode}; the messages are above.")
    return done.stdout


if __name__ == "__main__":
    sys.exit(script("on_gpu.py", main))
