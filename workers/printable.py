"""Text from outside, fit for a terminal: whatever came from Redis passes here before it is shown.

A label, an id, a feature name, the holder of a lease or an error of the server may hold escape
sequences, which a terminal obeys, line breaks, which forge a line, or marks that reverse the order
of what follows.
"""


def printable(text: str | bytes) -> str:
    r"""Return a text on one line, with every character that is not printable as an escape.

    Not printable are control characters, line and paragraph separators, marks of direction, lone
    surrogates and what Unicode has not assigned. Letters of any script stay as they are.

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
    r"""Return JSON on one line that means the same, without a character that is not printable.

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
        return " "  # JSON has these outside strings only, where they mean nothing
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
