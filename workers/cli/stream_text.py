"""Entries of a feed's streams as lines of text, and as lines of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from online_svm.rejections import reason_of
from workers.broker.streams import payload
from workers.errors import StateLost
from workers.feed.codes import parse
from workers.reading.answers import message
from workers.reading.dates import is_of_this_era, moment
from workers.reading.events import event_line, event_of
from workers.reading.incidents import alarm_line, dates_of, raised_alarms
from workers.text import printable, printable_json

if TYPE_CHECKING:
    from workers.broker.streams import Entry
    from workers.reading.true_labels import TrueLabels


def answer_lines(page: "Sequence[Entry]", truths: "TrueLabels", as_json: bool) -> Iterator[str]:
    """Yield a line for each answer, with its true label."""
    messages = [message(entry) for entry in page]
    known = truths.of(page, messages)
    for entry, found, truth in zip(page, messages, known, strict=True):
        is_answer = isinstance(found, dict) and "status" in found
        data, fields = payload(entry), truth.fields(truths.with_features) if is_answer else {}
        yield (
            printable_json(with_fields(data, fields)) if as_json else printable(line(data, fields))
        )


def report_lines(page: "Sequence[Entry]", as_json: bool) -> Iterator[str]:
    """Yield a line for each report."""
    for entry in page:
        data = payload(entry)
        yield printable_json(data) if as_json else printable(line(data))


def alarm_lines(
    page: "Sequence[Entry]", committed: Mapping[bytes, int], as_json: bool
) -> Iterator[str]:
    """Yield a line for each alarm, with its commit time; for JSON, a line for each entry."""
    for entry in page:
        data = payload(entry)
        if as_json:
            yield printable_json(data)
            continue
        time = committed.get(entry[0])
        at = f"  committed {moment(time)} UTC" if time and is_of_this_era(time) else ""
        yield from (printable(f"{text}{at}") for text in _alarm_texts(entry[0], data))


def dead_letter_lines(page: "Sequence[Entry]", as_json: bool) -> Iterator[str]:
    """Yield a line for each rejected entry: ID, reason code, reason, size, and its first bytes."""
    for entry_id, flat in page:
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        shown = {"id": entry_id.decode()} | {
            printable(name): value.decode(errors="backslashreplace")
            for name, value in fields.items()
        }
        if b"about" in fields:
            shown["reason"] = reason_of(_parsed(fields[b"about"]))
        if as_json:
            yield printable_json(orjson.dumps(shown))
            continue
        code, reason, size, head = (shown.get(k, "") for k in ("code", "reason", "size", "head"))
        yield printable(f"{shown['id']}  {code}: {reason}  {size} bytes: {head[:60]!r}")


def event_lines(page: "Sequence[Entry]", as_json: bool) -> Iterator[str]:
    """Yield a line for each event; the JSON has the ID of its entry, which holds the time."""
    for entry in page:
        data = payload(entry)
        event = event_of(entry[0], message(entry))
        if event is None:
            yield printable(_foreign(data))
        elif as_json:
            yield printable_json(with_fields(data, {"id": entry[0].decode()}))
        else:
            yield printable(event_line(event))


def _alarm_texts(entry_id: bytes, data: bytes) -> list[str]:
    try:
        found = raised_alarms(entry_id, _parsed(data))
        return [alarm_line(raised.alarm, dates_of(found)) for raised in found]
    except StateLost:
        return [_foreign(data)]


def line(data: bytes, truth: Mapping[str, Any] | None = None) -> str:
    """Return an answer or a report as a line of text; `truth` is from `Truth.fields`."""
    found = _parsed(data)
    try:
        return _report(found) if "scored" in found else _answer(found, truth or {})
    except (TypeError, ValueError, LookupError, AttributeError):
        return _foreign(data)


def _parsed(data: bytes) -> Any:
    try:
        return parse(data)
    except ValueError:
        return None


def _foreign(data: bytes) -> str:
    return f"not of this program: {data[:200].decode(errors='backslashreplace')}"


def with_fields(data: bytes, fields: dict[str, Any]) -> bytes:
    """Return a payload with fields appended, and the sentence of the case that it is about."""
    found = _parsed(data)
    if not (isinstance(found, dict) and data.endswith(b"}")):
        return data
    if "about" in found:
        fields = {"reason": found["reason"]} | fields
    return data[:-1] + b"," + orjson.dumps(fields)[1:] if fields else data


def _answer(message: dict[str, Any], truth: Mapping[str, Any]) -> str:
    seq = f"{message['seq']:>10,}"
    if message["status"] == "rejected":
        return f"{seq}  rejected: {message['code']}: {message['reason']}"
    if message["status"] == "duplicate":
        return f"{seq}  duplicate: id {message['id']!r} was answered at {message['first']:,}"
    if message["status"] == "label":
        return f"{seq}  label: {message['label']} of id {message['example']!r} {message['done']}"
    if message["probability"] is None:  # no class is known; the reason says so
        return f"{seq}  {message['reason']}{_true(truth)}{_features(truth)}"
    maps = "".join(f"  {name} {_by_map(message, name)}" for name in message["maps"])
    action = message.get("action")
    cost = f" at {message['expected_cost']:.3g}" if "expected_cost" in message else ""
    act = "" if action is None else f"  action {action}{cost}"
    if message.get("label_wanted"):
        act += f"  label wanted, for {1.0 / message['label_probability']:,.0f} examples"
    note = "" if message["reason"] is None else f" ({message['reason']})"
    return (
        f"{seq}  {message['label']}  {message['probability']:.3f} "
        f"[{message['lower']:.3f}, {message['upper']:.3f}]{act}{_true(truth)}{maps}  "
        f"{message['guarantee']}{note}{_features(truth)}"
    )


def _true(truth: Mapping[str, Any]) -> str:
    if truth.get("true_label") is None:
        return ""
    verdict = {None: "", True: "right, ", False: "wrong, "}[truth["is_right"]]
    return f"  {verdict}the label is {truth['true_label']}"


def _features(truth: Mapping[str, Any]) -> str:
    sent = truth.get("features") or ()
    shown = (f"{k}={v}" for k, v in sent.items()) if isinstance(sent, dict) else map(str, sent)
    return f"  {' '.join(shown)}" if sent else ""


def _by_map(message: dict[str, Any], name: str) -> str:
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
