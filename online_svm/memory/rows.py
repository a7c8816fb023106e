"""The rows of the memory: raw cells in chunks that are stored apart from snapshots.

A row has a number: how many rows were learned before it. Chunk i holds the rows with numbers from
i * `CHUNK_ROWS` on. It grows until the next chunk begins, and changes no more, unless a person's
rows are erased.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Self

import numpy as np

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import pack, require, unpack
from online_svm.storage.state_schema import StateSchema, floats, ints, texts
from online_svm.stream.cells import widened
from online_svm.types import Bools, Floats, Ints

CHUNK_ROWS = 1_000

NO_KEY = 0
"""Key of a row whose example had no id."""

CHUNK_SCHEMA = StateSchema(
    texts("labels"), floats("X", "n d", optional=True), ints("codes", "n"), ints("numbers", "n"),
    ints("keys", "n"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryChunk:
    """A chunk as bytes, for a store."""

    index: int
    data: bytes


class LabelledRows(NamedTuple):
    """Rows of the memory, in order."""

    X: Floats  # shape (n, width); raw cells
    codes: Ints  # shape (n,); codes of the labels
    numbers: Ints  # shape (n,); ascending
    keys: Ints  # shape (n,); see `key_of`

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate rows; narrower ones end in gaps."""
        if not parts:
            none = np.empty(0, dtype=np.int64)
            return cls(np.empty((0, 0)), none, none, none)
        width = max(part.X.shape[1] for part in parts)
        return cls(
            np.concatenate([widened(part.X, width) for part in parts]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.keys for part in parts]),
        )

    def chosen(self, rows: Bools | slice) -> Self:
        """Return some of the rows."""
        return type(self)(self.X[rows], self.codes[rows], self.numbers[rows], self.keys[rows])


def key_of(id: str | None) -> int:
    """Return the key by which the rows of an id can be erased: 62 bits of its digest.

    Examples
    --------
    >>> key_of(None), key_of("person 7") == key_of("person 7") != key_of("person 8")
    (0, True)
    """
    if id is None:
        return NO_KEY
    digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 2


