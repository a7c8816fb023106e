"""Counts with their nouns, and bytes with their units, for messages."""


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a number with its noun: `one`, or `more`, which is `one` with an s unless given.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "entry", "entries")
    ('1 row', '2,000 rows', '0 entries')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def magnitude(size: int) -> str:
    """Return bytes with the unit that suits them.

    Examples
    --------
    >>> magnitude(0), magnitude(999), magnitude(1_480), magnitude(67_108_864), magnitude(3 * 10**9)
    ('0 B', '999 B', '1.5 kB', '67 MB', '3.0 GB')
    """
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{size} B" if unit == "B" else f"{value:.{1 if value < 9.95 else 0}f} {unit}"
        value /= 1000
    raise AssertionError("the last unit has no bound")
