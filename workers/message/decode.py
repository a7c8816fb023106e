"""Decode stream entries into columns: the first part of the hot path.

`entry_decode.py` alone defines what is accepted, and every reason code. Decoding by column gives
the same result, so an answer never depends on which entries share a batch.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.stream.cells import stacked, widened
from online_svm.stream.input_batch import DelayedLabel, InputBatch, SliceValue
from online_svm.stream.schema import FeatureSchema
from online_svm.types import Floats
from workers.config.settings import Limits
from workers.feed.position import parse_id
from workers.feed.state_fields import MAX_COUNT
from workers.message import column_decode, entry_decode
from workers.message.entry_decode import (
    Accepted,
    EntryFields,
    check_names,
    check_size,
    pairs,
    read_id,
    read_label,
    without_traces,
)

Entry = tuple[bytes, EntryFields]

_FIELDS = frozenset((b"for", b"y", b"id"))
_NO_LABELS = frozenset((b"x", b"xb", b"p", b"score"))


def is_label_entry(fields: EntryFields, schema: FeatureSchema) -> bool:
    """Return whether an entry is a delayed label: with `for`, or with `id`, `y` and no features.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> schema = FeatureSchema(PredictorConfig(horizon=10))
    >>> is_label_entry([b"id", b"a", b"y", b"spam"], schema)
    True
    >>> is_label_entry([b"id", b"a", b"y", b"spam"], FeatureSchema(PredictorConfig()))
    False
    """
    if not schema.takes_delayed_labels:
        return False
    names = fields if isinstance(fields, Mapping) else fields[::2]
    if b"for" in names:
        return True
    has_both = b"y" in names and b"id" in names
    return has_both and not any(name in names for name in _NO_LABELS)


def decode_label_entry(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> DelayedLabel:
    """Decode a label entry. Raises InvalidExample."""
    check_size(fields, limits)
    check_names(fields, schema)
    given = dict(pairs(fields))
    other = sorted(given.keys() - _FIELDS)
    if other:
        raise InvalidExample("label_with_features", field=other[0].decode())
    if b"y" not in given:
        raise InvalidExample("label_without_y")
    if b"id" in given:
        read_id(given[b"id"])
    example = read_id(given.get(b"for", given.get(b"id", b"")), "for")
    label = read_label(given[b"y"], schema)
    assert label is not None
    return DelayedLabel(example, label)


_MAX_ONE_BY_ONE = 16  # entries; for so few, decoding by column has no advantage


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """A decoded batch."""

    X: Floats  # shape (n_accepted, n_features)
    labels: list[str | None]  # of each row of `X`, like the next two and `times`
    probabilities: list[float | None]
    slices: list[SliceValue | None]
    ids: list[str | None]  # the producer's, of each entry; None if missing or unreadable
    times: list[int | None]  # the producer's, in milliseconds
    accepted: list[int]  # index in the batch of each row of `X`
    rejected: dict[int, InvalidExample]  # by index in the batch
    schema: FeatureSchema  # used to check the rows; knows the features if there are rows
    late: dict[int, DelayedLabel] = field(default_factory=dict)  # label entries, by index
    traces: dict[int, str] = field(default_factory=dict)  # trace contexts, by index

    def batch(self, entries: Sequence[Entry], first: int) -> InputBatch:
        """Return the predictor's input; `first` entries of the stream precede the batch.

        With delayed labels, an example without a time gets the time of its entry ID.
        """
        of_all = len(self.accepted) == len(self.ids)
        times = None
        if self.schema.takes_delayed_labels:
            pairs = zip(self.accepted, self.times, strict=True)
            times = [_sent(entries[i][0]) if at is None else at for i, at in pairs]
        return InputBatch(
            self.X, self.labels, self.accepted, self.late, first, self._probability_column(),
            self.schema, self.ids if of_all else [self.ids[i] for i in self.accepted], times,
            None if self.slices.count(None) == len(self.slices) else self.slices,
        )  # fmt: skip

    def _probability_column(self) -> Floats | None:
        """Return the probabilities as an array, NaN if missing; None if all are missing."""
        if self.probabilities.count(None) == len(self.probabilities):
            return None
        return np.array(self.probabilities, dtype=np.float64)


def decode(entries: Sequence[Entry], schema: FeatureSchema, limits: Limits) -> Decoded:
    """Decode stream entries into rows and targets; reject invalid entries.

    An entry is its ID and fields: a mapping, or the flat list ``[name, value, ...]`` of the
    protocol, which can have a field twice. If the schema knows no features, the first accepted
    entry defines them for the others.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> batch = [(b"1-0", {b"x": b"[1,2]", b"y": b"a"}), (b"2-0", {b"x": b"[1]"})]
    >>> decoded = decode(batch, FeatureSchema(PredictorConfig()), Limits())
    >>> decoded.X, decoded.labels, decoded.rejected[1].code
    (array([[1., 2.]]), ['a'], 'dimension')
    """
    columns = column_decode.decode_columns([fields for _, fields in entries], schema, limits)
    if columns is None:
        found = without_traces(entries, limits.max_entry_bytes)
        if found is not None:
            plain, traces = found
            return replace(decode(plain, schema, limits), traces=traces)
        return _PartwiseDecoder(entries, schema, limits).decode()
    accepted = list(range(len(entries)))
    return Decoded(*columns, accepted=accepted, rejected={}, schema=schema)


class _PartwiseDecoder:
    """Decodes a batch in which not all entries are ordinary.

    Entries with the same layout that look ordinary are decoded by column. If that fails, the group
    is halved: a bad entry costs a few more attempts, but does not slow down the others.
    """

    def __init__(self, entries: Sequence[Entry], schema: FeatureSchema, limits: Limits) -> None:
        self._fields = [fields for _, fields in entries]
        self._schema, self._limits = schema, limits
        self._rows: dict[int, Accepted] = {}
        self._ids: list[str | None] = [None] * len(entries)
        self._rejected: dict[int, InvalidExample] = {}
        self._late: dict[int, DelayedLabel] = {}

    def decode(self) -> Decoded:
        """Return the decoded batch."""
        first = 0
        # The first accepted entry defines the features of the feed: decode one by one until then.
        while first < len(self._fields) and self._schema.dimension is None:
            self._decode_one(first)
            first += 1
        layouts: dict[Hashable, tuple[FeatureSchema, list[int]]] = {}
        for position in range(first, len(self._fields)):
            fields = self._fields[position]
            if column_decode.looks_ordinary(fields, self._schema, self._limits):
                known = self._schema  # before names that later entries add
                layout = (_layout(fields), known.dimension)
                layouts.setdefault(layout, (known, []))[1].append(position)
            else:
                self._decode_one(position)
        last = self._schema
        for self._schema, positions in layouts.values():
            self._decode_columns(positions)
        self._schema = last
        accepted = sorted(self._rows)
        rows = [self._rows[i] for i in accepted]
        X = stacked([one.row for one in rows])
        if not rows:
            X = np.empty((0, self._schema.dimension or 0))
        elif self._schema.is_mixed:
            X = widened(X, self._schema.dimension or 0)
        return Decoded(
            X, [one.label for one in rows], [one.probability for one in rows],
            [one.slices for one in rows], self._ids, [one.time for one in rows], accepted,
            dict(sorted(self._rejected.items())), self._schema, self._late,
        )  # fmt: skip

    def _decode_columns(self, positions: list[int]) -> None:
        if len(positions) <= _MAX_ONE_BY_ONE:
            for position in positions:
                self._decode_one(position)
            return
        columns = column_decode.decode_columns(
            [self._fields[i] for i in positions], self._schema, self._limits
        )
        if columns is None:
            middle = len(positions) // 2
            self._decode_columns(positions[:middle])
            self._decode_columns(positions[middle:])
            return
        for position, row, label, p, slices, sent, at in zip(positions, *columns, strict=True):
            self._rows[position] = Accepted(row, label, p, slices, at, self._schema)
            self._ids[position] = sent

    def _decode_one(self, position: int) -> None:
        fields = self._fields[position]
        self._ids[position] = entry_decode.readable_id(fields)
        try:
            if is_label_entry(fields, self._schema):
                self._late[position] = decode_label_entry(fields, self._schema, self._limits)
                return
            read = entry_decode.decode_entry(fields, self._schema, self._limits)
        except InvalidExample as error:
            self._rejected[position] = error.alone()
        else:
            self._rows[position], self._schema = read, read.schema


def _sent(entry_id: bytes) -> int:
    """Return the milliseconds of an entry ID; 0 for a row of a file, which has no ID."""
    return min(parse_id(entry_id)[0], MAX_COUNT) if entry_id else 0


def _layout(fields: EntryFields) -> Hashable:
    return tuple(fields) if isinstance(fields, Mapping) else tuple(fields[::2])
