"""The lines of a source: numbered, of bounded length, and valid text."""

import sys
from collections.abc import Iterator
from typing import TextIO

from workers.push.rows import BadSource

LONGEST = 16 * 2**20
"""Largest number of characters in a line; more than the largest entry of any feed has."""


class Lines:
    """Iterates over the lines of a text.

    Parameters
    ----------
    source : text file

    Attributes
    ----------
    number : int
        Number of the last line read, from 1; 0 before the first.
    may_wait : bool
        Whether the next line may come only later: on standard input.
    """

    def __init__(self, source: TextIO) -> None:
        self._source, self.number = source, 0
        self.may_wait = source is sys.stdin

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
