"""`push`: append examples to the input of a feed."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import orjson
from typer import Argument, Option

from workers.cli.common import (
    Feed,
    Json,
    RedisOptions,
    attached_url,
    embedded_url,
    note,
    opt,
    show_json,
)
from workers.cli.source_options import PushedSourceOptions, watched
from workers.errors import BadConfiguration, EmbeddedNotRunning
from workers.text import counted

if TYPE_CHECKING:
    from workers.push.back_pressure import HighWater
    from workers.push.convention import Convention
    from workers.push.ingest import Fields
    from workers.push.preview import TableFinding
    from workers.push.reading import Reading
    from workers.push.rows import Layout
    from workers.push.sources import Row


HIGH_WATER_BYTES = 1 << 28  # default bound of the waiting input, in bytes of field names and values


@dataclass(frozen=True, slots=True)
class PushOptions:
    """Selection of the rows, and limits on the speed."""

    skip: Annotated[int, Option(min=0, help="Rows to leave out at the start.")] = 0
    limit: Annotated[
        int | None, Option(min=0, help="Rows to push, at most; 0 only checks all of the source.")
    ] = None
    dry_run: Annotated[
        bool, opt("--dry-run", "Show how each column is read, check all rows, and send nothing.")
    ] = False
    high_water: Annotated[
        int,
        opt(
            "N",
            "Wait while N entries or more are beyond the worker's cursor, until half of them "
            "are answered; 0 never waits.",
            min=0,
        ),
    ] = 1_000_000
    high_water_bytes: Annotated[
        int, opt("N", "The same for N bytes of them: names and values of fields.", min=0)
    ] = HIGH_WATER_BYTES
    json: Json = False

    def tell(self, found: "TableFinding") -> None:
        """Print a line about the source; with --json also as an object."""
        note(str(found))
        if self.json:
            show_json(asdict(found))

    def tell_result(self, count: int, text: str, sent: bool) -> None:
        """Print how many rows were checked, or sent."""
        note(text)
        if self.json:
            show_json({"kind": "result", "rows": count, "sent": sent})


def push(
    feed: Feed,
    source: Annotated[
        str | None,
        Argument(
            help="A file (CSV, JSON lines, .xlsx, Parquet, LIBSVM, ARFF; .gz too), - for standard "
            "input (JSON lines, else --format), a data set that comes with river (Phishing, "
            "ImageSegments, Bananas), or a benchmark set by name."
        ),
    ] = None,
    labels: Annotated[
        str | None,
        opt(
            "FILE",
            "In the place of a source: labels of examples that were pushed before, by the id "
            "in --id COLUMN; for a feed with a --horizon. Rows without a label, and other columns, "
            "are left out.",
        ),
    ] = None,
    *,
    redis: RedisOptions,
    how: PushedSourceOptions,
    options: PushOptions,
) -> None:
    """Append examples to the input of a feed, or with --labels FILE the labels of earlier ones.

    A worker answers each entry. Before the first example is sent, push prints how it reads the
    columns of the source; numbers and dates may be written as in any country, and what is found is
    stored with the feed. After Ctrl-C it prints how many rows Redis accepted, and the --skip to
    continue with. --json prints each of these lines as an object, too, and at the end the number.
    """
    url = _checked(feed, redis)
    reading = how.reading()
    if labels is not None:
        reading = _for_labels(reading)
    name = _source(source, labels)
    if options.limit == 0 or options.dry_run:
        known = _known(_running_url(url), feed) if options.dry_run else None
        plan = _planned(name, replace(reading, known=known), how, options)
        if options.dry_run:
            plan = _accepted(plan, _running_url(url), feed)
        _check(plan, options)
        return
    if name == "-" or Path(name).is_file():  # else there is no table
        url = url or embedded_url()
        reading = replace(reading, known=_known(url, feed))
    plan = _planned(name, reading, how, options)
    _push(plan, url or embedded_url(), feed, options)


def _checked(feed: str, redis: RedisOptions) -> str | None:
    """Check the feed's name and the URL before a large file is read; return the given URL."""
    from workers.broker.servers import check_url
    from workers.feed.keys import FeedKeys

    FeedKeys(feed)
    given = redis.given_url()
    if given:
        check_url(given)
    return given


