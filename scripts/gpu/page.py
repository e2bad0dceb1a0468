"""The Markdown page of the measurements on a GPU."""

from typing import Any

Json = dict[str, Any]


#: Limits of the card: the title, the key of the figure, its unit.
CEILINGS = (
    ("products of matrices in bf16", "tflops_bf16", "TFLOP/s"),
    ("products of matrices in float32", "tflops_float32", "TFLOP/s"),
    ("copies", "copy_gb_per_second", "GB/s"),
    ("a launch", "launch_microseconds", "microseconds"),
)


def page(figures: dict[str, Json]) -> str:
    """The page in Markdown; `figures` has the figures of the finished steps by name."""
    about = figures.get("ceilings", {})
    lines = [
        "# On a GPU",
        "",
        f"{about.get('name', about.get('device', 'An unknown device'))}, torch {about.get('torch', '?')}, CUDA "
        f"{about.get('cuda', 'none')}, Python {about.get('python', '?')}.",
        "",
        "| what | measured | unit |",
        "|---|---:|---|",
        *(f"| {what} | {_number(about.get(key))} | {unit} |" for what, key, unit in CEILINGS),
        *_parity(figures.get("parity", {})),
        *_graphs(figures.get("updates", {})),
        *_speeds(figures),
        *_quality(figures.get("multi30k", {})),
    ]
    failed = {step: outcome["failed"] for step, outcome in figures.items() if "failed" in outcome}
    lines += [f"- {step} failed: {reason}" for step, reason in failed.items()]
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _parity(variants: Json) -> list[str]:
    variants = {name: row for name, row in variants.items() if isinstance(row, dict)}
    if not variants:
        return []
    lines = ["", "## The same numbers as on the CPU, in float32", "", "| variant | loss | gradients | of | beams |"]
    lines.append("|---|---:|---:|---|---|")
    for name, row in variants.items():
        if "error" in row:
            lines.append(f"| {name} | {row['error']} | | | |")
        else:
            beams = f"{row['beams']} of {row['of']}"
            lines.append(f"| {name} | {row['loss']:.0e} | {row['gradients']:.0e} | {row['parameter']} | {beams} |")
    return lines


def _graphs(updates: Json) -> list[str]:
    """The table of updates with and without CUDA graphs and Triton kernels, by sentences per batch."""
    if "weights" not in updates:
        return []
    lines = [
        "",
        "## CUDA graphs and Triton kernels",
        "",
        "| sentences a batch | neither, target tokens/s | Triton | graphs | both | notes |",
        "|---:|---:|---:|---:|---:|---|",
    ]
    for size, row in updates["tokens_per_second"].items():
        speeds = [_number(row.get(way)) for way in ("eager", "triton", "graphs", "both")]
        lines.append(f"| {' | '.join((size, *speeds, ' '.join(row.get('notes', []))))} |")
    return [*lines, "", f"The weights of ten updates differ by {updates['weights']:.0e} at most."]


def _speeds(figures: dict[str, Json]) -> list[str]:
    """Target tokens per second of each wiring and batch size in training, and sentences per second in translating."""
    lines: list[str] = []
    steps = [step for step in figures if step.startswith("training-") and "cuda" in figures[step]]
    if steps:
        lines += ["", "## Training", "", "| sentences a batch | precision | model | target tokens/s | GPU memory, GB |"]
        lines.append("|---:|---|---|---:|---:|")
    for step in steps:
        for precision, measured in figures[step]["cuda"].items():
            for name, row in measured["training"].items():
                cells = [step.partition("-")[2], precision, name, _number(row["tokens_per_second"])]
                lines.append(f"| {' | '.join(cells)} | {row.get('peak_gpu_memory_bytes', 0) / 1e9:.1f} |")
            for name, peer in measured.get("peers", {}).items():
                if "ratio" in peer.get("training", {}):
                    ratio = peer["training"]["ratio"]["ours_over_theirs"]
                    lines.append(f"| | {precision} | {name}, ours is {ratio:.1f} times as fast | | |")
    transformer = figures.get("transformer", {}).get("transformer", {})
    models = {name: row for name, row in transformer.items() if isinstance(row, dict) and "tokens_per_second" in row}
    if models:
        lines += ["", "## The Transformer and `torch.nn.Transformer`, in one loop", "", "| model | target tokens/s |"]
        lines += ["|---|---:|", *(f"| {name} | {_number(row['tokens_per_second'])} |" for name, row in models.items())]
    translating = figures.get("translating", {}).get("cuda", {})
    if translating:
        lines += ["", "## Translating", "", "| precision | model | search | sentences a batch | sentences/s |"]
        lines.append("|---|---|---|---:|---:|")
    for precision, measured in translating.items():
        for name, searches in measured["translating"].items():
            for search, outcome in searches.items():
                for batch, speeds in outcome["batches"].items():
                    speed = _number(speeds["sentences_per_second"])
                    lines.append(f"| {precision} | {name} | {search} | {batch} | {speed} |")
    return lines


def _quality(multi30k: Json) -> list[str]:
    if "bleu" not in multi30k:
        return []
    return [
        "",
        "## Multi30k, German to English",
        "",
        f"BLEU {multi30k['bleu']:.2f} on test_2016_flickr and validation BLEU {multi30k['valid_bleu']:.2f}, after "
        f"{multi30k['minutes']:.1f} minutes of training.",
    ]
