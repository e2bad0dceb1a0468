"""Few sizes of batches."""

from nmt.kernels.sizes import round_up


def test_sizes_are_few_and_not_much_larger() -> None:
    sizes = [round_up(rows) for rows in range(1, 1025)]
    assert all(rows <= size < 1.25 * rows for rows, size in enumerate(sizes, 1))
    assert len(set(sizes)) == 7 + 4 * 7 + 1  # 1 to 7, four from each of 8, 16 to 512, and 1,024
    assert [round_up(size) for size in sizes] == sizes
    assert round_up(0) == 0
