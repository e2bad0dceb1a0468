"""Measure nmt on a GPU: correctness against the CPU, speed, and BLEU after some minutes of training.

    python scripts/on_gpu.py folder=DIR multi30k=DIR [joey_python=PYTHON] [eole_python=PYTHON] [steps=STEP,...]
                             [minutes=3] [device=cuda]

Each step runs in its own process: `ceilings` (limits of the card), `parity` (losses, gradients and beams of six
variants, compared with the CPU), `updates` (with and without CUDA graphs and Triton), `training-80`, `-512` and `-2048`
(sentences per batch; with 512 also Joey NMT and eole, if their Pythons are given, and an encoder-decoder of torch's
GRUs), `transformer` (compared with `torch.nn.Transformer` in the same loop), `translating` (1, 64 and 512 sentences at
a time) and `multi30k` (trained for some minutes, then scored). A step writes `STEP.json` into the folder, and is
skipped if this file exists. The plan with the limit of each step is printed first; a step that exceeds its limit is
stopped. `page.md` has all figures. `quick=true` tests everything with tiny sizes, also with `device=cpu` without a GPU.
`beside.py` measures other programs.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu.steps import Step, ended, known, measure
from verbs import ROOT, key_values, script

from nmt.runs.run import Run
from nmt.system.compute import choose_device
from nmt.system.errors import UserError

BATCHES = (80, 512, 2048)
TRAININGS = tuple(f"training-{batch}" for batch in BATCHES)
#: Time limit of each step in seconds.
LIMITS = {"ceilings": 60, "parity": 180, "updates": 180, **dict.fromkeys(TRAININGS, 300)}
LIMITS |= {"transformer": 120, "translating": 300, "multi30k": 180}
WHAT = {
    "ceilings": "what the card can do",
    "parity": "the same numbers as on the CPU",
    "updates": "graphs and Triton kernels",
    "transformer": "beside torch.nn.Transformer",
    "translating": "1, 64 and 512 sentences at a time",
    "multi30k": "a training, beside its own minutes",
}
KNOWN = {"folder", "multi30k", "joey_python", "eole_python", "steps", "minutes", "device", "quick"}


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    given = key_values(arguments, KNOWN)
    if "folder" not in given:
        print(__doc__, file=sys.stderr)
        return 1
    folder, device = Path(given["folder"]), given.get("device", "cuda")
    names = given.get("steps", ",".join(LIMITS)).split(",")
    if unknown := [name for name in names if name not in LIMITS]:
        raise UserError(f"steps={unknown[0]} does not exist; choose of {', '.join(LIMITS)}.")
    choose_device(device)  # before any work
    try:
        training = {"multi30k": round(60 * float(given.get("minutes", "3")))}
    except ValueError as error:
        raise UserError(f"minutes={given['minutes']} is not a number.") from error
    steps = [
        Step(name, device, LIMITS[name] + training.get(name, 0), WHAT.get(name, "target tokens a second"))
        for name in names
    ]
    return measure(folder, steps, lambda step: work(step, folder, given), lambda: page_of(folder))


def page_of(folder: Path) -> str:
    """The Markdown page with all figures in the folder."""
    from gpu.page import page

    all_figures = known(folder, [*LIMITS])
    for figures in all_figures.values():
        figures.pop("seconds", None)
    return page(all_figures)


def work(step: Step, folder: Path, given: dict[str, str]) -> dict[str, Any]:
    """Do a step and return its figures (UserError if it fails)."""
    name, device, quick = step.name, step.device, given.get("quick") == "true"
    data = ["--data", given["multi30k"]] if "multi30k" in given else []
    common = ["--device", device, *data, *(["--quick"] if quick else ["--rounds", "3"])]
    calls = {
        "ceilings": f"measures.ceilings(device, {256 if quick else 8192})",
        "parity": "measures.parity(device)",
        "updates": f"updates.updates(device, {[8] if quick else list(BATCHES)}, {2 if quick else 200}, {quick})",
    }
    if name in calls:
        code = f"import json, torch; from gpu import measures, updates; device = torch.device('{device}'); "
        code += f"print(json.dumps({calls[name]}))"
        figures: dict[str, Any] = json.loads(ended([sys.executable, "-c", code], step.limit).splitlines()[-1])
        return {**figures, **unequal(figures)} if name == "parity" else figures
    if name == "multi30k":
        return multi30k(step, folder, quick, given)
    words = ["--only", name.partition("-")[0], *common]
    if name.startswith("training"):
        words += ["--batch", name.partition("-")[2]]
    pythons = [f"--{key.replace('_', '-')}={given[key]}" for key in ("joey_python", "eole_python") if key in given]
    if name == "training-512" and pythons:
        words += ["--peers", *pythons]
    target = folder / f"{name}.figures.json"
    ended([sys.executable, str(ROOT / "scripts" / "benchmark.py"), *words, "--json", str(target)], step.limit)
    results: dict[str, Any] = json.loads(target.read_text("utf-8"))
    target.unlink()
    # On a CPU, in a test of the script, the results go to the place of a GPU's results.
    return results if "cuda" in results else {**results, "cuda": {"float32": results}}


def unequal(variants: dict[str, Any]) -> dict[str, str]:
    """{"failed": reason} if `parity` failed, by an error or a gradient that differs too much from the CPU's, or {}."""
    from gpu.measures import MOST_DIFFERENT

    wrong = [
        f"{name}: {figures.get('error') or '{:.0e} in {}'.format(figures['gradients'], figures['parameter'])}"
        for name, figures in variants.items()
        if "error" in figures or not figures["gradients"] <= MOST_DIFFERENT
    ]
    return (
        {"failed": f"gradients differ from the CPU's by more than {MOST_DIFFERENT:g}: {'; '.join(wrong)}"}
        if wrong
        else {}
    )


def multi30k(step: Step, folder: Path, quick: bool, given: dict[str, str]) -> dict[str, Any]:
    """Train German to English for some minutes, and score the best weights."""
    name = f"multi30k-{time.strftime('%Y%m%d-%H%M%S')}"
    device = f"device={step.device}"
    words = [f"name={name}", f"checkpoints={folder}", device, f"cache={folder / 'cache'}"]
    if quick or "multi30k" not in given:
        words += ["data=builtin", "data.train_pairs=200", "data.test_pairs=10", "data.valid_pairs=10"]
        words += ["model.embedding_size=16", "encoder.size=16", "decoder.size=16", "attention.size=16"]
        words += ["tokenizer.vocabulary_size=400", "trainer.steps=4"]
    else:
        words += ["experiment=multi30k_luong", f"data.root={given['multi30k']}", "data.source=de", "data.target=en"]
        words += [f"trainer.minutes={given.get('minutes', '3')}"]
    began = time.monotonic()
    for command in (["nmt.train", *words], ["nmt.evaluate", f"run={folder / name}", "pictures=0", device]):
        ended([sys.executable, "-m", *command], step.limit - (time.monotonic() - began))
    run = Run(folder / name)
    best = max((entry for entry in run.history() if entry["best"]), key=lambda entry: int(entry["step"]))
    return {
        "bleu": run.scores(run.splits()[0])["bleu"]["value"],
        "valid_bleu": best["valid_bleu"],
        "minutes": best["minutes"],
        "history": run.history(),
    }


if __name__ == "__main__":
    sys.exit(script("on_gpu.py", main))
