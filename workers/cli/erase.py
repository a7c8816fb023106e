"""`erase`: remove the rows of one person from a feed."""

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from workers.cli.common import Feed, Json, RedisOptions, Yes, confirm, note, opt, show_json
from workers.errors import BadConfiguration, WorkerError
from workers.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.admin.erasure import Copies, Erasure
    from workers.broker.store import Store


def erase(
    feed: Feed,
    id: Annotated[str, Option(help="The id that the producer sent.")],
    archive: Annotated[Path | None, opt("DIR", "Its archive, if there is one.")] = None,
    *,
    redis: RedisOptions,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Erase every entry with an id for good: input, answer, labels, dead letters, archive.

    What was learned is learned again from the kept input without them, and the feed goes on from
    there. No worker may hold it meanwhile. Run again, the command finishes one that was cut off.
    """
    from workers.admin.erasure import erase as remove
    from workers.cli.progress import doing

    confirm(f"Erase all entries with this id from feed {feed!r} for good?", yes)
    with redis.store(feed) as store:
        opened = nullcontext(None) if archive is None else _opened(archive, feed)
        entries = store.length(store.keys.input)
        with opened as copies, doing(f"erasing from feed {feed!r}", entries) as progress:
            found = remove(store, id, copies, progress)
        saved = found.learned is None or _save(store)
        readers = [] if archive is not None else _readers(store)
    if json:
        show_json({"feed": feed, **_plain(found), "file_rewritten": saved})
        return
    note(describe(feed, found))
    if not saved:
        note(
            "the file that Redis saves may still have them: run BGREWRITEAOF, and BGSAVE where "
            "Redis saves snapshots"
        )
    if readers:
        note(
            f"consumers of its answers may have copies: {', '.join(readers)}. Of an archive they "
            "are erased with --archive DIR"
        )


def describe(feed: str, found: "Erasure") -> str:
    """Return the result as text."""
    if found.learned is None:
        rows = counted(found.archived, "row")
        return f"{rows} of the archive of an earlier feed {feed!r} erased; nothing else was done"
    text = f"{counted(found.entries, 'entry', 'entries')} of feed {feed!r} erased"
    if found.archived:
        text += f", and {counted(found.archived, 'row')} of its archive"
    text += f"; it goes on from {counted(found.learned, 'example')} learned"
    if found.unlinked:
        text += f". The digest is no longer known at {found.unlinked:,} of them: docs/operate.md"
    return text


def _plain(found: "Erasure") -> dict[str, int | None]:
    return {
        "entries": found.entries,
        "archived_rows": found.archived,
        "learned": found.learned,
        "unlinked": found.unlinked,
    }


@contextmanager
def _opened(path: Path, feed: str) -> "Iterator[Copies]":
    from workers.offline.archive.erasure import ErasableArchive
    from workers.offline.archive.layout import locked
    from workers.offline.archive.reader import Archive

    archive = Archive(path, feed)
    if archive.identity.feed != feed:
        raise BadConfiguration(f"{path}: is the archive of feed {archive.identity.feed!r}")
    with locked(archive.directory):
        yield ErasableArchive(archive)


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
