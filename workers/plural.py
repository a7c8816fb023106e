"""Counts with their nouns, for messages."""


def counted(count: int, one: str, more: str | None = None) -> str:
    """Return a number with its noun: `one`, or `more`, which is `one` with an s unless given.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "entry", "entries")
    ('1 row', '2,000 rows', '0 entries')
    """
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
