"""The key that a command is about; all keys of one command are in one slot."""

from collections.abc import Sequence

from workers.broker.pipeline import Argument

_SCRIPTS = ("EVAL", "EVALSHA")
_STREAM_READS = ("XREAD", "XREADGROUP")
_SUBCOMMANDS = ("XINFO", "XGROUP", "MEMORY")
_WITHOUT_KEY = frozenset(["INFO", "SCAN", "CONFIG", "PING", "ECHO", "CLIENT", "ROLE", "TIME"])


def key_of(command: Sequence[Argument]) -> bytes | None:
    """Return the first key of a command; None if it has none.

    Examples
    --------
    >>> key_of(("XREAD", "COUNT", 9, "BLOCK", 5, "STREAMS", "osvm:{f}:in", b"0-0"))
    b'osvm:{f}:in'
    >>> key_of(("EVALSHA", "0" * 40, 2, "osvm:{f}:st", "osvm:{f}:in", 7))
    b'osvm:{f}:st'
    >>> key_of(("XINFO", "STREAM", "osvm:{f}:out")), key_of(("INFO", "server"))
    (b'osvm:{f}:out', None)
    >>> key_of(("MEMORY", "USAGE", "osvm:{f}:out"))
    b'osvm:{f}:out'
    """
    name = command[0] if command else "PING"
    if name in _WITHOUT_KEY:
        return None
    if name in _SCRIPTS:
        place = 3
    elif name in _STREAM_READS:
        place = list(command).index("STREAMS") + 1
    else:
        place = 2 if name in _SUBCOMMANDS else 1
    key = command[place]
    return key.encode() if isinstance(key, str) else bytes(key)  # type: ignore[arg-type]  # no number
