"""Every score with every normaliser: the numbers on the page against a computation of the test's own, in Chromium.

The vectors and energies that the page shows are read from it, and what follows from them is computed again in numpy.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from tests.catalogue import NORMALISERS, SCORES, attention
from tests.viewer.conftest import Visit
from tests.viewer.test_numbers_by_hand import page_of

pytestmark = [pytest.mark.browser, pytest.mark.long]
Vector = npt.NDArray[np.float64]
SIZE, SLOTS = 4, 3  # as many components as the page shows as numbers

#: Of each score, by the equation in its paper: q, k and the number of the slot -> the energy.
ENERGIES: dict[str, Callable[[dict[str, Vector], Vector, Vector, int], Any]] = {
    "additive": lambda made, q, k, _: made["v"] @ np.tanh(made["W.weight"] @ q + made["U.weight"] @ k),
    "concat": lambda made, q, k, _: made["v"] @ np.tanh(made["W.weight"] @ np.concatenate([q, k])),
    "general": lambda made, q, k, _: q @ made["W.weight"] @ k,
    "dot": lambda _, q, k, __: q @ k,
    "scaled_dot": lambda _, q, k, __: q @ k / SIZE**0.5,
    "cosine": lambda made, q, k, _: SIZE**0.5 * np.exp(made["s"][0]) * (q @ k) / np.sqrt((q @ q) * (k @ k)),
    "location": lambda made, q, _, slot: made["W.weight"][slot] @ q,
}  # fmt: skip


def projected(energies: Vector, alpha: float) -> Vector:
    """Of entmax, by a search for the number of shares above 0 (Peters et al. 2019, algorithm 2, for any alpha)."""
    scaled = (alpha - 1) * energies
    low, high = scaled.max() - 1, scaled.max()
    for _ in range(100):
        theta = (low + high) / 2
        low, high = (theta, high) if (np.maximum(scaled - theta, 0) ** (1 / (alpha - 1))).sum() > 1 else (low, theta)
    return np.asarray(np.maximum(scaled - low, 0) ** (1 / (alpha - 1)))


#: Of each normaliser: its parameters and the energies -> the shares.
SHARES: dict[str, Callable[[dict[str, Vector], Vector], Vector]] = {
    "softmax": lambda _, e: np.exp(e) / np.exp(e).sum(),
    "sink": lambda made, e: np.exp(e) / (np.exp(made["s"][0]) + np.exp(e).sum()),
    "sparsemax": lambda _, e: projected(e, 2.0),
    "entmax": lambda _, e: projected(e, 1.5),
}

#: Of each normaliser: a number of the table's column, and that of the last row -> the share.
WORKED: dict[str, Callable[[Vector, float], Vector]] = {
    "softmax": lambda column, total: column / total,
    "sink": lambda column, total: column / total,
    "sparsemax": lambda column, _: column,
    "entmax": lambda column, _: column**2,
}


def number_of(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def vector_of(text: str, begin: str) -> Vector:
    """The numbers in brackets of the line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(begin)]
    return np.array([number_of(each) for each in re.findall(r"= \[([^\]]*)\]", line)[-1].split(", ")])


def derived(page: Any, slot: int) -> str:
    """The lines of a slot, a line each."""
    page.locator("#v-why .stages button").nth(slot).click()
    items = page.locator("#v-why .derivation > li")
    texts = items.evaluate_all(
        "items => items.map(each => each.firstChild.textContent + "
        "(each.querySelector(':scope > .vector code')?.textContent ?? ''))"
    )
    return "\n".join(" ".join(text.split()) for text in texts)


