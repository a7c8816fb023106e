"""`reset`: delete the answers and the state of a feed."""

from typing import TYPE_CHECKING, Annotated

from workers.cli.common import Feed, Force, RedisOptions, Yes, confirm, note, opt
from workers.errors import WorkerError
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.store import Store


def reset(
    feed: Feed,
    *,
    redis: RedisOptions,
    with_input: Annotated[
        bool, opt("--input", "Delete the input too, not only what came of it.")
    ] = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Delete the answers and the state of a feed; its input is then answered from the start."""
    from workers.admin.reset import reset as forget

    parts = "its input, answers and state" if with_input else "its answers and state"
    confirm(f"Reset feed {feed!r}: delete {parts} for good?", yes)
    with redis.store(feed) as store:
        keeps_input = _keeps_input(store)
        deleted = forget(store, with_input, force)
        note(describe(feed, deleted, store.length(store.keys.input), keeps_input))


def _keeps_input(store: "Store") -> bool:
    """Return whether the stored settings keep all input; False if the state cannot be read."""
    try:
        state = store.state()
    except WorkerError:
        return False
    return state is not None and state.retention is not None and state.retention.keep_input


def describe(feed: str, deleted: int, kept: int, keeps_input: bool = False) -> str:
    """Return the numbers of deleted keys and of kept input entries as text."""
    input_kept = f"its input is kept ({counted(kept, 'entry', 'entries')}) unless --input"
    if keeps_input:
        input_kept += "; a worker trims it unless it has --keep-input again"
    if deleted:
        done = f"feed {feed!r} was reset: {counted(deleted, 'key')} deleted"
        return f"{done}; {input_kept}" if kept else done
    if kept:
        return f"feed {feed!r} has no answers and no state to delete; {input_kept}"
    return f"no feed {feed!r}: nothing to delete; a worker may begin it anew"
