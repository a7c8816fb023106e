"""`export`: write the answers of a feed as a table, or all of it as Parquet files."""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from typer import Argument, Option

from workers.cli.common import (
    Feed,
    Json,
    Overwrite,
    RedisOptions,
    note,
    opt,
    replacing,
    show_json,
)
from workers.errors import BadConfiguration, writing
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.offline.archive.archiver import Archived, Archiver
    from workers.stop import Stop

STANDARD_OUTPUT = Path("-")
_POLL_SECONDS = 0.5  # time between two reads of a feed that has not begun
_PARQUET = "Parquet files (--to)"  # panel of the help


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of the CSV table."""

    features: Annotated[
        bool, opt("--features", "Add a column for each feature, as it was sent.")
    ] = False
    overwrite: Overwrite = False
    raw: Annotated[
        bool,
        opt(
            "--raw",
            "Write text as it is. Without it, text that begins like a formula (= + - @) and "
            "is no number gets a ' in front, and a control character is written as an escape.",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Options of an archive."""

    to: Annotated[
        Path | None,
        opt(
            "DIR",
            "Write answers, labels, reports, alarms and input as Parquet files by day: an "
            "archive, or what is new to one. Needs pyarrow (pip install 'online-svm[archive]').",
            rich_help_panel=_PARQUET,
        ),
    ] = None
    follow: Annotated[
        bool,
        opt(
            "--follow", "Go on with what comes, until Ctrl-C or SIGTERM.", rich_help_panel=_PARQUET
        ),
    ] = False
    every: Annotated[
        float,
        Option(
            metavar="SECONDS",
            min=0.0,
            help="With --follow: write what is new after so long, at the latest.",
            rich_help_panel=_PARQUET,
        ),
    ] = 30.0
    group: Annotated[
        str,
        Option(
            help="Consumer group of the answers that is moved behind what is on disk. A worker "
            "with --downstream block trims nothing before the group downstream was.",
            rich_help_panel=_PARQUET,
        ),
    ] = "downstream"
    take_group: Annotated[
        bool,
        opt(
            "--take-group",
            "Take that group from an archive that was given up.",
            rich_help_panel=_PARQUET,
        ),
    ] = False
    accept_gap: Annotated[
        bool,
        opt(
            "--accept-gap",
            "Go on where entries were trimmed before they came here.",
            rich_help_panel=_PARQUET,
        ),
    ] = False


def export(
    feed: Feed,
    target: Annotated[
        Path, Argument(metavar="[FILE]", help="Where to; - is standard output.")
    ] = STANDARD_OUTPUT,
    *,
    redis: RedisOptions,
    table: TableOptions,
    archive: ArchiveOptions,
    json: Json = False,
) -> None:
    """Write the kept answers of a feed as CSV: a row an answer, a column a number.

    true_label is the label that was learned, is_right 1 or 0. Both are blank where the entry had
    no label, and where its input was trimmed since (a worker with --keep-input keeps it).

    With --to write Parquet files instead, each entry exactly once: the files record where to
    go on. --json then prints what was added.
    """
    if archive.to is not None:
        if target != STANDARD_OUTPUT or table != TableOptions():
            raise BadConfiguration(
                "FILE, --features, --overwrite and --raw are of the CSV table: "
                "leave them out, or --to"
            )
        _export_archive(redis.url(), feed, archive.to, archive, json)
        return
    if archive.follow or archive.take_group or archive.accept_gap or json:
        raise BadConfiguration(
            "--follow, --take-group, --accept-gap and --json are of Parquet files: give --to DIR"
        )
    with redis.answered(feed) as store:
        _export_table(store, target, table)


def _export_table(store: "Store", target: Path, options: TableOptions) -> None:
    from workers.cli.progress import doing
    from workers.offline.answer_table import AnswerTable

    total = store.length(store.keys.out)
    with (
        doing("exporting", total) as progress,
        writing(target), _opened(target, options.overwrite) as file,
    ):  # fmt: skip
        table = AnswerTable(store, options.features)
        count = table.write(file, options.raw, progress)
    if table.trimmed:
        note(
            f"the input of {counted(table.trimmed, 'answer')} is no longer kept: true_label and "
            "is_right are blank there; online-svm worker --keep-input keeps it"
        )
    note(f"{counted(count, 'answer')} exported")


def _opened(path: Path, overwrite: bool) -> AbstractContextManager[TextIO]:
    return nullcontext(sys.stdout) if path == STANDARD_OUTPUT else replacing(path, overwrite)


def _export_archive(url: str, feed: str, to: Path, options: ArchiveOptions, as_json: bool) -> None:
    """Archive the new answers of a feed, and with `--follow` also the later ones."""
    from workers.broker.store import Store
    from workers.offline.archive.archiver import Archiver
    from workers.offline.archive.layout import locked, place_of
    from workers.offline.archive.parquet import arrow
    from workers.stop import Stop, signals

    arrow()  # raises if pyarrow is missing, before the command waits for a feed
    stop, directory, follow = Stop(), place_of(to, feed), options.follow
    with signals(stop), Store(url, feed, stop) as store:
        if not _has_begun(store, stop, follow):
            return
        with locked(directory):
            archiver = Archiver(
                store, directory, options.group, options.accept_gap, options.take_group
            )
            if follow:
                store.retry_forever()
                last = archiver.was_archived
                begin = "the oldest answer that is kept" if last is None else f"answer {last + 1:,}"
                note(f"archiving to {directory}, from {begin} on")
            _run(archiver, stop, directory, follow, options.every)
    if as_json:
        done = archiver.done
        counts = {"answers": done.answers, "input": done.inputs, "input_missing": done.missing}
        show_json({"feed": feed, "directory": str(directory)} | counts)


def _run(archiver: "Archiver", stop: "Stop", directory: Path, follow: bool, every: float) -> None:
    """Archive, and print what was added; after an error only if anything was."""
    from workers.cli.progress import doing

    try:
        with nullcontext() if follow else doing(f"exporting to {directory}"):
            archiver.run(stop, follow, every)
    except BaseException:
        if archiver.done.answers:
            note(describe(archiver.done, directory))
        raise
    note(describe(archiver.done, directory))


def describe(done: "Archived", directory: Path) -> str:
    """Return the numbers of added answers as text.

    Examples
    --------
    >>> from workers.offline.archive.archiver import Archived
    >>> describe(Archived(2, 1, 1), Path("cold/feed=mail"))
    '2 answers added to cold/feed=mail; the input of 1 of them was no longer kept'
    """
    text = f"{counted(done.answers, 'answer')} added to {directory}"
    if done.missing:
        text += f"; the input of {done.missing:,} of them was no longer kept"
    return text


def _has_begun(store: "Store", stop: "Stop", follow: bool) -> bool:
    """Return whether a feed has a state; with `follow`, wait for it."""
    from workers.admin.verify import no_answers

    if store.state() is not None:
        return True
    if not follow:
        raise no_answers(store.keys.feed)
    note(f"waiting for feed {store.keys.feed!r} to begin")
    store.retry_forever()
    while not stop.wait(_POLL_SECONDS):
        if store.state() is not None:
            return True
    return False
