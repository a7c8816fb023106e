"""The options by which a source is read: `push`, `verify` and `backtest` share them."""

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workers.cli.common import note

if TYPE_CHECKING:
    from workers.push.rows import Layout, Reading, Row

_SOURCE = typer.Argument(
    help="A file (CSV, JSON lines, LIBSVM, ARFF; .gz too), - for standard input (JSON lines, "
    "else --format), a data set that comes with river (Phishing, ImageSegments, Bananas), or "
    "a benchmark set by name.",
    show_default=False,
)
Source = Annotated[str, _SOURCE]
OptionalSource = Annotated[str | None, _SOURCE]
LabelFile = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="In the place of a source: labels of examples that were pushed before, by the id in "
        "--id COLUMN; for a feed with a --horizon. Other columns than the id and the label are "
        "left out.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["csv", "jsonl", "libsvm", "arff"] | None,
    typer.Option(
        "--format",
        help="Default: by the file's extension; jsonl for standard input.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Column of the label; default the last one, y in JSON lines.",
        show_default=False,
    ),
]
Prob = Annotated[
    str | None,
    typer.Option(
        "--prob",
        metavar="COLUMN",
        help="Column of an annotator's probability of the second class, where there is no label; "
        "p in JSON lines. For learner psvm.",
        show_default=False,
    ),
]
NoLabel = Annotated[bool, typer.Option("--no-label", help="Every column is a feature.")]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="A CSV file begins with data: send arrays.")
]
Width = Annotated[
    int | None,
    typer.Option(
        "--features",
        min=1,
        max=100_000,
        help="Features of a LIBSVM source.",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLUMN",
        help="Column to leave out; may be repeated.",
        show_default=False,
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of the producer's id, which the answer repeats; id in JSON lines with x.",
        show_default=False,
    ),
]
Slices = Annotated[
    list[str] | None,
    typer.Option(
        "--slice",
        metavar="COLUMN",
        help="Column of text that is sent as a slice and is no feature, for a feed with --slices "
        "COLUMN; may be repeated. s in JSON lines with x.",
        show_default=False,
    ),
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        metavar="TEXT",
        help="Text that stands for a missing value, beside an empty cell and ?; may be repeated. "
        "A missing feature is sent as null: a worker with --missing mean takes it, another "
        "rejects the row. A row without a label is answered, not learned.",
        show_default=False,
    ),
]
Shuffle = Annotated[
    int | None,
    typer.Option(
        "--shuffle",
        metavar="SEED",
        help="Push in the order of numpy.random.default_rng(SEED).permutation(n).",
        show_default=False,
    ),
]
Arrays = Annotated[
    bool, typer.Option("--arrays", help="Send columns as an array in their order, without names.")
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where the benchmark sets are.", show_default=False),
]


def reading_of(
    format: Literal["csv", "jsonl", "libsvm", "arff"] | None,
    label: str | None,
    prob: str | None,
    no_label: bool,
    no_header: bool,
    features: int | None,
    drop: list[str] | None,
    id: str | None,
    na: list[str] | None,
    data_dir: Path | None,
    slices: list[str] | None,
) -> "Reading":
    """Return the options for reading a source."""
    from workers.push.rows import Reading

    return Reading(
        format=format,
        label=label,
        labelled=not no_label,
        header=not no_header,
        features=features,
        data_dir=data_dir,
        prob=prob,
        drop=tuple(drop or ()),
        id=id,
        slices=tuple(slices or ()),
        na=tuple(na or ()),
    )


def selected(
    rows: "Iterable[Row]", shuffle: int | None, skip: int, limit: int | None
) -> "tuple[Iterable[Row], int | None]":
    """Return the rows to push, and their number if it is known."""
    from workers.push.ingest import shuffled

    end = None if limit is None else skip + limit
    if shuffle is None:
        return islice(rows, skip, end), limit
    chosen = shuffled(rows, shuffle)[skip:end]
    return chosen, len(chosen)


def with_summary(
    rows: "Iterable[Row]", layout: "Layout", arrays: bool, chunk: int
) -> "Iterable[Row]":
    """Print how the first rows are read; return all rows.

    No more rows are read than one chunk: rows of a live source must not wait for later ones.
    """
    from workers.push.source_summary import HEAD, head_of, summary

    remaining = iter(rows)
    head = head_of(remaining, min(HEAD, chunk))
    for line in summary(head, layout, arrays):
        note(line)
    return chain(head, remaining)
