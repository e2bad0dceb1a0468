"""The largest values of long rows, found in two steps."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.kernels.topk import BLOCK, largest


@given(st.integers(1, 6), st.integers(1, 9 * BLOCK), st.integers(1, 12), st.integers(0, 1000), st.booleans())
def test_it_gives_what_topk_gives(rows: int, width: int, count: int, seed: int, few: bool) -> None:
    """Also where many values are equal, or nearly all forbidden."""
    count = min(count, width)
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, width, generator=generator)
    if few:
        values = values.round()
        values[values < 1] = float("-inf")
    found, places = largest(values, count)
    assert torch.equal(found, values.topk(count, 1).values)
    assert torch.equal(found, values.gather(1, places))
    assert all(len(set(row)) == count for row in places.tolist())
