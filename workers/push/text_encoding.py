"""The text of a file: unpacked if it is gzip; Unicode with or without a mark, else Windows-1252."""

import codecs
import gzip
import io
import re
from typing import IO, TextIO

from typing_extensions import Buffer, override

from workers.push.reading import BadSource

_MAX_EXAMINED = 1 << 29  # bytes that are unpacked before the first line is read
_BLOCK_BYTES = 1 << 20


class Unpacked(io.RawIOBase):
    """The bytes that a gzip file unpacks to, unless they are many more than a table has.

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


FALLBACK = "windows-1252"
"""Encoding of text that is not UTF-8, unless one is given: that of Excel in western Europe."""

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DOUBTFUL = re.compile(
    "[A-Za-zÀ-ÿ][¹³¿¯¼¾¡¢¤¦¶¸§„”‚™†‡‰‹›£¥][A-Za-zÀ-ÿ]|[£¥¯][a-zà-ÿ]|[a-z][ŠŽŸ]|[À-ÿ]{4}"
)
"""What other encodings give if they are read as Windows-1252: signs within words, or no ASCII."""

_PEEKED = 512  # bytes in which every other one is NUL if the text is UTF-16


class Decoder:
    """Decodes lines that were split as Latin-1; `encoding` is what they turned out to be.

    Text is UTF-8 until a line is not; if all lines before are ASCII, it has the other encoding.
    """

    def __init__(self, known: str | None) -> None:
        self.encoding: str | None = None  # None: ASCII so far
        self._known = known  # of earlier tables; not of text that is UTF-8

    def __call__(self, line: str) -> str:
        """Return the text of a line.

        Raises UnicodeDecodeError; or BadSource if the text is hardly what was written.
        """
        if line.isascii():
            return line
        raw = line.encode("latin-1")
        if self.encoding in (None, "utf-8"):
            try:
                text = raw.decode("utf-8")
                self.encoding = "utf-8"
                return text
            except UnicodeDecodeError:
                if self.encoding == "utf-8":
                    raise
                self.encoding = self._known or FALLBACK
        text = raw.decode(self.encoding)
        if self._known is None and (found := _DOUBTFUL.search(text)):
            word = text[max(0, found.start() - 10) : found.end() + 10].strip()
            raise BadSource(
                f"this is not UTF-8, and as Windows-1252 it reads {word!r}: name its encoding, as "
                "--encoding cp1250, or --encoding cp1252 if that is right"
            )
        return text


def opened(
    binary: IO[bytes], given: str | None, known: str | None
) -> tuple[TextIO, Decoder | None]:
    """Return the text of a file, and the decoder for its lines if they are not decoded yet.

    `given` is the encoding that the user names, `known` that of earlier tables of the feed.
    Raises BadSource if there is no encoding of that name.
    """
    if given is not None:
        try:
            return io.TextIOWrapper(binary, encoding=given, newline=""), None
        except LookupError:
            raise BadSource(f"--encoding {given}: no encoding of text has this name") from None
    start = binary.peek(_PEEKED)[:_PEEKED]  # type: ignore[attr-defined]  # of buffered readers
    if (wide := _wide(start)) is not None:
        return io.TextIOWrapper(binary, encoding=wide, newline=""), None
    return io.TextIOWrapper(binary, encoding="latin-1", newline=""), Decoder(known)


def _wide(start: bytes) -> str | None:
    """Return the encoding if characters have two bytes or four."""
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            return name
    pairs = len(start) // 2
    if pairs >= 2:
        for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if 2 * start[first::2].count(0) > pairs and not start[1 - first :: 2].count(0):
                return name
    return None
