"""The options for reading a source of examples, and the error if it cannot be read."""

from dataclasses import dataclass
from typing import Literal

from workers.errors import BadConfiguration
from workers.push.cell_text import Decimal, Order, TimeUnit
from workers.push.convention import Convention

Format = Literal["csv", "jsonl", "libsvm", "arff", "xlsx", "parquet"]

MISSING = ("", "?")
"""Texts that stand for a missing value in any table."""


class BadSource(BadConfiguration):
    """The source of examples does not exist, or cannot be read."""

    line: int | None = None  # line of the source; None: the last one that was read


class BadHeader(BadSource):
    """The columns of a table do not fit the options, or one another."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Reading:
    """The options for reading a source."""

    # Below, an entry is a JSON line in the form of an input entry.
    format: Format | None = None  # default by the file's extension; JSON lines for standard input
    label: str | None = None  # column of the label; default the last one, `y` in JSON lines
    labelled: bool = True  # False: every column is a feature
    sheet: str | None = None  # of a workbook; default the first visible one with a table
    header: bool = True  # whether the first line of a CSV file names its columns
    # Width of a LIBSVM source; default its largest index, for which the whole source is read first
    features: int | None = None
    drop: tuple[str, ...] = ()  # columns to leave out
    id: str | None = None  # column of the producer's id; `id` in an entry
    slices: tuple[str, ...] = ()  # columns of text to send as slices; `s` in an entry
    texts: tuple[str, ...] = ()  # columns of a table whose cells are sent as they are
    na: tuple[str, ...] = ()  # texts besides `MISSING` that stand for a missing value
    time: str | None = None  # column of the time of an example; `time` in an entry
    score: str | None = None  # column of another model's score; `score` in an entry
    flatten: bool = False  # whether objects of JSON lines become features named with dots
    labels_only: bool = False  # whether rows are labels of earlier examples, with their ids
    # How the cells of a table are written, where its values do not prove it
    decimal: Decimal | None = None
    order: Order | None = None  # of day, month and year
    encoding: str | None = None  # of a CSV file
    time_unit: TimeUnit | None = None  # of numbers in the column of the time
    zone: str | None = None  # of times without a zone, as Europe/Berlin
    label_case: Literal["lower", "keep"] | None = None
    known: Convention | None = None  # what earlier tables of the feed proved
    examined: int = 1000  # rows that are read before the first one is converted

    @property
    def missing(self) -> frozenset[str]:
        """Texts that stand for a missing value."""
        return frozenset((*MISSING, *self.na))
