"""Messages between a worker and its refit process.

A message is one byte (its kind), eight bytes (the length of the body), eight bytes (the seconds
that a reply took to compute) and the body; nothing is pickled.
"""

import struct
from typing import IO

CONFIG, LOAD, TASK, STATE = b"C", b"L", b"T", b"S"
SELECT, FORGET, WEIGH = b"U", b"X", b"W"
DONE, FAILED = b"D", b"F"

Message = tuple[bytes, bytes]

HEAD = struct.Struct(">cQd")
"""The head of each message: kind, length and seconds."""

WEIGHT = struct.Struct(">Q")
"""The reply to `WEIGH`: the bytes that a learner takes."""


def framed(kind: bytes, body: bytes, seconds: float = 0.0) -> bytes:
    """Return a message as it is sent through the pipe."""
    return HEAD.pack(kind, len(body), seconds) + body


def write_message(pipe: IO[bytes], kind: bytes, body: bytes = b"", seconds: float = 0.0) -> None:
    """Write one message."""
    pipe.write(framed(kind, body, seconds))
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Return kind and body of the next message.

    Raises
    ------
    EOFError
        If the other end is gone.
    """
    kind, length, _ = HEAD.unpack(_exactly(pipe, HEAD.size))
    return kind, _exactly(pipe, length)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError("the pipe was closed")
    return data
