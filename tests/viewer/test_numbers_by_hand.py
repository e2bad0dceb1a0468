"""The numbers of Why this weight in a real Chromium, against those that are worked by hand from the equations."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.attention import Attention, Stages
from nmt.inspection.document import _layers, _readout
from nmt.inspection.steps import Inspected, LayerStages, ReadoutVectors, vectors_of
from nmt.model.contract import Asks
from nmt.model.recurrent.bahdanau import Bahdanau
from nmt.model.recurrent.luong import Luong
from nmt.viewer import embed
from tests.catalogue import NORMALISERS, SCORES, attention
from tests.viewer import documents
from tests.viewer.conftest import Visit

pytestmark = pytest.mark.browser

#: Of each score: the parameters, the query, the keys, the energies, and what the page has to say of slot 1.
BY_HAND: dict[str, tuple[dict[str, Any], list[float], list[list[float]], list[float], list[str]]] = {
    "additive": (
        {"W.weight": [[1, 0], [0, 2]], "U.weight": [[1], [-1]], "v": [3, 5]},
        [0.5, 0.25], [[0.5], [-1]], [3 * math.tanh(1), 3 * math.tanh(-0.5) + 5 * math.tanh(1.5)],
        ["W q_2 = [0.500, 0.500]", "U k_1 = [0.500, −0.500]", "tanh(W q_2 + U k_1) = [0.762, 0.000]",
         "v = [3.000, 5.000]",
         "Energy: e(2,1) = v^T tanh(…) = 3.000 × 0.762 + 5.000 × 0.000 = 2.285."],
    ),
    "concat": (
        {"W.weight": [[1, -1, 2], [0, 0, 0]], "v": [4, 0]},
        [0.5, 0.25], [[0.5], [-1]], [4 * math.tanh(1.25), 4 * math.tanh(-1.75)],
        ["W [q_2; 0] = [0.250, 0.000]", "W [0; k_1] = [1.000, 0.000]", "tanh(W [q_2; 0] + W [0; k_1]) = [0.848, 0.000]",
         "Energy: e(2,1) = v^T tanh(…) = 4.000 × 0.848 + 0.000 × 0.000 = 3.393."],
    ),
    "general": (
        {"W.weight": [[2], [3]]}, [0.1, 1], [[1], [-0.5]], [3.2, -1.6],
        ["W k_1 = [2.000, 3.000]", "Energy: e(2,1) = 0.100 × 2.000 + 1.000 × 3.000 = 3.200."],
    ),
    "dot": ({}, [1, 2], [[1, 0.5], [0, -0.5]], [2, -1], ["Energy: e(2,1) = 1.000 × 1.000 + 2.000 × 0.500 = 2.000."]),
    "scaled_dot": (
        {}, [1, 2, 3, 4], [[1, 0, 1, 0], [-1, 0, 0, 0]], [2, -0.5],
        ["Energy: e(2,1) = 0.500 (1/√4) × (1.000 × 1.000 + 2.000 × 0.000 + 3.000 × 1.000 + 4.000 × 0.000) = 2.000."],
    ),
    "cosine": (
        {"s": [0]}, [3, 4], [[10, 0], [-3, -4]], [math.sqrt(2) * 0.6, -math.sqrt(2)],
        ["q_2 / |q_2| = [0.600, 0.800]", "k_1 / |k_1| = [1.000, 0.000]",
         "Energy: e(2,1) = 1.414 × (0.600 × 1.000 + 0.800 × 0.000) = 0.849."],
    ),
    "location": (
        {"W.weight": [[1, 0], [0, 2]]}, [1, 0.25], [[7], [8]], [1, 0.5],
        ["row 1 of W_a = [1.000, 0.000]", "Energy: e(2,1) = 1.000 × 1.000 + 0.250 × 0.000 = 1.000."],
    ),
}  # fmt: skip

#: Of each normaliser: settings, the energies of both slots, their shares, and the line of slot 1.
SHARES: dict[str, tuple[dict[str, Any], list[float], list[float], str]] = {
    "softmax": ({}, [math.log(3), 0], [0.75, 0.25],
                "Softmax over 2 visible pieces, after subtracting the largest energy, 1.099: "
                "exp(0.000) / 1.333 = 1.000 / 1.333 = 0.750."),
    "sink": ({}, [math.log(2), 0], [0.5, 0.25], "exp(0.693) / (exp(0.000) + 3.000) = 2.000 / 4.000 = 0.500."),
    "sparsemax": ({}, [0.5, 0], [0.75, 0.25], "theta = (−0.250) makes the sum 1, so max(0.500 − (−0.250), 0) = 0.750."),
    "entmax": ({}, [0.4, 0], [0.64, 0.36],
               "theta = (−0.600) makes the sum 1, so max(0.500 × 0.400 − (−0.600), 0)^(1 / 0.500) = 0.640."),
}  # fmt: skip


def inspected(mechanism: Attention, queries: Tensor, values: Tensor, asks: Asks | None) -> tuple[Inspected, Tensor]:
    """What a mechanism computes for two steps, and its weights."""
    memory = mechanism.remember(values.unsqueeze(0), torch.ones(1, len(values), dtype=torch.bool))
    attended = mechanism(queries.unsqueeze(0), memory, torch.arange(len(queries)).unsqueeze(0))
    stages: Stages = attended.stages
    view = stages.view._replace(visible=stages.view.visible.expand_as(stages.weights)[0])
    keys, read = (mechanism.split(each, values[None]) for each in (mechanism.key, mechanism.value))
    vectors = vectors_of(mechanism, stages.queries[0], keys, read, asks)
    vectors = vectors if mechanism.out is None else vectors._replace(merged=attended.context[0])
    parts = Stages(stages.energies[0], view, stages.shares[0], stages.weights[0], stages.queries[0])
    names = ["0"] if mechanism.heads == 1 else [f"1.{head}" for head in range(1, mechanism.heads + 1)]
    layer = LayerStages(mechanism, names, parts, None, vectors)
    readout = ReadoutVectors(attended.context[0], "r_t = c_t")
    return Inspected([4, 5], torch.zeros(2, 6), None, [layer], readout), stages.weights[0]


def page_of(tmp_path: Path, mechanism: Attention, queries: Tensor, values: Tensor, asks: Asks | None = None) -> str:
    """A page of "a b" (or more letters) -> "x y"."""
    seen, weights = inspected(mechanism, queries, values, asks)
    letters = "abcdef"[: len(values)]
    source = documents.side(" ".join(letters), [(one, 2 * at, 2 * at + 1, at) for at, one in enumerate(letters)])
    target = documents.side("x y", [("x", 0, 1, 0), ("y", 2, 3, 1)])
    assert seen.readout is not None
    stages, readout = _layers(seen.layers), _readout(seen.readout)
    made = documents.document(source, target, weights.tolist(), stages=stages, readout=readout)
    for piece in made["hypotheses"][0]["pieces"]:
        piece["log_prob"] = math.log(0.5)
    data = {"sentences": [{"line": 1, "translations": [{"name": "one", "translation": made}], "reference": None}],
            "corpus": None}  # fmt: skip
    path = tmp_path / "numbers.html"
    path.write_text(embed.page("Numbers", f"<main><h1>N</h1>{embed.viewer('v', data)}</main>"), encoding="utf-8")
    return path.as_uri()


def derived(page: Any) -> str:
    """The lines of step 2 and slot 1."""
    page.locator("#v-why").get_by_label("Target piece").select_option("1")
    page.locator("#v-why .stages button").first.click()
    return "\n".join(" ".join(line.split()) for line in page.locator("#v-why .derivation li").all_inner_texts())


def test_every_part_has_an_example() -> None:
    assert set(BY_HAND) == set(SCORES)
    assert set(SHARES) == set(NORMALISERS)


@pytest.mark.parametrize("score", SCORES)
def test_an_energy_is_that_of_the_hand_example(score: str, visit: Visit, tmp_path: Path) -> None:
    parameters, query, keys, energies, lines = BY_HAND[score]
    sizes: dict[str, Any] = {"query_size": len(query), "value_size": len(keys[0]), "size": 2}
    mechanism = attention(score, project=False, positions=2, **sizes).float()
    with torch.no_grad():
        for name, value in parameters.items():
            mechanism.score.get_parameter(name).copy_(torch.tensor(value))
    queries, values = (torch.tensor(rows, dtype=torch.float32) for rows in ([query, query], keys))
    text = derived(visit(page_of(tmp_path, mechanism, queries, values)))
    assert [line for line in lines if line not in text] == [], text
    most = max(energies)
    exponents = [math.exp(energy - most) for energy in energies]
    weight = exponents[0] / sum(exponents)
    assert f"Weight: {weight:.3f} ({100 * weight:.0f} %)." in text
    context = [weight * one + (1 - weight) * two for one, two in zip(*keys, strict=True)]
    numbers = ", ".join(f"{value:.3f}".replace("-", "−") for value in context[:4])
    assert f"Context: c_2 = Σ_j a(2,j) v_j = [{numbers}" in text
    assert f"Readout: r_2 = c_2 = [{numbers}" in text
    assert "p(“y”) = 50 %" in text


@pytest.mark.parametrize("normaliser", NORMALISERS)
def test_a_share_is_that_of_the_hand_example(normaliser: str, visit: Visit, tmp_path: Path) -> None:
    settings, energies, shares, line = SHARES[normaliser]
    mechanism = attention("dot", normaliser=normaliser, query_size=1, value_size=1, size=1, project=False, **settings)
    with torch.no_grad():
        for parameter in mechanism.normaliser.parameters():
            parameter.zero_()
    page = visit(page_of(tmp_path, mechanism.float(), torch.ones(2, 1), torch.tensor(energies).unsqueeze(1)))
    text = derived(page)
    assert line in text, text
    assert f"Weight: {shares[0]:.3f} ({100 * shares[0]:.0f} %)." in text
    output, slider = page.locator("#v-why output"), page.get_by_label("Temperature before the normaliser")
    assert f"“a” {100 * shares[0]:.0f} %" in output.inner_text()
    slider.focus()
    page.keyboard.press("Home")  # a tenth: the largest energy takes nearly all
    assert "Energies / 0.10: “a” 100 %" in output.inner_text()
    page.keyboard.press("End")
    share = float(output.inner_text().split("“a” ")[1].split(" %")[0]) / 100
    assert shares[1] - 0.2 < share < shares[0], "ten times as warm: more even"


@pytest.mark.parametrize(
    ("wiring", "line"),
    [
        (Bahdanau, "Who asks: s_1, the state before step 2: the decoder attends first, then updates to s_2. "
                   "It has read the beginning <s>, and no word. q_2 = s_1 = [1.000, 2.000]"),
        (Luong, "Who asks: s_2, the state of step 2: the decoder updates first, then attends. "
                "It has read the words up to “x”. q_2 = s_2 = [1.000, 2.000]"),
    ],
)  # fmt: skip
def test_bahdanau_and_luong_differ_in_who_asks(wiring: Any, line: str, visit: Visit, tmp_path: Path) -> None:
    mechanism = attention("dot", query_size=2, value_size=2, project=False).float()
    page = visit(page_of(tmp_path, mechanism, torch.tensor([[1.0, 2.0]] * 2), torch.eye(2), wiring.asks))
    assert line in derived(page)
