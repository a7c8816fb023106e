"""`repair`: make the state and the answers of a feed agree again."""

from typing import TYPE_CHECKING

import typer

from workers.cli.common import Config, Feed, Redis, redis_url
from workers.plural import counted

if TYPE_CHECKING:
    from workers.admin.repair import Repaired


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("repair")(repair)


def repair(feed: Feed, redis: Redis = None, config: Config = None) -> None:
    """Make the state and the answers of a feed agree, if a replay of its input proves them.

    If the state is behind, it moves to the end of the answers. Missing answers are written.
    """
    from workers.admin.repair import repair as mend
    from workers.admin.repair_store import RepairStore

    with RepairStore(redis_url(redis, config), feed) as store:
        print(describe(feed, mend(store)))


def describe(feed: str, done: "Repaired") -> str:
    """Return a line that says what was done."""
    if done.appended:
        answers = counted(done.appended, "missing answer")
        return f"feed {feed}: {answers} written; out ends at {done.after.cursor.decode()}"
    if done.before == done.after:
        return f"feed {feed}: state and answers agree; nothing to repair"
    return (
        f"feed {feed}: {counted(done.after.seq - done.before.seq, 'answer')} found as answering "
        f"the input again gives them; the state moved from seq {done.before.seq:,} to "
        f"{done.after.seq:,}"
    )
