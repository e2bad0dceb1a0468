"""Sizes that are rounded up, so that products have few shapes: some libraries compile a kernel for each shape."""


def ceiling(number: int, multiple: int) -> int:
    """The smallest multiple that is not below the number."""
    return -(-number // multiple) * multiple


def round_up(rows: int) -> int:
    """The next of few numbers of rows: four between a power of two and the next one."""
    return ceiling(rows, 1 << max(rows.bit_length() - 3, 0))
