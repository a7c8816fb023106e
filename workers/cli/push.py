"""`push`: append examples to the input of a feed."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from workers.cli.common import Config, Feed, Redis, embedded_url, given_url, note
from workers.cli.reading import (
    Arrays,
    DataDir,
    Drop,
    Format,
    IdColumn,
    Label,
    LabelFile,
    Na,
    NoHeader,
    NoLabel,
    OptionalSource,
    Prob,
    Shuffle,
    Slices,
    Width,
    reading_of,
    selected,
    with_summary,
)
from workers.errors import BadConfiguration
from workers.plural import counted
from workers.push.high_water import HIGH_WATER, HIGH_WATER_BYTES

if TYPE_CHECKING:
    from workers.push.back_pressure import HighWater
    from workers.push.rows import Reading
    from workers.push.sources import Row


Skip = Annotated[int, typer.Option(min=0, help="Rows to leave out at the start.")]
Limit = Annotated[
    int | None,
    typer.Option(
        min=0, help="Rows to push, at most; 0 only checks all of the source.", show_default=False
    ),
]
Rate = Annotated[
    float | None, typer.Option(min=1e-3, help="Rows a second, at most.", show_default=False)
]
HighWaterEntries = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="Wait while N entries or more are beyond the worker's cursor, until half of them "
        "are answered; 0 never waits.",
    ),
]
HighWaterBytes = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", help="The same for N bytes of them: names and values of fields."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("push")(push)


def push(
    feed: Feed,
    source: OptionalSource = None,
    labels: LabelFile = None,
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
    slice: Slices = None,
    na: Na = None,
    arrays: Arrays = False,
    shuffle: Shuffle = None,
    skip: Skip = 0,
    limit: Limit = None,
    rate: Rate = None,
    high_water: HighWaterEntries = HIGH_WATER,
    high_water_bytes: HighWaterBytes = HIGH_WATER_BYTES,
    data_dir: DataDir = None,
) -> None:
    """Append examples to the input of a feed, or with --labels FILE the labels of earlier ones.

    A worker answers each entry. Before the first example is sent, push prints how it reads the
    columns of the source. After Ctrl-C it prints how many rows Redis accepted, and the --skip to
    continue with.
    """
    given = _checked(feed, redis, config)
    reading = reading_of(
        format, label, prob, no_label, no_header, features, drop, id, na, data_dir, slice
    )
    if labels is not None:
        reading = _of_labels(reading)
    name, chosen = _one_of(source, labels), _Chosen(shuffle, skip, limit or None)
    plan = _planned(name, reading, chosen, arrays, rate, high_water)
    if limit == 0:
        _check(plan)
        return
    _push(plan, given or embedded_url(), feed, _Marks(high_water, high_water_bytes), limit)


def _checked(feed: str, redis: str | None, config: Path | None) -> str | None:
    """Check name and URL of a feed, before a large file is read; return the URL that is given."""
    from workers.config.redis_url import check_url
    from workers.feed.keys import FeedKeys

    FeedKeys(feed)
    given = given_url(redis, config)
    if given:
        check_url(given)
    return given


class _Chosen(NamedTuple):
    """Which rows of a source are pushed."""

    shuffle: int | None
    skip: int
    limit: int | None


class _Marks(NamedTuple):
    """How many entries, and bytes of them, may wait for the worker; 0 bounds none."""

    entries: int
    size: int


class _Plan(NamedTuple):
    """What is pushed, and how.

    Attributes
    ----------
    rows : iterable of Row
    total : int or None
        Their number, where it is known.
    skipped : int
    are_labels, arrays : bool
    chunk : int
        Rows sent at once.
    rate : float or None
        Rows a second, at most.
    """

    rows: "Iterable[Row]"
    total: int | None
    skipped: int
    are_labels: bool
    arrays: bool
    chunk: int
    rate: float | None


def _planned(
    name: str,
    reading: "Reading",
    chosen: _Chosen,
    arrays: bool,
    rate: float | None,
    high_water: int,
) -> _Plan:
    """Open the source; before the first row is taken, the summary of its columns is printed."""
    from workers.push import ingest, sources
    from workers.push.rows import Layout

    layout = Layout()
    rows, total = selected(sources.rows(name, reading, layout), *chosen)
    chunk = ingest.CHUNK if rate is None else ingest.PushRate(rate).chunk
    chunk = min(chunk, high_water or chunk)
    if not reading.labels_only:
        rows = with_summary(rows, layout, arrays, chunk)
    return _Plan(rows, total, chosen.skip, reading.labels_only, arrays, chunk, rate)


def _check(plan: _Plan) -> None:
    """Read the rows as they would be pushed, and say how many there are."""
    from workers.push.ingest import entries

    count = sum(1 for _ in entries(plan.rows, plan.arrays, plan.are_labels))
    what = "label" if plan.are_labels else "row"
    note(f"{counted(count, what)} can be pushed; none was, as --limit 0 asks")


def _push(plan: _Plan, url: str, feed: str, marks: _Marks, limit: int | None) -> None:
    """Push the rows, and say how many; after Ctrl-C, how to go on."""
    from workers.push.ingest import PushInterrupted

    began = time.monotonic()
    try:
        sent = _pushed(plan, url, feed, marks)
    except PushInterrupted as interrupted:
        note(_resume_hint(interrupted.sent, interrupted.unsure, plan.skipped, limit))
        raise
    seconds = time.monotonic() - began
    what = "label" if plan.are_labels else "row"
    note(f"{counted(sent, what)} pushed to feed {feed!r} in {seconds:.1f} s")


def _pushed(plan: _Plan, url: str, feed: str, marks: _Marks) -> int:
    """Push the rows, no faster than the worker and the pace allow; return their number."""
    from workers.cli.progress import push_progress
    from workers.push import ingest

    pace = None if plan.rate is None else ingest.PushRate(plan.rate)
    with (
        push_progress(plan.total) as progress,
        _back_pressure(url, feed, marks, plan.skipped) as wait,
    ):
        return ingest.push(
            plan.rows,
            url,
            feed,
            arrays=plan.arrays,
            are_labels=plan.are_labels,
            throttle=_all(progress, wait, pace),
            chunk=plan.chunk,
            skipped=plan.skipped,
            measure=None if wait is None else wait.add_bytes,
        )


def _one_of(source: str | None, labels: str | None) -> str:
    """Return the source, or the file of labels.

    Raises
    ------
    BadConfiguration
        If not exactly one of them is given.
    """
    if (source is None) == (labels is None):
        given = "both a source and" if labels is not None else "neither a source nor"
        raise BadConfiguration(f"push: {given} --labels FILE; give one of them")
    return source if labels is None else labels  # type: ignore[return-value]  # one of them is given


def _of_labels(reading: "Reading") -> "Reading":
    """Return how a file of labels is read.

    Raises
    ------
    BadConfiguration
        If no column of ids is named, or the options are those of examples.
    """
    if reading.id is None:
        raise BadConfiguration("--labels: say which column has the ids: --id COLUMN")
    if reading.prob is not None or not reading.labelled:
        raise BadConfiguration("--labels: a label entry has an id and a label; leave out the rest")
    return replace(reading, labels_only=True)


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


@contextmanager
def _back_pressure(
    url: str, feed: str, marks: _Marks, skipped: int
) -> "Iterator[HighWater | None]":
    """Wait for room for the first chunk; yield what waits after each chunk."""
    if not any(marks):
        yield None
        return
    from workers.cli.progress import waiting_progress
    from workers.push.back_pressure import HighWater

    tell = waiting_progress(*marks)
    with HighWater(url, feed, marks.entries, tell, skipped=skipped, mark_bytes=marks.size) as wait:
        wait(0)
        yield wait


def _all(*waits: Callable[[int], None] | None) -> Callable[[int], None]:
    def after_chunk(sent: int) -> None:
        for wait in waits:
            if wait is not None:
                wait(sent)

    return after_chunk
