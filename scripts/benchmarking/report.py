"""What was measured, as tables on standard output, a JSON file and a picture."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarking.numbers import Fit
from benchmarking.settings import AXES, WIRINGS, Json
from nmt.files import replace_atomically, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From this share of the variance on, points are said to lie as theory has them.
EXPLAINED = 0.98
POWERS = ("", " x", " x²")
#: Translations that are longer than others by more than this are not the same work.
ALIKE = 1.1
#: A program that was planned to end with the minutes may be late by this much.
LATE = 1.05


def write_json(path: Path, results: Json) -> None:
    """Write all of it (UserError if the file cannot be written)."""
    write_text(path, json.dumps(results, indent=2, ensure_ascii=False) + "\n")


def text(results: Json) -> str:
    """All tables of the benchmark, in Markdown."""
    settings = results["settings"]
    lines = [
        *_setting(results),
        f"Rounds in turn: {settings['rounds']}. Medians, and in brackets the smallest and the largest.",
        "",
        *_place(results, f"CPU, float32, batches of {settings['batch']} sentences"),
    ]
    for precision, measured in results.get("cuda", {}).items():
        lines += _place(measured, f"GPU, {precision}")
    if "startup" in results:
        lines += ["## Start-up: one line through nmt.translate, on the CPU", "", *_startup(results["startup"]), ""]
    for axis, curves in results.get("growth", {}).items():
        lines += _growth(axis, curves)
    return "\n".join(lines).rstrip() + "\n"


def _setting(results: Json) -> list[str]:
    """The machine and the corpus."""
    machine, corpus = results["machine"], results["corpus"]
    return [
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads, "
        f"{machine['instructions']}, {machine['system']}"
        + (f", {machine['gpu']}" if "gpu" in machine else "")
        + f"; Python {machine['python']}, torch {machine['torch']}, nmt {machine['nmt']}.",
        f"Load (processes that want a core), before and after: {machine['load_before']}, {machine['load_after']}.",
        f"Corpus: {corpus['name']}, {corpus['pairs']:,} pairs, {corpus['pieces']:,} pieces, "
        f"{corpus['source_tokens']:.1f} source and {corpus['target_tokens']:.1f} target tokens a sentence.",
    ]


def _place(results: Json, where: str) -> list[str]:
    lines: list[str] = []
    if "training" in results:
        lines += [f"## Training: {where}", "", *_training(results["training"]), ""]
    if "translating" in results:
        lines += [f"## Translating: {where.partition(', batches')[0]}", "", *_translating(results["translating"]), ""]
    if results.get("peers"):
        lines += [f"## Peers: {where}", "", *_peers(results["peers"]), ""]
    return lines


def _training(measured: Json) -> list[str]:
    rows = []
    for name, own in measured.items():
        counted = "flops_per_token" in own
        rows.append(
            [
                WIRINGS[name].title if name in WIRINGS else "torch's GRUs, no attention",
                _with_spread(own, "tokens_per_second", "{:,.0f}"),
                f"{own['flops_per_token'] / 1e6:.1f}" if counted else "",
                _with_spread(own, "multiply_rate", "{:,.0f}", 1e9) if counted else "",
                f"{own['limit_tokens_per_second']:,.0f}" if counted else "",
                _with_spread(own, "fraction_of_limit", "{:.1f} %", 0.01) if counted else "",
                f"{own['target_padding']:.1%}",
                _mebibytes(own),
            ]
        )
    return table(
        [
            "wiring",
            "target tokens/s",
            "MFLOP/token",
            "products GFLOP/s",
            "limit tokens/s",
            "of limit",
            "padding",
            "MiB",
        ],
        rows,
    )


def _translating(measured: Json) -> list[str]:
    rows = []
    for name in measured:
        for search, own in measured[name].items():
            for batch, figures in own["batches"].items():
                rows.append(
                    [
                        WIRINGS[name].title,
                        search,
                        batch,
                        _with_spread(figures, "sentences_per_second", "{:,.1f}"),
                        f"{figures['target_tokens_per_sentence']:.1f}",
                        _mebibytes(figures),
                        f"{own['bleu']:.1f}" if batch == "64" else "",
                    ]
                )
    return table(["wiring", "search", "batch", "sentences/s", "tokens/sentence", "MiB", "BLEU"], rows)


def _startup(measured: Json) -> list[str]:
    names = ("answer_seconds", "import_torch_seconds", "read_model_seconds", "ratio")
    row = [_with_spread(measured, name, "{:.2f}") for name in names]
    return table(["answered, s", "importing torch, s", "reading the weights, s", "answered / the other two"], [row])


def _peers(found: Json) -> list[str]:
    rows, notes = [], []
    for name, own in found.items():
        notes += [own[key] for key in ("missing", "failed") if key in own]
        parts = [("training, tokens/s", "tokens_per_second", "{:,.0f}", own.get("training"))]
        translating = own.get("translating", {})
        parts += [
            (f"{title}, sentences/s", "sentences_per_second", "{:,.1f}", measured)
            for title, measured in (
                ("translating", translating or None),
                *((f"ours {way}", measured) for way, measured in translating.get("faster", {}).items()),
            )
        ]
        for title, unit, form, measured in parts:
            if measured:
                ratio = measured.get("ratio")
                rows.append(
                    [
                        f"{name} {own['version']}",
                        title,
                        _with_spread(measured, unit, form),
                        _with_spread(ratio, "ours_over_theirs", "{:.2f}") if ratio else "",
                        _both(measured, "bleu"),
                        _both(measured, "pieces_per_sentence"),
                    ]
                )
        notes += _unlike(name, own.get("translating", {}))
    head = ["peer", "what", "theirs", "ours / theirs", "BLEU, theirs and ours", "pieces/sentence, theirs and ours"]
    return [*(table(head, rows) if rows else []), "", *notes]


def _both(own: Json, key: str) -> str:
    return f"{own[key]:.1f}, {own[f'our_{key}']:.1f}" if key in own else ""


def _unlike(name: str, own: Json) -> list[str]:
    """A warning where the translations cannot be the same work."""
    lengths = own.get("pieces_per_sentence", 0.0), own.get("our_pieces_per_sentence", 0.0)
    if max(lengths) <= ALIKE * min(lengths):
        return []
    return [
        f"{name} says {lengths[0]:.1f} pieces a sentence and we say {lengths[1]:.1f}, which is not the same work: "
        "these models are hardly trained. Take --models that quality_over_time.py has kept, or give more --updates."
    ]


def _growth(axis: str, curves: Sequence[Json]) -> list[str]:
    lines = [f"## Growth with {AXES[axis]}", ""]
    values = curves[0]["values"]
    rows = [
        [
            f"{curve['work']}, {curve['wiring']}",
            curve["unit"],
            *(f"{median:.4g}" for median in curve["median"]),
            " + ".join(f"{own:.3g}{power}" for own, power in zip(curve["coefficients"], POWERS, strict=False)),
            f"{curve['r2']:.4f}{'' if curve['r2'] >= EXPLAINED else ', not so'}",
            curve["theory"],
        ]
        for curve in curves
    ]
    return [*lines, *table(["work", "unit", *map(str, values), "by least squares", "R2", "theory"], rows), ""]


def measured(results: Json) -> dict[str, Json]:
    """The programs whose quality was measured."""
    return {name: own for name, own in results["programs"].items() if "points" in own}


def quality_text(results: Json) -> str:
    """The table of quality against time, in Markdown."""
    programs, minutes = measured(results), results["settings"]["minutes"]
    levels = _levels(programs)
    shares = (0.25, 0.5, 1.0)
    rows = [
        [
            f"{own['title']} {own['version']}",
            f"{own['points'][-1]['update']:,}",
            f"{own['points'][-1]['minutes']:.1f}",
            *(_number(_bleu_after(own["points"], share * minutes)) for share in shares),
            f"{max(point['bleu'] for point in own['points']):.1f}",
            *(_number(_minutes_until(own["points"], level)) for level in levels),
            _number(own["cores_of_others"]),
        ]
        for own in programs.values()
    ]
    head = [
        "program",
        "updates",
        "minutes",
        *(f"BLEU after {share * minutes:g} min" for share in shares),
        "best BLEU",
        *(f"min to BLEU {level}" for level in levels),
        "cores that others took",
    ]
    notes = [own[key] for own in results["programs"].values() for key in ("missing", "failed") if key in own]
    return "\n".join(
        [
            *_setting(results),
            "",
            "## Validation BLEU (cased, 13a, beam 5) against minutes of training",
            "",
            *(table(head, rows) if rows else []),
            "",
            *_overtaken(programs),
            *notes,
            "",
        ]
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _levels(programs: dict[str, Json]) -> range:
    """The four highest multiples of 5 that a program reaches."""
    best = max((point["bleu"] for own in programs.values() for point in own["points"]), default=0.0)
    return range(5, int(best) + 1, 5)[-4:]


def _overtaken(programs: dict[str, Json]) -> list[str]:
    """When our models were as good as each peer ever was."""
    lines = []
    for peer in (own for own in programs.values() if not own["ours"]):
        best = max(peer["points"], key=lambda point: point["bleu"])
        for own in (own for own in programs.values() if own["ours"]):
            minutes = _minutes_until(own["points"], best["bleu"])
            reached = "not reached" if minutes is None else f"reached after {minutes:.1f} minutes"
            lines.append(
                f"{peer['title']}'s best, {best['bleu']:.1f} after {best['minutes']:.1f} minutes: {reached} by "
                f"{own['title']}."
            )
    return lines


def _bleu_after(points: Sequence[Json], minutes: float) -> float | None:
    """BLEU of the last weights that were kept within so many minutes; None where there are none."""
    kept = [point["bleu"] for point in points if point["minutes"] <= minutes * LATE]
    return kept[-1] if kept else None


def _minutes_until(points: Sequence[Json], bleu: float) -> float | None:
    """When the curve through the points first reaches this value; None where it does not."""
    before: Json | None = None
    for point in points:
        if point["bleu"] >= bleu:
            if before is None:
                return float(point["minutes"])
            share = (bleu - before["bleu"]) / (point["bleu"] - before["bleu"])
            return float(before["minutes"] + share * (point["minutes"] - before["minutes"]))
        before = point
    return None


def quality_plot(results: Json, folder: Path) -> Path:
    """Draw validation BLEU against minutes of training into `folder`; return the file.

    Raises:
        UserError: the file cannot be written.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.subplots()
    for own in measured(results).values():
        points = own["points"]
        axes.plot(
            [point["minutes"] for point in points],
            [point["bleu"] for point in points],
            "o-",
            markersize=4,
            label=f"{own['title']} {own['version']}",
        )
    machine, corpus = results["machine"], results["corpus"]
    axes.set_title(f"{corpus['name']}, {corpus['pieces']:,} pieces, beam 5; {machine['cpu']}", fontsize="medium")
    axes.set_xlabel(f"minutes of training, {machine['threads']} threads")
    axes.set_ylabel("validation BLEU, cased")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return _finished(figure, folder / "quality-over-time.png")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table with columns of one width."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    return [shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]]


