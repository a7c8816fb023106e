"""`erase`: remove the rows of one person from a feed."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from workers.cli.common import Json, RedisOptions, Source, Yes, confirm, note, opt, show_json
from workers.errors import BadConfiguration, WorkerError
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.recording.erasure import Erasure


def erase(
    source: Source,
    id: Annotated[str, Option(help="The id that the producer sent.")],
    file: Annotated[
        Path | None, opt("FILE", "Its recording, if there is one: what `backup` has written.")
    ] = None,
    *,
    redis: RedisOptions,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Erase every entry with an id for good: input, answer, labels, dead letters, recording.

    What was learned is learned again from the kept input without them, and the feed goes on from
    there. No worker may hold it meanwhile, and no process the file. Run again, the command finishes
    one that was cut off.
    """
    from workers.recording.file import is_recording

    confirm(f"Erase all entries with this id from {source!r} for good?", yes)
    if is_recording(source):
        if file is not None:
            raise BadConfiguration("--file is the recording of a feed: leave it out for a file")
        found, saved, readers = _of_file(Path(source), id), True, list[str]()
    else:
        found, saved, readers = _of_feed(source, id, file, redis)
    if json:
        show_json({"source": source, **asdict(found), "file_rewritten": saved})
        return
    note(describe(source, found))
    if not saved:
        note(
            "the file that Redis saves may still have them: run BGREWRITEAOF, and BGSAVE where "
            "Redis saves snapshots"
        )
    if readers:
        note(
            f"consumers of its answers may have copies: {', '.join(readers)}. Of a recording they "
            "are erased with --file FILE"
        )


def _of_file(file: Path, id: str) -> "Erasure":
    from workers.cli.progress import doing
    from workers.recording.erasure import erase_file

    with doing(f"erasing from {file}"):
        return erase_file(file, id)


def _of_feed(
    feed: str, id: str, file: Path | None, redis: RedisOptions
) -> "tuple[Erasure, bool, list[str]]":
    """Erase from a feed; return also whether Redis saves again, and who reads the answers."""
    from workers.cli.progress import doing
    from workers.recording.erasure import erase as remove

    with redis.store(feed) as store:
        entries = store.length(store.keys.input)
        with doing(f"erasing from feed {feed!r}", entries) as progress:
            found = remove(store, id, file, progress)
        return found, _save(store), [] if file is not None else _readers(store)


def describe(source: str, found: "Erasure") -> str:
    """Return the result as text."""
    text = f"{counted(found.entries, 'entry', 'entries')} of {source!r} erased"
    if found.rows:
        text += f", {counted(found.rows, 'row')} of the recording"
    text += f"; it goes on from {counted(found.learned, 'example')} learned"
    if found.unlinked:
        text += f". The digest is no longer known at {found.unlinked:,} of them: docs/operate.md"
    return text


def _save(store: "Store") -> bool:
    """Start to rewrite the files of Redis; return False if this user may not."""
    try:
        store.begin_saving()
    except WorkerError:
        return False
    return True


def _readers(store: "Store") -> "list[str]":
    if not store.length(store.keys.out):
        return []
    return [group.name.decode(errors="replace") for group in store.groups(store.keys.out)]
