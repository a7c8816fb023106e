"""The lines of a source: counted, each of bounded length, and text throughout."""

from collections.abc import Iterator
from typing import TextIO

from workers.push.rows import BadSource

LONGEST = 16 * 2**20
"""Characters of a line, at most: an entry of the largest size that a feed may be given is less."""


class Lines:
    """Iterates over the lines of a text.

    Parameters
    ----------
    source : text file

    Attributes
    ----------
    number : int
        Of the line that was read last, from 1 on; 0 before the first.
    """

    def __init__(self, source: TextIO) -> None:
        self._source, self.number = source, 0

    def __iter__(self) -> Iterator[str]:
        """Yield each line with its end.

        Raises
        ------
        BadSource
            If a line is too long, holds a NUL or is not UTF-8.
        """
        while line := self._next():
            yield line

    def _next(self) -> str:
        self.number += 1
        try:
            line = self._source.readline(LONGEST + 1)
        except UnicodeDecodeError:
            raise BadSource("not UTF-8 text") from None
        if len(line) > LONGEST:
            raise BadSource(f"a line of more than {LONGEST:,} characters")
        if "\0" in line:
            raise BadSource("a NUL character: this is not UTF-8 text")
        # Standard input keeps the byte order mark that a file is opened without.
        return line.removeprefix("\ufeff") if self.number == 1 else line
