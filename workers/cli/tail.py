"""`tail`: show the last answers of a feed."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workers.cli.common import Config, Feed, Json, Redis, feed_store, note
from workers.plural import counted

if TYPE_CHECKING:
    from workers.broker.batch_size import Entry
    from workers.broker.store import Store
    from workers.reading.true_labels import TrueLabels


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
    features: Annotated[
        bool, typer.Option("--features", help="Show the features too, as they were sent.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the payloads as they are stored, and nothing else.")
    ] = False,
) -> None:
    """Show the last answers of a feed, with the label that was learned and whether it was right.

    --json prints the payloads with true_label and is_right added. Both are null where the entry
    had no label, and where its input was trimmed since (a worker with --keep-input keeps it).
    """
    from workers.reading.answers import check_known
    from workers.reading.registry import require
    from workers.reading.true_labels import TrueLabels

    with feed_store(feed, redis, config) as store:
        if not follow:
            require(store)
        if not raw:
            check_known(store)
        _tell_if_unanswered(store)
        key = store.keys.out if stream == "out" else store.keys.met
        truths = TrueLabels(store, features) if stream == "out" and not raw else None
        for page in pages(store, key, count, follow):
            for text in _lines(page, truths, json, raw):
                print(text)
            if follow:
                sys.stdout.flush()


def _lines(
    page: "Sequence[Entry]", truths: "TrueLabels | None", json: bool, raw: bool
) -> Iterator[str]:
    """Yield the line to print for each entry."""
    from workers.printable import printable, printable_json
    from workers.reading.answers import payload

    stored = [payload(entry) for entry in page]
    if raw:
        yield from (data.decode(errors="backslashreplace") for data in stored)
        return
    known = _known(page, stored, truths)
    for data, fields in zip(stored, known, strict=True):
        yield printable_json(_added(data, fields)) if json else printable(line(data, fields))


def _known(
    page: "Sequence[Entry]", stored: list[bytes], truths: "TrueLabels | None"
) -> list[dict[str, Any]]:
    """Return the fields to add to each answer."""
    if truths is None:
        return [{}] * len(page)
    found = truths.of(page, [_parsed(data) for data in stored])
    return [truth.fields(truths.with_features) for truth in found]


def _parsed(data: bytes) -> Any:
    """Return the payload as an object, an answer as in the full form; None if it is no message."""
    from workers.message.stored import parse

    try:
        return parse(data)
    except ValueError:
        return None


def _added(data: bytes, fields: dict[str, Any]) -> bytes:
    """Return a payload with fields added at its end; the bytes before them are unchanged.

    A compact answer is given as in the full form.

    Examples
    --------
    >>> _added(b'{"status":"ok"}', {"true_label": "a"})
    b'{"status":"ok","true_label":"a"}'
    """
    import orjson

    from workers.message.compact.form import NAME

    message = _parsed(data)
    if not isinstance(message, dict) or "status" not in message or not data.endswith(b"}"):
        return data
    if message.get("payload") == NAME:
        data = orjson.dumps(message)
    return data[:-1] + b"," + orjson.dumps(fields)[1:] if fields else data


def line(data: bytes, truth: Mapping[str, Any] | None = None) -> str:
    """Return a payload as a line of text, with the true label if it is known.

    Examples
    --------
    >>> line(b'{"status":"rejected","seq":3,"n":3,"code":"label","reason":"y is empty"}')
    '         3  rejected: label: y is empty'
    >>> line(b"<html>")
    'not of this program: <html>'
    """
    message = _parsed(data)
    try:
        return _report(message) if "scored" in message else _answer(message, truth or {})
    except (TypeError, ValueError, LookupError, AttributeError):
        return f"not of this program: {data[:200].decode(errors='backslashreplace')}"


def _answer(message: dict[str, Any], truth: Mapping[str, Any]) -> str:
    seq = f"{message['seq']:>10,}"
    if message["status"] == "rejected":
        return f"{seq}  rejected: {message['code']}: {message['reason']}"
    if message["status"] == "duplicate":
        return f"{seq}  duplicate: id {message['id']!r} was answered at {message['first']:,}"
    if message["status"] == "label":
        return f"{seq}  label: {message['label']} of id {message['example']!r} {message['done']}"
    if message["status"] == "warming":  # the reason says so
        return f"{seq}  {message['reason']}{_true(truth)}{_features(truth)}"
    maps = "".join(f"  {name} {_by_map(message, name)}" for name in message["maps"])
    note = "" if message["reason"] is None else f" ({message['reason']})"
    return (
        f"{seq}  {message['label']}  {message['probability']:.3f} "
        f"[{message['lower']:.3f}, {message['upper']:.3f}]{_true(truth)}{maps}  "
        f"{message['guarantee']}{note}{_features(truth)}"
    )


def _true(truth: Mapping[str, Any]) -> str:
    """Return the true label, and whether the answer was right.

    Examples
    --------
    >>> _true({"true_label": "ham", "is_right": False}), _true({"true_label": None})
    ('  wrong, the label is ham', '')
    """
    if truth.get("true_label") is None:
        return ""
    told = {None: "", True: "right, ", False: "wrong, "}[truth["is_right"]]
    return f"  {told}the label is {truth['true_label']}"


def _features(truth: Mapping[str, Any]) -> str:
    """Return the features as text, if they were requested.

    Examples
    --------
    >>> _features({"features": {"age": 39}}), _features({"features": [0.5, 1]}), _features({})
    ('  age=39', '  0.5 1', '')
    """
    sent = truth.get("features") or ()
    shown = (f"{k}={v}" for k, v in sent.items()) if isinstance(sent, dict) else map(str, sent)
    return f"  {' '.join(shown)}" if sent else ""


def _by_map(message: dict[str, Any], name: str) -> str:
    """Return the probability of the predicted label by one map, with its interval if any.

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
    if message["headline"]["predicted"]["accuracy"] is None:
        return f"{head}  nothing scored yet"
    own = message["headline"]["predicted"]
    return (
        f"{head}  accuracy {own['accuracy']:.3f}  probability {own['probability']:.3f} "
        f"[{own['lower']:.3f}, {own['upper']:.3f}]  log loss {message['venn']['log_loss']:.3f}"
    )


def _tell_if_unanswered(store: "Store") -> None:
    """Print a note if input is waiting but nothing was answered yet."""
    if not store.length(store.keys.out) and (waiting := store.length(store.keys.input)):
        note(f"no answers yet: {counted(waiting, 'entry waits', 'entries wait')} for a worker")


def pages(store: "Store", key: str, count: int, follow: bool) -> "Iterator[Sequence[Entry]]":
    """Yield the last entries of a stream; with `follow`, also the new ones as they arrive."""
    from workers.reading.answers import newest

    last = b"0-0"
    for page in (newest(store, key, count),) if count else store.pages(key, last):
        if page:
            last = page[-1][0]
            yield page
    sys.stdout.flush()
    while follow:
        for _, page in store.call("XREAD", "BLOCK", 1000, "STREAMS", key, last) or ():
            last = page[-1][0]
            yield page
