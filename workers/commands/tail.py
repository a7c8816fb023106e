"""`tail` and its text form of an answer."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workers.commands.common import Config, Feed, Json, Redis, feed_store, note
from workers.counts import counted

if TYPE_CHECKING:
    from workers.store import Store


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tail")(tail)


def tail(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="Answers to begin with; 0 is all kept.")
    ] = 10,
    stream: Annotated[
        Literal["out", "met"], typer.Option(help="Answers, or validity reports.")
    ] = "out",
) -> None:
    """Show the last answers of a feed; --json prints the payloads as they are stored."""
    from workers.feeds import payload, require

    with feed_store(feed, redis, config) as store:
        if not follow:
            require(store)
        _tell_if_unanswered(store)
        key = store.keys.out if stream == "out" else store.keys.met
        for entry in _entries(store, key, count, follow):
            data = payload(entry)
            print(data.decode() if json else line(data), flush=follow)


def line(data: bytes) -> str:
    """Return a payload as a line for people.

    Examples
    --------
    >>> line(b'{"status":"rejected","seq":3,"n":3,"code":"label","reason":"y is empty"}')
    '         3  rejected: label: y is empty'
    """
    import orjson

    message = orjson.loads(data)
    if "venn" in message:
        return _report(message)
    seq = f"{message['seq']:>10,}"
    if message["status"] == "rejected":
        return f"{seq}  rejected: {message['code']}: {message['reason']}"
    if message["status"] == "duplicate":
        return f"{seq}  duplicate: id {message['id']!r} was answered at {message['first']:,}"
    if message["status"] == "warming":
        return f"{seq}  {message['reason']}"  # which says that it is warming up
    maps = "".join(f"  {name} {_by_map(message, name)}" for name in message["maps"])
    note = "" if message["reason"] is None else f" ({message['reason']})"
    return (
        f"{seq}  {message['label']}  {message['probability']:.3f} "
        f"[{message['lower']:.3f}, {message['upper']:.3f}]{maps}  {message['guarantee']}{note}"
    )


def _by_map(message: dict[str, Any], name: str) -> str:
    """Return what one map gives to the predicted label, with its interval if it has one.

    Examples
    --------
    >>> answer = {"label": "b", "classes": ["a", "b"], "maps": {"venn-abers": [0.25, 0.75]}}
    >>> _by_map(answer, "venn-abers")
    '0.750'
    >>> _by_map(answer | {"map_intervals": {"venn-abers": [[0.2, 0.3], [0.7, 0.8]]}}, "venn-abers")
    '0.750 [0.700, 0.800]'
    """
    label = message["classes"].index(message["label"])
    point = f"{message['maps'][name][label]:.3f}"
    intervals = message.get("map_intervals", {})
    if name not in intervals:
        return point
    lower, upper = intervals[name][label]
    return f"{point} [{lower:.3f}, {upper:.3f}]"


def _report(message: dict[str, Any]) -> str:
    head = f"{message['n']:>10,}  scored {message['scored']:,}"
    if message["venn"]["predicted"]["accuracy"] is None:
        return f"{head}  nothing scored yet"
    own = message["venn"]["predicted"]
    return (
        f"{head}  accuracy {own['accuracy']:.3f}  probability {own['probability']:.3f} "
        f"[{own['lower']:.3f}, {own['upper']:.3f}]  log loss {message['venn']['log_loss']:.3f}"
    )


def _tell_if_unanswered(store: "Store") -> None:
    """Say why there is nothing to show, where input waits and nothing was answered."""
    if not store.length(store.keys.out) and (waiting := store.length(store.keys.input)):
        note(f"no answers yet: {counted(waiting, 'entry waits', 'entries wait')} for a worker")


def _entries(store: "Store", key: str, count: int, follow: bool) -> Iterator[Sequence[Any]]:
    """Yield the last entries of a stream, and then, to follow, each that comes."""
    from workers.feeds import newest

    last = b"0-0"
    begin = (
        newest(store, key, count)
        if count
        else (entry for page in store.pages(key, b"0-0") for entry in page)
    )
    for entry in begin:
        last = entry[0]
        yield entry
    sys.stdout.flush()
    while follow:
        for entry in store.call("XREAD", "BLOCK", 1000, "STREAMS", key, last) or ():
            for found in entry[1]:
                last = found[0]
                yield found
