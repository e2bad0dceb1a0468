"""The results of a benchmark as Markdown tables and as a JSON file."""

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarking.settings import TORCH_TRANSFORMER, TRANSFORMER, WIRINGS, Json
from nmt.system.files import write_text

#: Maximum ratio of mean lengths up to which two sets of translations count as the same work.
ALIKE = 1.1


def write_json(path: Path, results: Json) -> None:
    """Write all results (UserError if the file cannot be written)."""
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
        lines += ["## Training the Transformer, on the CPU", "", *_transformer(results["transformer"]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _setting(results: Json) -> list[str]:
    """The description of the machine and the corpus."""
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
    rows = [
        [
            WIRINGS[name].title if name in WIRINGS else "torch's GRUs, no attention",
            with_spread(figures, "tokens_per_second", "{:,.0f}"),
            f"{figures['target_padding']:.1%}",
            _mebibytes(figures),
        ]
        for name, figures in measured.items()
    ]
    return table(["wiring", "target tokens/s", "padding", "MiB"], rows)


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
                        both(measured, "bleu"),
                        both(measured, "pieces_per_sentence"),
                    ]
                )
        notes += _unlike(name, figures.get("translating", {}))
    head = ["peer", "what", "theirs", "ours / theirs", "BLEU, theirs and ours", "pieces/sentence, theirs and ours"]
    return [*(table(head, rows) if rows else []), "", *notes]


def both(figures: Json, key: str) -> str:
    """The figure of a peer and of nmt; "" if it is missing."""
    return f"{figures[key]:.1f}, {figures[f'our_{key}']:.1f}" if key in figures else ""


def _unlike(name: str, figures: Json) -> list[str]:
    """A warning if the translations differ too much in length to be the same work."""
    lengths = figures.get("pieces_per_sentence", 0.0), figures.get("our_pieces_per_sentence", 0.0)
    if max(lengths) <= ALIKE * min(lengths):
        return []
    return [
        f"{name} says {lengths[0]:.1f} pieces a sentence and we say {lengths[1]:.1f}, which is not the same work: "
        "these models are hardly trained. Give more --updates."
    ]


def _mebibytes(figures: Json) -> str:
    gpu = figures.get("peak_gpu_memory_bytes")
    amount = f"{figures['peak_memory_bytes'] / 2**20:,.0f}"
    return amount if gpu is None else f"{amount}, GPU {gpu / 2**20:,.0f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns are padded to equal width."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def with_spread(figures: Json, key: str, form: str) -> str:
    """The median, with the minimum and maximum in brackets."""
    low, high = figures["spread"][key]
    return f"{form.format(figures[key])} ({form.format(low)} to {form.format(high)})"


def _transformer(measured: Json) -> list[str]:
    """The table of the part "transformer"."""
    titles = {TRANSFORMER.name: "ours", TORCH_TRANSFORMER: "torch's layers, our loop", "opennmt-py": "OpenNMT-py"}
    rows = []
    for name, title in titles.items():
        if (figures := measured.get(name)) is None:
            continue
        rows.append(
            [
                title,
                with_spread(figures, "tokens_per_second", "{:,.0f}"),
                with_spread(figures["ratio"], "ours_over_theirs", "{:.2f}") if name != TRANSFORMER.name else "",
            ]
        )
    head = ["program", "target tokens/s", "ours / theirs"]
    return [*table(head, rows), *(measured[key] for key in ("missing", "failed") if key in measured)]
