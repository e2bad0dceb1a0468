"""Tables in Markdown, and that of the Transformer's training."""

from collections.abc import Sequence

from benchmarking.settings import TORCH_TRANSFORMER, TRANSFORMER, Json


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table with columns of one width."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def with_spread(figures: Json, key: str, form: str, unit: float = 1.0) -> str:
    """A median and, in brackets, the smallest and the largest, in `unit`."""
    low, high = figures["spread"][key]
    return f"{form.format(figures[key] / unit)} ({form.format(low / unit)} to {form.format(high / unit)})"


def transformer(measured: Json) -> list[str]:
    """What `transformer.measure` measured."""
    titles = {TRANSFORMER.name: "ours", TORCH_TRANSFORMER: "torch's layers, our loop", "opennmt-py": "OpenNMT-py"}
    rows = []
    for name, title in titles.items():
        if (figures := measured.get(name)) is None:
            continue
        counted = "fraction_of_limit" in figures
        rows.append(
            [
                title,
                with_spread(figures, "tokens_per_second", "{:,.0f}"),
                with_spread(figures["ratio"], "ours_over_theirs", "{:.2f}") if name != TRANSFORMER.name else "",
                f"{figures['flops_per_token'] / 1e6:.1f}" if counted else "",
                with_spread(figures, "multiply_rate", "{:,.0f}", 1e9) if counted else "",
                with_spread(figures, "fraction_of_limit", "{:.1f} %", 0.01) if counted else "",
            ]
        )
    head = ["program", "target tokens/s", "ours / theirs", "MFLOP/token", "products GFLOP/s", "of limit"]
    return [*table(head, rows), *(measured[key] for key in ("missing", "failed") if key in measured)]
