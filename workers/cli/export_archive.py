"""A feed as Parquet files by day: each entry is written once."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workers.cli.common import note, show_json
from workers.plural import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.history.archive.archiver import Archived, Archiver
    from workers.stop import Stop

_POLL = 0.5  # seconds between two looks at a feed that has not begun


class ArchiveOptions(NamedTuple):
    """Options of an archive; see those of `export`."""

    follow: bool
    every: float
    group: str
    take_group: bool
    accept_gap: bool


def export_archive(url: str, feed: str, to: Path, options: ArchiveOptions, as_json: bool) -> None:
    """Write answers, labels, reports, alarms and input of a feed, and go on with what comes.

    The files say where to go on.
    """
    from workers.broker.store import Store
    from workers.history.archive.archiver import Archiver
    from workers.history.archive.identity import locked
    from workers.history.archive.layout import place_of
    from workers.history.archive.parquet import arrow
    from workers.stop import Stop, signals

    arrow()  # before anything is waited for
    stop, directory, follow = Stop(), place_of(to, feed), options.follow
    with signals(stop), Store(url, feed, stop) as store:
        if not _has_begun(store, stop, follow):
            return
        with locked(directory):
            archiver = Archiver(
                store, directory, options.group, options.accept_gap, options.take_group
            )
            if follow:
                store.be_patient()
                note(_beginning(archiver, directory))
            _run(archiver, stop, directory, follow, options.every)
    if as_json:
        show_json({"feed": feed, "directory": str(directory)} | _plain(archiver.done))


def _run(archiver: "Archiver", stop: "Stop", directory: Path, follow: bool, every: float) -> None:
    """Archive, and say what was added: after an error too, if anything was."""
    try:
        archiver.run(stop, follow, every)
    except BaseException:
        if archiver.done.answers:
            note(describe(archiver.done, directory))
        raise
    note(describe(archiver.done, directory))


def describe(done: "Archived", directory: Path) -> str:
    """Return what was added, as text.

    Examples
    --------
    >>> from workers.history.archive.archiver import Archived
    >>> describe(Archived(2, 1, 1), Path("cold/feed=mail"))
    '2 answers added to cold/feed=mail; the input of 1 of them was no longer kept'
    """
    text = f"{counted(done.answers, 'answer')} added to {directory}"
    if done.missing:
        text += f"; the input of {done.missing:,} of them was no longer kept"
    return text


def _beginning(archiver: "Archiver", directory: Path) -> str:
    before = archiver.was_archived
    where = "the oldest answer that is kept" if before is None else f"answer {before + 1:,}"
    return f"archiving to {directory}, from {where} on"


def _plain(done: "Archived") -> dict[str, int]:
    return {"answers": done.answers, "input": done.inputs, "input_missing": done.missing}


def _has_begun(store: "Store", stop: "Stop", follow: bool) -> bool:
    """Return whether a feed has a state; wait for it if it is to be followed.

    Raises
    ------
    BadConfiguration
        If it has none and is not to be followed.
    """
    from workers.history.archive.archiver import no_answers

    if store.state() is not None:
        return True
    if not follow:
        raise no_answers(store.keys.feed)
    note(f"waiting for feed {store.keys.feed!r} to begin")
    store.be_patient()
    while not stop.wait(_POLL):
        if store.state() is not None:
            return True
    return False
