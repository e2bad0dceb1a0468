"""Compare nmt with other programs on the same work: training and translating, on a GPU and on the CPU.

    python scripts/beside.py folder=DIR [multi30k=DIR] [tokenizer=FILE] [joey_python=PYTHON] [onmt_python=PYTHON]
                             [eole_python=PYTHON] [marian_python=PYTHON] [devices=cuda,cpu] [steps=STEP,...]
                             [quick=true]

PYTHON is the interpreter of the program's virtual environment; programs without PYTHON are left out. A step measures
one program on one device, and the same model in nmt: 80 sentences per batch, float32, 200 updates, then the test set
with a beam of 5, 64 sentences at a time. `transformer` compares nmt with `torch.nn.Transformer` in the same loop.
Marian is measured on the CPU only.

The plan with the limit of each step is printed first: at most 8 minutes on a GPU. A step that exceeds its limit is
stopped. Each step writes `STEP.json` into the folder, and is skipped if this file exists. `page.md` has the table.
`quick=true` tests everything with tiny sizes.
"""

import json
import shutil
import sys
from pathlib import Path

# The package need not be installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarking.commands import check_places, select
from benchmarking.peers import PEERS
from benchmarking.report import both, table
from benchmarking.settings import TORCH_TRANSFORMER
from gpu.steps import Json, Step, ended, known, measure
from verbs import ROOT, key_values, script

from nmt.system.compute import choose_device
from nmt.system.errors import UserError

#: The programs, by the key of the setting for their Python.
PYTHONS = {kind.variable.removeprefix("NMT_").lower(): kind for kind in PEERS}
TORCH = "transformer"
#: Time limits of a step in seconds, on a GPU and on a CPU. All steps on a GPU take at most 8 minutes.
LIMIT, LIMIT_OF_TORCH, LIMIT_OF_CORPUS = (120, 900), (90, 600), 120
KNOWN = {"folder", "multi30k", "tokenizer", "devices", "steps", "quick", *PYTHONS}
HEAD = (
    *("program", "device", "training, target tokens/s", "ours / theirs", "translating, sentences/s", "ours / theirs"),
    *("pieces a sentence, theirs and ours", "BLEU, theirs and ours"),
)


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    given = key_values(arguments, KNOWN)
    if "folder" not in given:
        print(__doc__, file=sys.stderr)
        return 1
    check_places({f"{key}=": given.get(key) for key in ("multi30k", "tokenizer")}, {"folder=": Path(given["folder"])})
    for key in PYTHONS:
        if key in given and shutil.which(given[key]) is None:
            raise UserError(f"{key}={given[key]} is no program. Give the Python of its virtual environment.")
    devices = given.get("devices", "cuda,cpu").split(",")
    for device in devices:
        choose_device(device)  # before any work
    steps, folder = planned(given, devices), Path(given["folder"])
    names = select("steps=", given.get("steps"), [step.name for step in steps])
    steps = [step for step in steps if step.name in (*names, "corpus")]
    return measure(folder, steps, lambda step: work(step, folder, given), lambda: page(folder, steps))


def planned(given: dict[str, str], devices: list[str]) -> list[Step]:
    """The steps of the given programs, device by device."""
    steps = [Step("corpus", "cpu", LIMIT_OF_CORPUS, "the text, once for all programs")]
    for device in devices:
        on_cpu = device == "cpu"
        programs = {key: kind.title for key, kind in PYTHONS.items() if key in given and (on_cpu or kind.on_gpu)}
        for key, title in {**programs, TORCH: TORCH_TRANSFORMER}.items():
            limit = (LIMIT_OF_TORCH if key == TORCH else LIMIT)[on_cpu]
            name = f"{key.removesuffix('_python')}-{device.replace(':', '')}"
            steps.append(Step(name, device, limit, f"{title} beside ours"))
    return steps


