"""Sources of `backtest`: the entries of a file, a feed or an archive."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import RedisOptions, note
from workers.cli.source_options import SourceOptions
from workers.plural import counted

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings

Entries = Iterable[Sequence[bytes]]

HEAD = 1000
"""Rows that are looked at before it is told how they are read."""


@dataclass(frozen=True, slots=True)
class HistoryOptions(SourceOptions):
    """How a history is read; a feed and an archive are not read as a file is."""

    feed: Annotated[
        bool, typer.Option("--feed", help="It is a feed, though a file or data set has the name.")
    ] = False
    limit: Annotated[
        int | None, typer.Option(min=1, help="Entries to answer, at most.", show_default=False)
    ] = None

    def entries(self, source: str) -> Iterator[Sequence[bytes]]:
        """Yield the entries that `push` would send of a source; first say how it is read."""
        from workers.push.ingest import encoded
        from workers.push.rows import Layout
        from workers.push.sources import rows

        layout = Layout()
        chosen, _ = self.chosen(rows(source, self.reading(), layout), limit=self.limit)
        for row in self.told(chosen, layout, HEAD):
            yield encoded(row, self.arrays)

    def refuse_file_options(self, source: str) -> None:
        """Raise BadConfiguration if an option of a file is given where the source is none."""
        from workers.errors import BadConfiguration

        for option in fields(SourceOptions):
            if getattr(self, option.name) not in (None, False):
                raise BadConfiguration(
                    f"--{option.name.replace('_', '-')} is for a file, and {source} is none: it is "
                    "taken for a feed, whose entries are answered as they are"
                )


@contextmanager
def opened_source(
    source: str, how: HistoryOptions, redis: RedisOptions, given: "WorkerSettings"
) -> "Iterator[tuple[WorkerSettings, Entries]]":
    """Yield the settings to start from and the entries of an archive, a feed or a file."""
    from workers.history.archive.layout import is_archive

    archived = not how.feed and is_archive(Path(source))
    if not archived and not how.feed and _is_readable(source):
        yield given, how.entries(source)
        return
    how.refuse_file_options(source)
    history = (
        nullcontext(_archived(source, given))
        if archived
        else _feed_history(source, redis, given, how.feed)
    )
    with history as (base, entries):
        yield base, islice(entries, how.limit)


def _is_readable(source: str) -> bool:
    """Return whether `push` would read a source: a file, standard input, or a data set by name."""
    from workers.push.datasets import NAMES
    from workers.push.sources import comes_with_river

    looks_like_a_path = "/" in source or Path(source).suffix != ""
    is_there = source == "-" or Path(source).exists() or looks_like_a_path
    return is_there or source in NAMES or comes_with_river(source)


@contextmanager
def _feed_history(
    name: str, redis: RedisOptions, given: "WorkerSettings", is_meant: bool
) -> "Iterator[tuple[WorkerSettings, Entries]]":
    """Yield the settings to start from and the entries of a feed.

    Raises
    ------
    BadConfiguration
        If there is no such feed, or an option is given that is for files.
    """
    from workers.errors import BadConfiguration, EmbeddedNotRunning
    from workers.feed.keys import FeedKeys
    from workers.history.backtest.feed_history import FeedHistory

    FeedKeys(name)
    try:
        with redis.store(name) as store:
            history = FeedHistory(store)
            yield history.settings(given), _told(history.entries(), history, name)
    except EmbeddedNotRunning as error:
        if is_meant:
            raise
        raise BadConfiguration(
            f"{name}: no such file or data set, so it would be a feed; {error}"
        ) from None


def _archived(source: str, given: "WorkerSettings") -> "tuple[WorkerSettings, Entries]":
    """Return the settings to start from and the entries of an archive."""
    from workers.errors import BadConfiguration
    from workers.feed.stored_settings import stored_settings
    from workers.history.archive.reader import Archive
    from workers.history.backtest.recording import Identified

    archive = Archive(Path(source))
    stored = stored_settings(archive.identity.feed, archive.identity.agreement)
    if stored is None:
        raise BadConfiguration(f"{source}: is of a combination: backtest its sources")
    return given.over(*stored), (Identified(*e) for page in archive.inputs() for e in page)


def _told(entries: Iterator[list[bytes]], history: Any, name: str) -> Iterator[list[bytes]]:
    """Pass the entries on, and say at the end what is missing before them."""
    yield from entries
    if history.trimmed:
        note(
            f"feed {name} no longer has its {counted(history.trimmed, 'oldest entry', 'oldest')} "
            "entries: the history begins after them (a worker with --keep-input keeps all)"
        )