class MemoryRows:
    """Labelled rows by number, the oldest dropped on request.

    `stop`: number of the next row.

    Examples
    --------
    >>> rows = MemoryRows()
    >>> rows.append(np.zeros((1_500, 2)), np.ones(1_500, dtype=np.int64), ["id"] * 1_500)
    >>> [chunk.index for chunk in rows.chunks(["no", "yes"], since=1_000)], rows.width
    ([1], 2)
    """

    def __init__(self) -> None:
        self._settled: dict[int, LabelledRows] = {}
        self._new: list[LabelledRows] = []  # rows that no chunk has yet
        self.stop = 0

    @staticmethod
    def chunk_of(number: int) -> int:
        """Return the index of the chunk of a row."""
        return number // CHUNK_ROWS

    @property
    def _chunks(self) -> dict[int, LabelledRows]:
        """The chunks by index, with all rows."""
        if self._new:
            new, self._new = LabelledRows.joined(self._new), []
            indices = new.numbers // CHUNK_ROWS
            for index in np.unique(indices).tolist():
                rows = new.chosen(indices == index)
                # A batch has columns for features that its later rows introduce.
                rows = rows._replace(X=_without_last_gaps(rows.X))
                held = self._settled.get(index)
                parts = [rows] if held is None else [held, rows]
                self._settled[index] = LabelledRows.joined(parts)
        return self._settled

    def __len__(self) -> int:
        return sum(len(chunk.codes) for chunk in self._chunks.values())

    @property
    def width(self) -> int:
        """Number of features up to the last one with a value in a held row."""
        return max((chunk.X.shape[1] for chunk in self._chunks.values()), default=0)

    @property
    def n_bytes(self) -> int:
        """Bytes of the cells."""
        return sum(chunk.X.nbytes for chunk in self._chunks.values())

    def append(self, X: Floats, codes: Ints, ids: Sequence[str | None]) -> None:
        """Add rows, shape (m, n_features), with the codes of their labels and their ids."""
        keys = np.array([key_of(id) for id in ids] or [NO_KEY] * len(X), dtype=np.int64)
        numbers = np.arange(self.stop, self.stop + len(X))
        self.extend(LabelledRows(X.copy(), codes.copy(), numbers, keys))
        self.stop += len(X)

    def extend(self, rows: LabelledRows) -> None:
        """Add rows with their numbers, which follow those of the held ones."""
        self._new.append(rows)

    def between(self, first: int, stop: int) -> LabelledRows:
        """Return the rows numbered `first` ... `stop` - 1."""
        wanted = range(first // CHUNK_ROWS, -(-stop // CHUNK_ROWS))
        rows = LabelledRows.joined([self._chunks[i] for i in wanted if i in self._chunks])
        if not len(rows.numbers) or (rows.numbers[0] >= first and rows.numbers[-1] < stop):
            return rows
        begin, end = np.searchsorted(rows.numbers, (first, stop)).tolist()
        return rows.chosen(slice(begin, end))

    def newest(self, count: int, stop: int) -> int:
        """Return the number of the oldest of the newest `count` rows below `stop`."""
        for index in sorted(self._chunks, reverse=True):
            numbers = self._chunks[index].numbers
            below = numbers[: np.searchsorted(numbers, stop)]
            if len(below) >= count:
                return int(below[len(below) - count])
            count -= len(below)
        return 0

    def drop_before(self, number: int) -> None:
        """Drop the rows below `number`."""
        for index in [i for i in self._chunks if i * CHUNK_ROWS < number]:
            kept = self._settled.pop(index)
            kept = kept.chosen(kept.numbers >= number)
            if len(kept.numbers):
                self._settled[index] = kept

    def erase(self, ids: Collection[str]) -> int:
        """Delete the rows of these ids; return their number."""
        keys, before = np.array([key_of(id) for id in ids], dtype=np.int64), len(self)
        for index, chunk in self._chunks.items():
            self._settled[index] = chunk.chosen(~np.isin(chunk.keys, keys) | (chunk.keys == NO_KEY))
        return before - len(self)

    def chunks(self, labels: Sequence[str], since: int = 0) -> list[MemoryChunk]:
        """Return the chunks with rows numbered `since` or higher, as bytes.

        `labels`: labels in the order of their codes; a chunk names those that it has.
        """
        found = list[MemoryChunk]()
        for index, rows in sorted(self._chunks.items()):
            if (index + 1) * CHUNK_ROWS > since:
                used, codes = np.unique(rows.codes, return_inverse=True)
                arrays = rows._replace(codes=codes.astype(np.int64))._asdict()
                header = {"labels": [labels[code] for code in used.tolist()]}
                found.append(MemoryChunk(index, pack(header, arrays)))
        return found


class StoredRows(NamedTuple):
    """The rows of a stored chunk."""

    labels: list[str]  # the codes of the rows are indices of this list
    rows: LabelledRows

    @classmethod
    def of(cls, data: bytes | memoryview) -> Self:
        """Return the rows of a chunk; raises InvalidSnapshot if it is damaged."""
        header, arrays = unpack(data)
        found = CHUNK_SCHEMA.values("a chunk of the memory", header, arrays)
        labels, rows = found.pop("labels"), LabelledRows(**found)
        try:
            require(not len(rows.codes) or rows.codes.max() < len(labels), "codes")
            require(bool((np.diff(rows.numbers) > 0).all()), "numbers")
            require(len(np.unique(rows.numbers // CHUNK_ROWS)) <= 1, "numbers")
        except ValueError as error:
            raise InvalidSnapshot(f"a chunk of the memory: {error}") from None
        return cls(labels, rows)

    def with_codes(self, labels: Sequence[str]) -> LabelledRows:
        """Return the rows with the codes of `labels`; rows of other labels are left out."""
        codes = {label: code for code, label in enumerate(labels)}
        of_labels = np.array([codes.get(label, -1) for label in self.labels], dtype=np.int64)
        rows = self.rows._replace(codes=of_labels[self.rows.codes])
        return rows.chosen(rows.codes >= 0)


def rows_of(chunks: Iterable[bytes], ids: Collection[str]) -> int:
    """Return how many rows of chunks have one of these ids; InvalidSnapshot: one is damaged."""
    keys = [key_of(id) for id in ids]
    return sum(int(np.isin(StoredRows.of(chunk).rows.keys, keys).sum()) for chunk in chunks)


def stored_rows(chunks: Iterable[bytes | memoryview]) -> list[StoredRows]:
    """Return the rows of chunks in the order of their numbers."""
    found = [one for one in map(StoredRows.of, chunks) if len(one.rows.numbers)]
    return sorted(found, key=lambda one: int(one.rows.numbers[0]))


def _without_last_gaps(X: Floats) -> Floats:
    """Return the rows up to the last column with a value."""
    held = np.flatnonzero(~np.isnan(X).all(axis=0))
    return X[:, : held[-1] + 1 if len(held) else 0]
