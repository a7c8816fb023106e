"""`restore`: set a feed back to a backup."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from workers.cli.common import Feed, Force, RedisOptions, Yes, confirm, note
from workers.text import counted

if TYPE_CHECKING:
    from workers.recording.restore import Restored

_MIN_CLOCK_MS = 1_000_000_000_000  # the year 2001: a smaller ID is not a time of the clock


def restore(
    feed: Feed,
    file: Annotated[Path, Argument(metavar="FILE", help="What `backup` saved.")],
    *,
    redis: RedisOptions,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Put a feed back to its backup, after Redis lost it; a worker continues from there.

    The state is that of the newest snapshot. Input that came after it is put back from the file,
    unless Redis still has it, and answered again to the same bytes.
    """
    from workers.cli.progress import doing
    from workers.recording import restore as restoring
    from workers.recording.begin import RestorePoint
    from workers.recording.reader import Recording

    with Recording.open(file) as recording, redis.store(feed) as store:
        replaces = restoring.exists(store)
        if replaces:
            at = f"{RestorePoint.of(recording).position.seq:,}"
            confirm(f"Feed {feed!r} exists: put its state back to entry {at}, for good?", yes)
        with doing(f"restoring feed {feed!r}"):
            restored = restoring.restore(store, recording, replaces, force)
    for line in describe(feed, restored):
        note(line)


def describe(feed: str, restored: "Restored") -> list[str]:
    """Return lines about what was restored and what was lost.

    Examples
    --------
    >>> from workers.feed.position import Position
    >>> from workers.recording.restore import Restored
    >>> lines = describe("mail", Restored(Position(b"1700000000000-0", 5, 4), 5, 2, False))
    >>> print(lines[0])
    feed 'mail' is restored at seq 5, n 4 (input up to 1700000000000-0, 2023-11-14 22:13:20 UTC)
    >>> print(lines[1])
    2 entries of the input after it wait and will be answered; what else was pushed after it is \
lost: push it again
    """
    position, waits = restored.position, restored.waiting
    cursor = position.cursor.decode()
    lines = [
        f"feed {feed!r} is restored at seq {position.seq:,}, n {position.n:,} (input up to "
        f"{cursor}{_clock(cursor)})"
    ]
    gone = position.seq - restored.answers
    if gone > 0:
        is_are = "is" if gone == 1 else "are"
        lines.append(f"lost: {counted(gone, 'answer')} before it, which {is_are} not in this Redis")
    if waits:
        entries = "at least " * restored.waiting_is_at_least + counted(waits, "entry", "entries")
        lines.append(
            f"{entries} of the input after it {'waits' if waits == 1 else 'wait'} and will be "
            "answered; what else was pushed after it is lost: push it again"
        )
    else:
        lines.append("lost: what was pushed and answered after it; push it again from there")
    return [*lines, f"to go on: online-svm worker {feed}"]


def _clock(entry_id: str) -> str:
    """Return the time of an ID, as a part of a sentence; "" if the ID is not a time."""
    milliseconds = int(entry_id.partition("-")[0])
    if not _MIN_CLOCK_MS <= milliseconds < 10 * _MIN_CLOCK_MS:
        return ""
    return f", {datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