def _running_url(given: str | None) -> str | None:
    """Return the given URL, else the URL of the embedded server if it runs."""
    try:
        return given or attached_url()
    except EmbeddedNotRunning:
        return None


def _known(url: str | None, feed: str) -> "Convention | None":
    """Return how earlier tables of the feed are written, if that is stored."""
    from workers.broker.feed_reader import FeedReader
    from workers.push.convention import stored_convention

    if url is None:
        return None
    with FeedReader(url, feed) as reader:
        return stored_convention(reader)


class _Plan(NamedTuple):
    """Rows to push, in order."""

    rows: "Iterable[Row]"
    total: int | None  # number of rows, if known
    are_labels: bool
    encode: "Callable[[Row], Fields]"
    chunk: int  # rows sent at once
    reading: "Reading"
    layout: "Layout"
    # Of entries, before they are sent; and what these have found at the end.
    checks: "tuple[Callable[[Sequence[Fields], int], None], ...]" = ()
    findings: "Callable[[], Iterable[TableFinding]]" = tuple

    def check(self, entries: "Sequence[Fields]", before: int) -> None:
        """Raise BadSource if the feed must reject an entry; `before` rows are before them."""
        for check in self.checks:
            check(entries, before)

    def convention(self) -> "Convention | None":
        """Return how the table is written, if that is more than is stored for the feed."""
        known = self.reading.known
        if self.layout.cells is None:
            return None
        found = self.layout.cells.convention(self.layout.encoding)
        return found if found != known and found.model_dump(exclude_defaults=True) else None


def _planned(
    name: str, reading: "Reading", how: PushedSourceOptions, options: PushOptions
) -> _Plan:
    """Open the source, and print the summary of its columns."""
    from workers.push import ingest, sources
    from workers.push.columns import MAX_ROWS
    from workers.push.preview import LabelSpellings
    from workers.push.rows import Layout

    layout = Layout()
    chunk = min(ingest.CHUNK_ENTRIES, options.high_water or ingest.CHUNK_ENTRIES)
    if name == "-":  # rows of a live source must not wait for later ones
        reading = replace(reading, examined=chunk)
    found = sources.rows(name, reading, layout)
    if reading.labels_only:
        found = _with_outcome(found, layout)
    rows, total = how.chosen(found, options.skip, options.limit or None)
    if reading.labels_only:
        rows = watched(rows, layout, LabelSpellings(()), options.tell)
    else:
        shown = MAX_ROWS if options.dry_run else chunk
        rows = how.summarized(rows, layout, shown, options.dry_run, options.tell)
    if total is None and name != "-":
        total = sources.row_count(Path(name), options.skip)
    encode = ingest.label_entry if reading.labels_only else ingest.entry
    return _Plan(rows, total, reading.labels_only, encode, chunk, reading, layout)


def _with_outcome(rows: "Iterator[Row]", layout: "Layout") -> "Iterator[Row]":
    """Yield the rows that have a label; count the others, whose outcome is still open."""
    for row in rows:
        if not (row.y or "").strip():
            layout.open_outcomes += 1
        else:
            yield row


def _accepted(plan: _Plan, url: str | None, feed: str) -> _Plan:
    """Return a plan that refuses the entries that the feed must reject, if it has begun."""
    from workers.broker.feed_reader import FeedReader
    from workers.push.acceptance import Acceptance, AwaitedIds

    if url is None:
        return plan
    with FeedReader(url, feed) as reader:
        acceptance = Acceptance.of_feed(reader)
    if acceptance is None:
        return plan
    if not plan.are_labels:
        return plan._replace(checks=(acceptance.check,))
    awaited = AwaitedIds(url, feed)
    return plan._replace(checks=(acceptance.check, awaited.check), findings=awaited.findings)


def _check(plan: _Plan, options: PushOptions) -> None:
    """Read and encode the rows without pushing them; print their number."""
    from workers.cli.progress import doing
    from workers.push.ingest import chunks

    count = 0
    with doing("checking", plan.total) as progress:
        for chunk, _ in chunks(map(plan.encode, plan.rows), plan.chunk):
            plan.check(chunk, options.skip + count)
            count += len(chunk)
            progress(count)
    for found in plan.findings():
        options.tell(found)
    noun = "label" if plan.are_labels else "row"
    option = "--dry-run" if options.dry_run else "--limit 0"
    text = f"{counted(count, noun)} can be pushed; none was, as {option} asks"
    options.tell_result(count, text, sent=False)


