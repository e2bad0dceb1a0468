"""The benchmark's part "growth": how costs grow along each axis."""

from benchmarking.crew import Case
from benchmarking.numbers import fit, spread, summary
from benchmarking.session import Benchmark, say
from benchmarking.settings import AXES, CURVES, Growth, Json, Place, Sizes


def measure(session: Benchmark, place: Place) -> Json:
    """Every curve of `CURVES`, by axis."""
    rounds: dict[tuple[Growth, int], list[float]] = {}
    with Case("growing", {"place": place, "folder": session.data}, session.log) as case:
        for number in session.numbers():
            for curve in CURVES:
                for value in session.scale.growth[curve.axis]:
                    order = _point(session, curve, value)
                    seconds = case.ask(**order)["seconds"]
                    units = order["sentences"] * (order["length"] if curve.unit == "token" else 1)
                    rounds.setdefault((curve, value), []).append(1000 * seconds / units)
                say(f"round {number}, growth, {curve.work} {curve.wiring} by {curve.axis}")
    results: Json = {axis: [] for axis in AXES}
    for curve in CURVES:
        values = list(session.scale.growth[curve.axis])
        points = [rounds[curve, value] for value in values]
        medians = [summary([{"median": milliseconds} for milliseconds in point])["median"] for point in points]
        results[curve.axis].append(
            {
                **curve._asdict(),
                "unit": f"ms a {curve.unit}",
                "values": values,
                "median": medians,
                "spread": [spread(point) for point in points],
                **fit(values, medians, curve.degree)._asdict(),
            }
        )
    return results


def _point(session: Benchmark, curve: Growth, value: int) -> Json:
    """The order for one point of a curve."""
    sizes: Sizes = session.scale.sizes
    if curve.axis == "vocabulary":
        sizes = sizes._replace(pieces=value)
    elif curve.axis == "layers":
        sizes = sizes._replace(layers=value)
    return {
        "work": curve.work,
        "wiring": curve.wiring,
        "sizes": sizes,
        "length": value if curve.axis == "sentence_length" else session.scale.growth_length,
        "sentences": session.scale.growth_sentences[curve.axis],
        "beam": value if curve.axis == "beam" else 5,
        "repeats": session.scale.growth_updates,
    }
