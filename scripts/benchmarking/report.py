"""What was measured, as tables on standard output, a JSON file and a picture."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarking.numbers import Fit
from benchmarking.settings import AXES, WIRINGS, Json
from benchmarking.tables import table, transformer, with_spread
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
        *_place(results, f"CPU, {settings['precision']}, batches of {settings['batch']} sentences"),
    ]
    for precision, measured in results.get("cuda", {}).items():
        lines += _place(measured, f"GPU, {precision}")
    if "transformer" in results:
        lines += ["## Training the Transformer, on the CPU", "", *transformer(results["transformer"]), ""]
    if "startup" in results:
        lines += ["## Start-up: one line through nmt.translate, on the CPU", "", *_startup(results["startup"]), ""]
    if "exported" in results:
        lines += ["## A model beside its export: beam 5, on the CPU", "", *_exported(results["exported"]), ""]
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
    for name, figures in measured.items():
        counted = "flops_per_token" in figures
        rows.append(
            [
                WIRINGS[name].title if name in WIRINGS else "torch's GRUs, no attention",
                with_spread(figures, "tokens_per_second", "{:,.0f}"),
                f"{figures['flops_per_token'] / 1e6:.1f}" if counted else "",
                with_spread(figures, "multiply_rate", "{:,.0f}", 1e9) if counted else "",
                f"{figures['limit_tokens_per_second']:,.0f}" if counted else "",
                with_spread(figures, "fraction_of_limit", "{:.1f} %", 0.01) if counted else "",
                f"{figures['target_padding']:.1%}",
                _mebibytes(figures),
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
        for search, by_batch in measured[name].items():
            for batch, figures in by_batch["batches"].items():
                rows.append(
                    [
                        WIRINGS[name].title,
                        search,
                        batch,
                        with_spread(figures, "sentences_per_second", "{:,.1f}"),
                        f"{figures['target_tokens_per_sentence']:.1f}",
                        _mebibytes(figures),
                        f"{figures['bleu']:.1f}" if "bleu" in figures else "",
                    ]
                )
    return table(["wiring", "search", "batch", "sentences/s", "tokens/sentence", "MiB", "BLEU"], rows)


def _startup(measured: Json) -> list[str]:
    titles = {
        "answer_seconds": "answered, s",
        "import_torch_seconds": "importing torch, s",
        "read_model_seconds": "reading the weights, s",
        "ratio": "answered / the other two",
        "checked_over_unchecked": "answered / without checksums",
        "served_seconds": "first answer of nmt.serve, s",
        "served_over_answer": "first answer / answered",
    }
    titles = {name: title for name, title in titles.items() if name in measured}
    return table([*titles.values()], [[with_spread(measured, name, "{:.2f}") for name in titles]])


def _peers(peers: Json) -> list[str]:
    rows, notes = [], []
    for name, figures in peers.items():
        notes += [figures[key] for key in ("missing", "failed") if key in figures]
        parts = [("training, tokens/s", "tokens_per_second", "{:,.0f}", figures.get("training"))]
        translating = figures.get("translating", {})
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
                        f"{name} {figures['version']}",
                        title,
                        with_spread(measured, unit, form),
                        with_spread(ratio, "ours_over_theirs", "{:.2f}") if ratio else "",
                        _both(measured, "bleu"),
                        _both(measured, "pieces_per_sentence"),
                    ]
                )
        notes += _unlike(name, figures.get("translating", {}))
    head = ["peer", "what", "theirs", "ours / theirs", "BLEU, theirs and ours", "pieces/sentence, theirs and ours"]
    return [*(table(head, rows) if rows else []), "", *notes]


def _both(figures: Json, key: str) -> str:
    return f"{figures[key]:.1f}, {figures[f'our_{key}']:.1f}" if key in figures else ""


def _unlike(name: str, figures: Json) -> list[str]:
    """A warning where the translations cannot be the same work."""
    lengths = figures.get("pieces_per_sentence", 0.0), figures.get("our_pieces_per_sentence", 0.0)
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
            " + ".join(f"{factor:.3g}{power}" for factor, power in zip(curve["coefficients"], POWERS, strict=False)),
            f"{curve['r2']:.4f}{'' if curve['r2'] >= EXPLAINED else ', not so'}",
            curve["theory"],
        ]
        for curve in curves
    ]
    return [*lines, *table(["work", "unit", *map(str, values), "by least squares", "R2", "theory"], rows), ""]


def measured(results: Json) -> dict[str, Json]:
    """The programs whose quality was measured."""
    return {name: program for name, program in results["programs"].items() if "points" in program}


def quality_text(results: Json) -> str:
    """The table of quality against time, in Markdown."""
    programs, minutes = measured(results), results["settings"]["minutes"]
    levels = _levels(programs)
    shares = (0.25, 0.5, 1.0)
    rows = [
        [
            f"{program['title']} {program['version']}",
            f"{program['points'][-1]['update']:,}",
            f"{program['points'][-1]['minutes']:.1f}",
            *(_number(_bleu_after(program["points"], share * minutes)) for share in shares),
            f"{max(point['bleu'] for point in program['points']):.1f}",
            *(_number(_minutes_until(program["points"], level)) for level in levels),
            _number(program["cores_of_others"]),
        ]
        for program in programs.values()
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
    notes = [
        program[key] for program in results["programs"].values() for key in ("missing", "failed") if key in program
    ]
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


def _exported(measured: Json) -> list[str]:
    rows = [
        [
            figures["program"],
            with_spread(figures, "sentences_per_second", "{:,.1f}"),
            with_spread(figures, "of_nmt", "{:.2f}"),
            f"{figures['bleu']:.1f}",
            f"{figures['same']:,} of {figures['sentences']:,}",
        ]
        for figures in measured.values()
    ]
    return table(["program", "sentences/s", "nmt's speed over it", "BLEU", "same as nmt"], rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _levels(programs: dict[str, Json]) -> range:
    """The four highest multiples of 5 that a program reaches."""
    best = max((point["bleu"] for program in programs.values() for point in program["points"]), default=0.0)
    return range(5, int(best) + 1, 5)[-4:]


def _overtaken(programs: dict[str, Json]) -> list[str]:
    """When our models were as good as each peer ever was."""
    lines = []
    for peer in (program for program in programs.values() if not program["ours"]):
        best = max(peer["points"], key=lambda point: point["bleu"])
        for program in (program for program in programs.values() if program["ours"]):
            minutes = _minutes_until(program["points"], best["bleu"])
            reached = "not reached" if minutes is None else f"reached after {minutes:.1f} minutes"
            lines.append(
                f"{peer['title']}'s best, {best['bleu']:.1f} after {best['minutes']:.1f} minutes: {reached} by "
                f"{program['title']}."
            )
    return lines


def _bleu_after(points: Sequence[Json], minutes: float) -> float | None:
    """BLEU of the last weights that were kept within so many minutes; None where there are none."""
    scores = [point["bleu"] for point in points if point["minutes"] <= minutes * LATE]
    return scores[-1] if scores else None


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
    for program in measured(results).values():
        points = program["points"]
        axes.plot(
            [point["minutes"] for point in points],
            [point["bleu"] for point in points],
            "o-",
            markersize=4,
            label=f"{program['title']} {program['version']}",
        )
    machine, corpus = results["machine"], results["corpus"]
    axes.set_title(f"{corpus['name']}, {corpus['pieces']:,} pieces, beam 5; {machine['cpu']}", fontsize="medium")
    axes.set_xlabel(f"minutes of training, {machine['threads']} threads")
    axes.set_ylabel("validation BLEU, cased")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return _finished(figure, folder / "quality-over-time.png")


def _mebibytes(figures: Json) -> str:
    gpu = figures.get("peak_gpu_memory_bytes")
    amount = f"{figures['peak_memory_bytes'] / 2**20:,.0f}"
    return amount if gpu is None else f"{amount}, GPU {gpu / 2**20:,.0f}"


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
            relative = [median / first for median in curve["median"]]
            errors = [
                [value - least for value, least in zip(relative, low, strict=True)],
                [most - value for value, most in zip(relative, high, strict=True)],
            ]
            label = f"{curve['work']}, {curve['wiring']}, {curve['unit']} (R² {curve['r2']:.3f})"
            drawn = axes.errorbar(curve["values"], relative, errors, fmt="o", capsize=3, label=label)
            begin, end = curve["values"][0], curve["values"][-1]
            places = [begin + (end - begin) * step / 100 for step in range(101)]
            polynomial = Fit(curve["coefficients"], curve["r2"])
            fitted = [polynomial.at(place) / first for place in places]
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
