"""The answers of a feed as a CSV table: a row an answer, a column a number."""

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from workers.cli.common import note, replacing, writing
from workers.plural import counted

if TYPE_CHECKING:
    from workers.broker.batch_size import Entry
    from workers.broker.store import Store

STANDARD_OUTPUT = Path("-")


def export_table(store: "Store", target: Path, features: bool, overwrite: bool, raw: bool) -> None:
    """Write the kept answers of a feed, and say how many there were."""
    from workers.history.spreadsheet import cell, raw_cell
    from workers.reading.answers import newest

    last = newest(store, store.keys.out, 1)
    table = _Table(store, last[0][0] if last else b"0-0", features)
    # The columns depend on all rows, because new classes appear in the stream. So there are two
    # passes; answers after `last` are in neither.
    columns = list(dict.fromkeys(("entry", *(name for row in table.outline() for name in row))))
    with writing(target), _opened(target, overwrite) as file:
        count = _write(file, columns, table.rows(), raw_cell if raw else cell)
    if table.trimmed:
        note(
            f"the input of {counted(table.trimmed, 'answer')} is no longer kept: true_label and "
            "is_right are blank there; online-svm worker --keep-input keeps it"
        )
    note(f"{counted(count, 'answer')} exported")


class _Table:
    """The answers of a feed up to an entry, as rows; each call of `rows` reads them again."""

    def __init__(self, store: "Store", last: bytes, features: bool) -> None:
        from workers.reading.true_labels import TrueLabels

        self._store, self._last, self._features = store, last, features
        self._truths = TrueLabels(store, features, with_late=True)
        self.trimmed = 0

    def outline(self) -> Iterator[dict[str, Any]]:
        """Yield rows with the columns of `rows`; read the input only if features are wanted."""
        from workers.reading.true_labels import Truth

        if self._features:
            yield from self.rows()
            return
        for page, messages in self._pages():
            for entry, message in zip(page, messages, strict=True):
                yield _row(entry, message, Truth().fields(False))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; `trimmed` counts those whose input is no longer kept."""
        self.trimmed = 0
        for page, messages in self._pages():
            truths = self._truths.of(page, messages)
            for entry, message, truth in zip(page, messages, truths, strict=True):
                self.trimmed += not truth.is_kept
                yield _row(entry, message, truth.fields(self._features))

    def _pages(self) -> "Iterator[tuple[list[Entry], list[dict[str, Any]]]]":
        from workers.reading.answers import answer

        for page in self._store.pages(self._store.keys.out, b"0-0", self._last):
            yield page, [answer(entry) for entry in page]


def _row(entry: "Entry", message: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    """Return a row.

    Raises
    ------
    StateLost
        If the payload is not an answer.
    """
    from workers.reading.answers import no_answer

    try:
        return {"entry": entry[0].decode()} | flat(message | truth)
    except (TypeError, ValueError, AttributeError):
        raise no_answer(entry) from None


_PAIRS = {"intervals": "", "venn": "venn "}
"""What stands before "lower" and "upper" in the columns of lists of pairs."""


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as a flat row: lists become one column for each class.

    Examples
    --------
    >>> flat({"seq": 0, "classes": ["a", "b"], "probabilities": [0.25, 0.75], "maps": {}})
    {'seq': 0, 'probability a': 0.25, 'probability b': 0.75}
    >>> flat({"classes": ["a"], "venn": [[0.25, 0.75]]})
    {'venn lower a': 0.25, 'venn upper a': 0.75}
    >>> flat({"classes": ["a"], "map_intervals": {"venn-abers": [[0.25, 0.75]]}})
    {'venn-abers lower a': 0.25, 'venn-abers upper a': 0.75}
    """
    classes = ["(unseen)" if name is None else name for name in message.pop("classes", [])]
    row: dict[str, Any] = {}
    for name, value in message.items():
        if name == "probabilities":
            row |= _spread("probability", classes, value)
        elif name in _PAIRS:
            row |= _spread_pairs(_PAIRS[name], classes, value)
        elif name == "maps":
            for method, values in value.items():
                row |= _spread(method, classes, values)
        elif name == "map_intervals":
            for method, values in value.items():
                row |= _spread_pairs(f"{method} ", classes, values)
        elif name == "scores":
            row |= _spread("score", classes[-1:] if len(value) == 1 else classes, value)
        elif name == "features":
            row |= _of_features(value)
        else:
            row[name] = value
    return row


def _spread(prefix: str, classes: list[str], values: list[float]) -> dict[str, float]:
    return {f"{prefix} {name}": value for name, value in zip(classes, values, strict=False)}


def _spread_pairs(prefix: str, classes: list[str], values: list[list[float]]) -> dict[str, float]:
    return {
        **_spread(f"{prefix}lower", classes, [lower for lower, _ in values]),
        **_spread(f"{prefix}upper", classes, [upper for _, upper in values]),
    }


def _of_features(sent: list[Any] | dict[str, Any] | None) -> dict[str, Any]:
    """Return a column for each feature, by its name or its index from 0."""
    pairs = sent.items() if isinstance(sent, dict) else enumerate(sent or ())
    return {f"feature {name}": value for name, value in pairs}


def _write(
    target: TextIO,
    columns: list[str],
    rows: Iterator[dict[str, Any]],
    cell: Callable[[Any], Any],
) -> int:
    """Write the table; return the number of rows.

    Raises
    ------
    BadConfiguration
        If the feed was reset between the two passes, so that columns differ.
    """
    from workers.errors import BadConfiguration

    known = frozenset(columns)
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(map(cell, columns))
    count = 0
    for row in rows:
        if not known.issuperset(row):
            raise BadConfiguration(
                f"the feed was begun anew while it was exported (entry {row['entry']} has columns "
                "it had not): export it again"
            )
        writer.writerow([cell(row.get(name)) for name in columns])
        count += 1
    return count


@contextmanager
def _opened(path: Path, overwrite: bool) -> Iterator[TextIO]:
    if path == STANDARD_OUTPUT:
        yield sys.stdout
        return
    with replacing(path, overwrite) as target:
        yield target