def work(step: Step, folder: Path, given: dict[str, str]) -> Json:
    """Do a step and return its figures (UserError if it fails)."""
    quick, corpus = given.get("quick") == "true", folder / "corpus"
    if step.name == "corpus":
        corpus.mkdir(exist_ok=True)
        about = [str(corpus), given.get("multi30k"), given.get("tokenizer"), "QUICK" if quick else "MATCHED"]
        code = "import json, sys; from pathlib import Path; from benchmarking import corpus, settings; "
        code += "folder, data, tokenizer, scale = json.loads(sys.argv[1]); "
        code += "print(json.dumps(corpus.prepare(Path(folder), data, tokenizer, getattr(settings, scale))))"
        facts: Json = json.loads(ended([sys.executable, "-c", code, json.dumps(about)], step.limit).splitlines()[-1])
        return facts
    target, key = folder / f"{step.name}.figures.json", f"{step.name.partition('-')[0]}_python"
    words = ["--device", step.device, "--tokenizer", str(corpus / "tokenizer.model"), "--json", str(target)]
    words += ["--data", given["multi30k"]] if "multi30k" in given else []
    words += ["--quick"] if quick else ["--rounds", "1", "--peer-updates", "200", "--updates", "200", "--batch", "80"]
    if key in PYTHONS:
        words += ["--only", "training,translating", "--compares", "--models", PYTHONS[key].beside]
        words += ["--peers", PYTHONS[key].name, f"--{key.replace('_', '-')}", given[key]]
    else:
        words += ["--only", "transformer"]
    ended([sys.executable, str(ROOT / "scripts" / "benchmark.py"), *words], step.limit)
    results: Json = json.loads(target.read_text("utf-8"))
    target.unlink()
    outcome = _outcome(results)
    wrong = outcome.get("missing", outcome.get("failed"))
    return {**results, **({"failed": wrong} if wrong else {})}


def _outcome(results: Json) -> Json:
    """The figures of the other program, or the reason why there are none ("missing" or "failed")."""
    if "transformer" in results:
        return {"training": results["transformer"][TORCH_TRANSFORMER]}
    measured = results.get("cuda", {}).get("float32", results)
    return next(iter(measured.get("peers", {}).values()), {})


def page(folder: Path, steps: list[Step]) -> str:
    """The page with a table of all figures of the steps, in Markdown."""
    all_figures = known(folder, [step.name for step in steps])
    rows, notes = [], []
    for step in steps[1:]:
        figures = all_figures.get(step.name, {})
        outcome = _outcome(figures)
        training, translating = outcome.get("training", {}), outcome.get("translating", {})
        cells = [_figure(training, "tokens_per_second"), _ratio(training)]
        cells += [_figure(translating, "sentences_per_second"), _ratio(translating)]
        cells += [both(translating, "pieces_per_sentence"), both(translating, "bleu")]
        title = f"{step.what.removesuffix(' beside ours')} {outcome.get('version', '')}".strip()
        rows.append([title, step.device, *cells])
        notes += [f"- {step.name} failed: {figures['failed']}"] if "failed" in figures else []
    machines = [figures["machine"] for figures in all_figures.values() if "machine" in figures]
    lines = ["# Beside other programs", ""]
    for machine in machines[:1]:
        lines += [
            f"{machine['cpu']}, {machine['threads']} threads, {machine['instructions']}, torch {machine['torch']}."
        ]
        lines += [f"GPU: {machine['gpu']}." for machine in machines if "gpu" in machine][:1]
        loads = [load for each in machines for load in (each["load_before"], each["load_after"]) if load is not None]
        lines += [f"Load: {min(loads):.1f} to {max(loads):.1f}.", ""] if loads else [""]
    return "\n".join([*lines, *table(HEAD, rows), "", *notes]).rstrip() + "\n"


def _figure(measured: Json, unit: str) -> str:
    return f"{measured[unit]:,.0f}" if unit in measured else ""


def _ratio(measured: Json) -> str:
    return f"{measured['ratio']['ours_over_theirs']:.2f}" if "ratio" in measured else ""


if __name__ == "__main__":
    sys.exit(script("beside.py", main))
