"""`tail`: show the last entries of a stream of a feed."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from workers.cli.common import Feed, Json, RedisOptions, note, opt
from workers.errors import BadConfiguration
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.broker.streams import Entry

Stream = Literal["out", "met", "dlq", "alarms", "events"]

_ENTRIES = {"met": "report", "dlq": "rejected entry", "alarms": "alarm", "events": "event"}
"""Noun for an entry of each stream other than the answers."""


@dataclass(frozen=True, slots=True)
class FormOptions:
    """Format of the printed entries."""

    json: Json = False
    features: Annotated[
        bool, opt("--features", "Show the features of answers, as they were sent.")
    ] = False


def tail(
    feed: Feed,
    *,
    redis: RedisOptions,
    follow: Annotated[bool, Option("--follow", "-f", help="Wait for more.")] = False,
    count: Annotated[
        int, Option("--count", "-n", min=0, help="Entries to begin with; 0 is all kept.")
    ] = 10,
    stream: Annotated[
        Stream,
        Option(
            help="Answers (out), validity reports (met), rejected input (dlq), alarms, or what "
            "happened to the workers and what people noted (events)."
        ),
    ] = "out",
    form: FormOptions,
) -> None:
    """Show the last answers of a feed, with the label that was learned and whether it was right.

    --stream shows another stream. --json prints the payloads; answers have true_label and is_right
    added. Both are null where the entry had no label, and where its input was trimmed since (a
    worker with --keep-input keeps it).
    """
    from workers.reading.answers import check_known
    from workers.reading.registry import require

    if form.features and stream != "out":
        raise BadConfiguration(f"--features: --stream {stream} has none; leave out one of the two")
    with redis.store(feed) as store:
        if not follow:
            require(store)
        if stream in ("out", "met", "alarms"):
            check_known(store)
        _note_if_empty(store, stream)
        lines = _lines(store, stream, form)
        for page in _pages(store, _key(store, stream), count, follow):
            for text in lines(page):
                print(text)
            if follow:
                sys.stdout.flush()


def _key(store: "Store", stream: Stream) -> str:
    key: str = getattr(store.keys, stream)
    return key


def _lines(
    store: "Store", stream: Stream, form: FormOptions
) -> "Callable[[Sequence[Entry]], Iterator[str]]":
    """Return the function that formats a page of entries."""
    from workers.cli import stream_text as text
    from workers.feed.codes import EVENTS_KEPT
    from workers.reading.incidents import commit_times
    from workers.reading.true_labels import TrueLabels

    if stream == "out":
        truths = TrueLabels(store, form.features)
        return lambda page: text.answer_lines(page, truths, form.json)
    if stream == "alarms":
        return lambda page: text.alarm_lines(
            page, commit_times(store.last_entries(store.keys.raised, EVENTS_KEPT)), form.json
        )
    by_page = {"met": text.report_lines, "dlq": text.dead_letter_lines, "events": text.event_lines}[
        stream
    ]
    return lambda page: by_page(page, form.json)


def _note_if_empty(store: "Store", stream: Stream) -> None:
    """Print a note if the stream is empty, or if input waits for its first answer."""
    if store.length(_key(store, stream)):
        return
    waiting = 0 if store.length(store.keys.out) else store.length(store.keys.input)
    if waiting:
        note(f"no answers yet: {counted(waiting, 'entry waits', 'entries wait')} for a worker")
    elif stream in _ENTRIES:
        note(f"no {_ENTRIES[stream]} of {store.keys.feed} is kept")


def _pages(store: "Store", key: str, count: int, follow: bool) -> "Iterator[Sequence[Entry]]":
    """Yield the last entries of a stream; with `follow`, also the new ones as they arrive."""
    last = b"0-0"
    for page in (store.last_entries(key, count),) if count else store.pages(key, last):
        if page:
            last = page[-1][0]
            yield page
    sys.stdout.flush()
    while follow:
        if page := store.wait_for_entries(key, last, 1000):
            last = page[-1][0]
            yield page
