"""`push`: append examples to the input of a feed."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workers.cli.common import Config, Feed, Redis, embedded_url, given_url, note
from workers.plural import counted

if TYPE_CHECKING:
    from workers.push.rows import Layout, Reading, Row

Source = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, JSON lines, LIBSVM, ARFF; .gz too), - for standard input (JSON lines, "
        "else --format), a data set that comes with river (Phishing, ImageSegments, Bananas), or "
        "a benchmark set by name.",
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("push")(push)


def push(
    feed: Feed,
    source: Source,
    redis: Redis = None,
    config: Config = None,
    format: Format = None,
    label: Label = None,
    prob: Prob = None,
    no_label: NoLabel = False,
    no_header: NoHeader = False,
    features: Width = None,
    drop: Drop = None,
    id: IdColumn = None,
    na: Na = None,
    arrays: Arrays = False,
    shuffle: Shuffle = None,
    skip: Annotated[int, typer.Option(min=0, help="Rows to leave out at the start.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=0, help="Rows to push, at most.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=1e-3, help="Rows a second, at most.", show_default=False),
    ] = None,
    high_water: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Wait while N entries or more are beyond the worker's cursor, until half of them "
            "are answered; 0 never waits.",
        ),
    ] = 1_000_000,
    data_dir: DataDir = None,
) -> None:
    """Append examples to the input of a feed; a worker answers them.

    Before the first is sent, push prints how it reads the columns of the source. After Ctrl-C it
    prints how many rows Redis accepted, and the --skip to continue with.
    """
    from workers.cli.progress import push_progress
    from workers.config.redis_url import check_url
    from workers.feed.keys import FeedKeys
    from workers.push import ingest, sources
    from workers.push.rows import Layout

    FeedKeys(feed)  # check the name and the settings before reading a large file
    given = given_url(redis, config)
    if given:
        check_url(given)
    layout = Layout()
    reading = reading_of(format, label, prob, no_label, no_header, features, drop, id, na, data_dir)
    rows, total = selected(sources.rows(source, reading, layout), shuffle, skip, limit)
    chunk = ingest.CHUNK if rate is None else ingest.Pace(rate).chunk
    chunk = min(chunk, high_water or chunk)
    rows = with_summary(rows, layout, arrays, chunk)
    url = given or embedded_url()
    pace = None if rate is None else ingest.Pace(rate)
    began = time.monotonic()
    try:
        with push_progress(total) as progress, _back_pressure(url, feed, high_water, skip) as wait:
            throttle = _all(progress, wait, pace)
            sent = ingest.push(
                rows, url, feed, arrays=arrays, throttle=throttle, chunk=chunk, skipped=skip
            )
    except ingest.PushInterrupted as interrupted:
        note(_resume_hint(interrupted.sent, interrupted.unsure, skip, limit))
        raise
    seconds = time.monotonic() - began
    note(f"{counted(sent, 'row')} pushed to feed {feed!r} in {seconds:.1f} s")


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
        na=tuple(na or ()),
    )


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


def _resume_hint(sent: int, unsure: int, skip: int, limit: int | None) -> str:
    """Return how many rows an interrupted push has sent, and how to continue.

    Examples
    --------
    >>> _resume_hint(500, 0, 20, None)
    'interrupted: 500 rows were pushed; go on with --skip 520'
    >>> _resume_hint(1, 500, 0, 600)
    'interrupted: 1 row was pushed, and up to 500 more may have been: compare with online-svm \
status; go on with --skip 1 --limit 599'
    """
    from workers.push.ingest import rows_pushed

    maybe = ""
    if unsure:
        maybe = f", and up to {unsure} more may have been: compare with online-svm status"
    rest = "" if limit is None else f" --limit {limit - sent}"
    return f"interrupted: {rows_pushed(sent)}{maybe}; go on with --skip {skip + sent}{rest}"


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


@contextmanager
def _back_pressure(
    url: str, feed: str, mark: int, skipped: int
) -> Iterator[Callable[[int], None] | None]:
    """Wait for room for the first chunk; yield a function that waits after each chunk."""
    if mark == 0:
        yield None
        return
    from workers.cli.progress import waiting_progress
    from workers.push.back_pressure import HighWater

    with HighWater(url, feed, mark, waiting_progress(mark), skipped=skipped) as wait:
        wait(0)
        yield wait


def _all(*waits: Callable[[int], None] | None) -> Callable[[int], None]:
    def after_chunk(sent: int) -> None:
        for wait in waits:
            if wait is not None:
                wait(sent)

    return after_chunk
