"""Text for people: counts with nouns, bytes with units, and escaped text from Redis.

All text from Redis passes through `printable` before it is shown. A label, an id, a feature name,
the holder of a lease or a server error may contain terminal escape sequences, line breaks that
forge a line, or marks that reverse the text after them.
"""

import math


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun; the plural is the singular with an s unless given.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(0, "entry", "entries")
    ('1 row', '2,000 rows', '0 entries')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def magnitude(size: int) -> str:
    """Return a number of bytes with a fitting unit.

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


def printable(text: str | bytes) -> str:
    r"""Return a text on one line, with every unprintable character escaped.

    It escapes control characters, line and paragraph separators, direction marks, lone surrogates
    and unassigned code points. Letters of any script are not changed.

    Examples
    --------
    >>> print(printable("été \x1b[2J\n\u202e"))
    été \x1b[2J\n\u202e
    >>> print(printable(b"caf\xc3\xa9 \xff"))
    café \xff
    """
    if isinstance(text, bytes):
        text = text.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_json(text: bytes | str) -> str:
    r"""Return equivalent JSON on one line, with every unprintable character escaped.

    Examples
    --------
    >>> print(printable_json('{"label":"\x9b2J"}'))
    {"label":"\u009b2J"}
    """
    if isinstance(text, bytes):
        text = text.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped_in_json(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _escaped_in_json(character: str) -> str:
    if character in "\t\n\r":
        return " "  # in JSON these occur only between tokens, as white space
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def four_digits(value: float) -> str:
    """Return a number with four digits, without a leading zero.

    Examples
    --------
    >>> four_digits(0.25), four_digits(1.79812), four_digits(0.0), four_digits(math.nan)
    ('.25', '1.798', '0', 'unknown')
    """
    text = "unknown" if math.isnan(value) else f"{value:.4g}"
    return text.removeprefix("0") if text.startswith("0.") else text


def share(value: float) -> str:
    """Return a number with three decimals, without a leading zero: .757."""
    return f"{value:.3f}".removeprefix("0")
