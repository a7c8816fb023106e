"""`export`: the answers as a table."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from workers.commands.common import Config, Feed, Redis, feed_store, note, writing
from workers.counts import counted

if TYPE_CHECKING:
    from workers.store import Store

STANDARD_OUTPUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    feed: Feed,
    target: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to; - is standard output.")
    ] = STANDARD_OUTPUT,
    csv: Annotated[  # noqa: ARG001  (it says which form is wanted, and there is one)
        bool, typer.Option("--csv", help="As CSV, which is the only form.")
    ] = True,
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Write the kept answers of a feed as CSV: a row an answer, a column a number."""
    from workers.feeds import require

    with feed_store(feed, redis, config) as store:
        require(store)
        # Which columns there are depends on all rows: classes are met as the stream goes.
        columns = list(dict.fromkeys(("entry", *(name for row in _rows(store) for name in row))))
        with writing(target), _opened(target) as file:
            count = _write(file, columns, _rows(store))
    note(f"{counted(count, 'answer')} exported")


def _rows(store: "Store") -> Iterator[dict[str, Any]]:
    import orjson

    from workers.feeds import payload

    for page in store.pages(store.keys.out, b"0-0"):
        for entry in page:
            yield {"entry": entry[0].decode()} | flat(orjson.loads(payload(entry)))


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its lists spread over one column a class.

    Examples
    --------
    >>> flat({"seq": 0, "classes": ["a", "b"], "probabilities": [0.25, 0.75], "maps": {}})
    {'seq': 0, 'probability a': 0.25, 'probability b': 0.75}
    >>> flat({"classes": ["a"], "map_intervals": {"venn-abers": [[0.25, 0.75]]}})
    {'venn-abers lower a': 0.25, 'venn-abers upper a': 0.75}
    """
    classes = ["(unseen)" if name is None else name for name in message.pop("classes", [])]
    row: dict[str, Any] = {}
    for name, value in message.items():
        if name == "probabilities":
            row |= _spread("probability", classes, value)
        elif name == "intervals":
            row |= _spread("lower", classes, [lower for lower, _ in value])
            row |= _spread("upper", classes, [upper for _, upper in value])
        elif name == "maps":
            for method, values in value.items():
                row |= _spread(method, classes, values)
        elif name == "map_intervals":
            for method, values in value.items():
                row |= _spread(f"{method} lower", classes, [lower for lower, _ in values])
                row |= _spread(f"{method} upper", classes, [upper for _, upper in values])
        elif name == "scores":
            row |= _spread("score", classes[-1:] if len(value) == 1 else classes, value)
        else:
            row[name] = value
    return row


def _spread(prefix: str, classes: list[str], values: list[float]) -> dict[str, float]:
    return {f"{prefix} {name}": value for name, value in zip(classes, values, strict=False)}


def _write(target: TextIO, columns: list[str], rows: Iterator[dict[str, Any]]) -> int:
    writer = csv.DictWriter(target, columns, lineterminator="\n")
    writer.writeheader()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007  (the number of rows is the result)
        writer.writerow(row)
    return count


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    if path == STANDARD_OUTPUT:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="") as target:
        yield target