def _with_spread(own: Json, key: str, form: str, unit: float = 1.0) -> str:
    low, high = own["spread"][key]
    return f"{form.format(own[key] / unit)} ({form.format(low / unit)} to {form.format(high / unit)})"


def _mebibytes(own: Json) -> str:
    gpu = own.get("peak_gpu_memory_bytes")
    shown = f"{own['peak_memory_bytes'] / 2**20:,.0f}"
    return shown if gpu is None else f"{shown}, GPU {gpu / 2**20:,.0f}"


def plot(growth: Json, folder: Path) -> Path:
    """Draw the points with their curves into `folder`, each relative to its first point; return the file.

    Raises:
        UserError: the file cannot be written.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    for axes, (axis, curves) in zip(figure.subplots(2, 2).flat, growth.items(), strict=True):
        for curve in curves:
            first = curve["median"][0]
            low, high = ([pair[side] / first for pair in curve["spread"]] for side in (0, 1))
            shown = [median / first for median in curve["median"]]
            errors = [
                [own - least for own, least in zip(shown, low, strict=True)],
                [most - own for own, most in zip(shown, high, strict=True)],
            ]
            label = f"{curve['work']}, {curve['wiring']}, {curve['unit']} (R² {curve['r2']:.3f})"
            drawn = axes.errorbar(curve["values"], shown, errors, fmt="o", capsize=3, label=label)
            begin, end = curve["values"][0], curve["values"][-1]
            places = [begin + (end - begin) * step / 100 for step in range(101)]
            found = Fit(curve["coefficients"], curve["r2"])
            fitted = [found.at(place) / first for place in places]
            axes.plot(places, fitted, "--", color=drawn.lines[0].get_color(), linewidth=1)
        axes.set_xlabel(AXES[axis])
        axes.set_ylabel("time, relative to the first point")
        axes.set_ylim(bottom=0)
    return _finished(figure, folder / "benchmark-growth.png")


def _finished(figure: "Figure", path: Path) -> Path:
    for axes in figure.axes:
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    with replace_atomically(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    return path