def _push(plan: _Plan, url: str, feed: str, options: PushOptions) -> None:
    """Push the rows, and print their number; after Ctrl-C also how to continue."""
    from workers.push.ingest import PushInterrupted

    if plan.are_labels:
        _check_horizon(url, feed)
    plan = _accepted(plan, url, feed)
    began = time.monotonic()
    stored = _store(plan, None, url, feed, options)
    try:
        sent = _pushed(plan, url, feed, options)
    except PushInterrupted as interrupted:
        note(_resume_hint(interrupted.sent, interrupted.unsure, options.skip, options.limit))
        raise
    _store(plan, stored, url, feed, options)
    for found in plan.findings():
        options.tell(found)
    seconds = time.monotonic() - began
    noun = "label" if plan.are_labels else "row"
    text = f"{counted(sent, noun)} pushed to feed {feed!r} in {seconds:.1f} s"
    options.tell_result(sent, text, sent=True)


def _store(
    plan: _Plan, stored: "Convention | None", url: str, feed: str, options: PushOptions
) -> "Convention | None":
    """Store how the table is written, unless it is stored; return what is stored now."""
    from workers.broker.feed_reader import FeedReader
    from workers.push.convention import store_convention
    from workers.push.preview import warning

    found = plan.convention()
    if found is None or found == stored:
        return stored
    with FeedReader(url, feed) as reader:
        if not store_convention(reader, found):
            text = "how this table is written is not stored: this user may not, or it is too long"
            options.tell(warning("not_stored", text))
    return found


def _check_horizon(url: str, feed: str) -> None:
    """Raise BadConfiguration if the feed rejects every label that comes after its example."""
    from workers.broker.feed_reader import FeedReader

    with FeedReader(url, feed) as reader:
        # Only this field: a producer may have no permission for more of the state.
        config = reader.state_field("config")
    if config is not None and orjson.loads(config).get("predictor", {}).get("horizon") == 0:
        raise BadConfiguration(
            f"feed {feed!r} has no horizon: it learns a label that comes with its example. Push "
            "the rows again, with their labels; or begin the feed anew, so that it takes labels of "
            f"rows that it answered: online-svm reset {feed}, then worker {feed} --horizon, how "
            "long a label may take"
        )


def _pushed(plan: _Plan, url: str, feed: str, options: PushOptions) -> int:
    """Push the rows within the high-water marks; return their number."""
    from workers.cli.progress import push_progress
    from workers.push import ingest

    with push_progress(plan.total) as progress, _back_pressure(url, feed, options) as wait:

        def after_chunk(sent: int, size: int) -> None:
            progress(sent)
            if wait is not None:
                wait(sent, size)

        return ingest.push(
            plan.rows, url, feed,
            encode=plan.encode, check=plan.check,
            pacing=ingest.Pacing(plan.chunk, after_chunk, options.skip),
        )  # fmt: skip


def _source(source: str | None, labels: str | None) -> str:
    if (source is None) == (labels is None):
        given = "both a source and" if labels is not None else "neither a source nor"
        raise BadConfiguration(f"push: {given} --labels FILE; give one of them")
    return source if labels is None else labels  # type: ignore[return-value]  # one of them is given


def _for_labels(reading: "Reading") -> "Reading":
    if reading.id is None:
        raise BadConfiguration("--labels: say which column has the ids: --id COLUMN")
    if not reading.labelled:
        raise BadConfiguration("--labels: a label entry has an id and a label; leave out the rest")
    return replace(reading, labels_only=True)


def _resume_hint(sent: int, unsure: int, skip: int, limit: int | None) -> str:
    """Return a message after an interrupted push: the rows that were sent, and how to continue.

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
def _back_pressure(url: str, feed: str, options: PushOptions) -> "Iterator[HighWater | None]":
    """Wait until the first chunk may be sent; yield the callback that waits after each chunk."""
    mark, mark_bytes = options.high_water, options.high_water_bytes
    if not (mark or mark_bytes):
        yield None
        return
    from workers.cli.progress import waiting_progress
    from workers.push.back_pressure import HighWater

    progress = waiting_progress(mark, mark_bytes)
    with HighWater(url, feed, mark, progress, mark_bytes, options.skip) as wait:
        wait(0)
        yield wait
