"""Round sizes up, so that products have few different shapes: some libraries compile a kernel for each shape."""


def ceiling(number: int, multiple: int) -> int:
    """Round `number` up to a multiple of `multiple`."""
    return -(-number // multiple) * multiple


def round_up(rows: int) -> int:
    """Round a number of rows up to one of few sizes: four sizes between successive powers of two."""
    return ceiling(rows, 1 << max(rows.bit_length() - 3, 0))
