"""The text of a gzip file, unless it unpacks to much more than a table does."""

import gzip
import io
from typing import IO

from typing_extensions import Buffer, override

from workers.push.reading import BadSource

_MAX_EXAMINED = 1 << 29  # bytes that are unpacked before the first line is read
_BLOCK_BYTES = 1 << 20


class Unpacked(io.RawIOBase):
    """The bytes that a gzip file unpacks to.

    Reading raises BadSource beyond 16 MB and 50 times the bytes that were read of the file: tables
    unpack to 5 to 20 times their size, a bomb to 1,000 times.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._count = file, 0
        self._unpacked = gzip.GzipFile(fileobj=file)

    def checked(self) -> io.BufferedReader:
        """Return a reader of the bytes. Raises BadSource if the first 512 MB are too many."""
        block = bytearray(_BLOCK_BYTES)
        while self._count < _MAX_EXAMINED and self.readinto(block):
            pass
        self._unpacked.seek(0)
        self._count = 0
        return io.BufferedReader(self)

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: Buffer, /) -> int:
        count = self._unpacked.readinto(buffer)
        self._count += count
        if self._count > (16 << 20) + 50 * self._file.tell():
            raise BadSource("it unpacks to more than 50 times its size: unpack it, and look at it")
        return count
