"""How much room the rings of points have: whole granules, and not far beyond the window."""

GRANULE = 64  # ring capacities are multiples of it


def largest_ring(window: int) -> int:
    """Return the capacity beyond which no ring grows while at most `window` points are held.

    Examples
    --------
    >>> largest_ring(100)
    128
    """
    return capacity_for(window + 1)


def capacity_for(n: int) -> int:
    """Return the least capacity for n points.

    Examples
    --------
    >>> capacity_for(65)
    128
    """
    return -(-n // GRANULE) * GRANULE
