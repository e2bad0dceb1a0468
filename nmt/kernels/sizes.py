"""Few sizes of batches, for products that are compiled anew for each shape of matrix (`Compute.compiles_shapes`)."""


def size_of(rows: int) -> int:
    """The next of few numbers of rows: four between a power of two and the next one."""
    step = 1 << max(rows.bit_length() - 3, 0)
    return -(-rows // step) * step
