"""`fork`: answer the same input under another configuration."""

from typing import TYPE_CHECKING, Annotated

from workers.cli.common import RedisOptions, Source, note, opt
from workers.errors import Unavailable
from workers.text import counted

if TYPE_CHECKING:
    from workers.recording.fork import Fork


def fork(
    source: Source,
    *,
    redis: RedisOptions,
    to: Annotated[
        str | None, opt("NAME", "Name of the new feed; default FEED-2, FEED-3...")
    ] = None,
) -> None:
    """Copy the kept input of a feed to a new one, to answer it with other settings."""
    from workers.broker.store import Store
    from workers.cli.progress import plain_progress
    from workers.config.settings import load
    from workers.recording import fork as forking
    from workers.recording.reader import reading

    load({}, redis.config)  # first, so that wrong settings are reported before the copy
    url = redis.url()
    config = flag = f" --config {redis.config}" if redis.config else ""
    with reading(source, redis.store) as store:
        state = store.state()
        if state is not None and state.retention is not None and state.retention.keep_input:
            flag += " --keep-input"
        name = to or _free_name(url, store.keys.feed)
        with Store(url, name) as target:
            entries = store.length(store.keys.input)
            try:
                copied = forking.fork(store, target, plain_progress(entries, "copied"))
            except (Unavailable, KeyboardInterrupt):
                note(f"to go on with the copy: online-svm fork {source} --to {name}{config}")
                raise
    note(f"{describe(copied)}; to answer: online-svm worker {name}{flag}")
    print(name)


def describe(fork: "Fork") -> str:
    """Return the numbers of copied and of missing entries as text.

    Examples
    --------
    >>> from workers.recording.fork import Fork
    >>> from workers.admin.erased_streams import Missing
    >>> describe(Fork(1, 1, Missing(0)))
    '1 entry copied'
    >>> describe(Fork(40, 100, Missing(2000)))
    '40 entries copied (60 were before); the new feed begins with these, as 2,000 older ones were \
answered and trimmed'
    >>> describe(Fork(40, 40, Missing(0, (b"7-0",))))
    '40 entries copied; the new feed lacks 1 erased entry (7-0)'
    """
    before = fork.total - fork.copied
    text = f"{counted(fork.copied, 'entry', 'entries')} copied"
    if before:
        text += f" ({before:,} {'was' if before == 1 else 'were'} before)"
    if trimmed := fork.missing.trimmed:
        older = "older one was" if trimmed == 1 else "older ones were"
        text += f"; the new feed begins with these, as {trimmed:,} {older} answered and trimmed"
    if fork.missing.erased:
        text += f"; the new feed lacks {fork.missing.erased_shown}"
    return text


def _free_name(url: str, feed: str) -> str:
    from workers.broker.store import Store

    number = 2
    while True:
        name = f"{feed}-{number}"
        with Store(url, name) as store:
            if not store.types():
                return name
        number += 1