def parameters(module: torch.nn.Module) -> dict[str, Vector]:
    return {name: each.detach().double().numpy() for name, each in module.named_parameters()}


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", SCORES)
def test_the_numbers_on_the_page_are_those_of_the_equations(
    score: str, normaliser: str, visit: Visit, tmp_path: Path
) -> None:
    sizes: dict[str, Any] = {"query_size": SIZE, "value_size": SIZE, "size": SIZE}
    mechanism = attention(score, normaliser=normaliser, project=False, positions=SLOTS, **sizes).float()
    torch.manual_seed(1)
    queries, values = torch.randn(2, SIZE), torch.randn(SLOTS, SIZE)
    page = visit(page_of(tmp_path, mechanism, queries, values))
    page.locator("#v-why").get_by_label("Target piece").select_option("1")
    lines = [derived(page, slot) for slot in range(SLOTS)]
    query = vector_of(lines[0], "q_2 =")
    keys = [vector_of(text, "Key of") for text in lines]
    read = np.array([vector_of(text, "Value of") for text in lines])
    assert np.allclose(query, queries[1], atol=1e-3)
    assert np.allclose(keys, values, atol=1e-3)
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#v-why .stages tbody tr").all()]
    foot = [row.locator("td").all_inner_texts() for row in page.locator("#v-why .stages tfoot tr").all()]
    energies, worked, shares = (np.array([number_of(row[at]) for row in rows]) for at in (1, 2, 3))
    made = parameters(mechanism.score)
    expected = [ENERGIES[score](made, query, key, slot) for slot, key in enumerate(keys)]
    assert np.allclose(energies, expected, atol=0.02)
    assert len(set(energies.tolist())) == SLOTS, "energies that say something"
    assert np.allclose(shares, SHARES[normaliser](parameters(mechanism.normaliser), energies), atol=2e-3)
    assert np.allclose(shares, WORKED[normaliser](worked, number_of(foot[-1][2])), atol=3e-3)
    assert np.allclose(vector_of(lines[0], "Context:"), shares @ read, atol=5e-3)
    for text, energy, share in zip(lines, energies, shares, strict=True):
        energy_line, weight_line = (next(line for line in text.splitlines() if line.startswith(begin))
                                    for begin in ("Energy: e(2,", "Weight: "))  # fmt: skip
        assert number_of(energy_line.rpartition(" = ")[2].rstrip(".")) == energy
        assert number_of(weight_line.split()[1]) == share


def test_every_part_is_computed_again() -> None:
    assert set(ENERGIES) == set(SCORES)
    assert set(SHARES) == set(WORKED) == set(NORMALISERS)


def test_the_output_of_several_heads_follows_from_their_contexts(visit: Visit, tmp_path: Path) -> None:
    """q, k and v are projections of 2 numbers for each of 2 heads, their contexts side by side go through W^O."""
    mechanism = attention("scaled_dot", heads=2, query_size=3, value_size=5, size=4).float()
    torch.manual_seed(2)
    queries, values = torch.randn(2, 3), torch.randn(SLOTS, 5)
    page = visit(page_of(tmp_path, mechanism, queries, values))
    box = page.locator("#v-why")
    box.get_by_label("Target piece").select_option("1")
    for head in (0, 1):
        box.get_by_label("Head shown here").select_option(f"1.{head + 1}")
        mine = slice(2 * head, 2 * head + 2)
        lines = [derived(page, slot) for slot in range(SLOTS)]
        text = " ".join(page.locator("#v-why .derivation").inner_text().split())
        projections = {"Q": mechanism.query, "K": mechanism.key, "V": mechanism.value, "O": mechanism.out}
        made = {name: each.weight.detach().double().numpy() for name, each in projections.items() if each is not None}
        asked = (made["Q"] @ queries[1].double().numpy())[mine]
        assert np.allclose(vector_of(lines[0], "q_2 = W^Q x_2 ="), asked, atol=1e-3)
        of_slots = values.double().numpy()
        for slot in range(SLOTS):
            key = (made["K"] @ of_slots[slot])[mine]
            begin = f"Key of “{'abc'[slot]}”: k_{slot + 1} = W^K h_{slot + 1} ="
            assert np.allclose(vector_of(lines[slot], begin), key, atol=1e-3)
            value = (made["V"] @ of_slots[slot])[mine]
            begin = f"Value of “{'abc'[slot]}”: v_{slot + 1} = W^V h_{slot + 1} ="
            assert np.allclose(vector_of(lines[slot], begin), value, atol=1e-3)
        contexts = []
        for one in (slice(0, 2), slice(2, 4)):
            query = (made["Q"] @ queries[1].double().numpy())[one]
            energies = (of_slots @ made["K"].T)[:, one] @ query / 2**0.5
            shares = np.exp(energies) / np.exp(energies).sum()
            contexts.append(shares @ (of_slots @ made["V"].T)[:, one])
        begin = f"Context of layer 1, head {head + 1}: c_2^{head + 1} = Σ_j a(2,j) v_j ="
        assert np.allclose(vector_of(lines[0], begin), contexts[head], atol=1e-3)
        output = vector_of(lines[0].replace(", …", ""), "Output: c_2 = W^O [c_2^1; c_2^2] =")
        assert np.allclose(output, (made["O"] @ np.concatenate(contexts))[:4], atol=1e-3)
        assert "layer 1, head 2: c_2^2 = [" in text
