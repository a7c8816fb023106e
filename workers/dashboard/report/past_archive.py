"""A past run as an archive has it."""

from collections.abc import Iterator
from typing import Any

from workers.dashboard.excerpt import Axis, Excerpt
from workers.dashboard.feed_view import MOST_ANSWERS, ShownAnswer, bounded
from workers.dashboard.report.past_feed import MOST_ALARMS, Marks, NothingKept, Thinned
from workers.dashboard.reports import parsed
from workers.feed.position import previous_id
from workers.history.archive.reader import Archive
from workers.message.compact.decode import parse
from workers.reading.alarms import known_alarms
from workers.reading.incidents import incidents
from workers.reading.true_labels import ANSWERED, Truth, features_of


def read_archive(
    archive: Archive, since: float | None = None, until: float | None = None, axis: Axis = "n"
) -> Excerpt:
    """Return what an archive holds of a span, as `past_feed.read_past` does of a feed.

    Raises
    ------
    NothingKept
        If it holds nothing of it.
    """
    after = b"0-0" if since is None else previous_id(b"%d-0" % since)
    upto = None if until is None else b"%d-18446744073709551615" % until
    last = archive.tail("alarms", ("payload",), MOST_ALARMS, after, upto)
    alarms = known_alarms(_messages(last))[-MOST_ALARMS:]
    reports, marks = Thinned(), Marks(alarms)
    for page in archive.pages("reports", ("payload",), after, upto):
        told = list(_messages(page))
        reports.add(parsed(told))
        marks.add(told)
    answers = _answers(archive, after, upto)
    if not reports.kept and not answers:
        raise NothingKept(
            f"{archive.directory}: holds no answers and no reports of this time: choose another "
            "--since or --until"
        )
    return Excerpt(
        archive.identity.feed, axis, reports.kept, answers, [], alarms,
        incidents=incidents(alarms, marks.kept),
    )  # fmt: skip


def _answers(archive: Archive, after: bytes, upto: bytes | None) -> list[ShownAnswer]:
    """Return the last answers of a span, with the labels and features that are archived."""
    rows = archive.tail("answers", ("payload",), MOST_ANSWERS, after, upto)
    if not rows:
        return []
    before, last = previous_id(rows[0][0]), rows[-1][0]
    features = {
        at: features_of(dict(zip(fields[::2], fields[1::2], strict=False)))
        for page in archive.inputs(before, last)
        for at, fields in page
    }
    own: dict[bytes, str] = {}
    late: dict[str, str] = {}
    for page in archive.pages("labels", ("id", "label", "is_late"), before):
        for at, (example, label, is_late) in page:
            if is_late:
                late[example] = label
            else:
                own[at] = label
    found = []
    for at, message in _messages(rows):
        if isinstance(message, dict):
            label = late.get(message.get("id") or "", own.get(at))
            said = message.get("label")
            is_right = None if label is None or said is None else said == label
            given = features.get(at) if message.get("status") in ANSWERED else None
            truth = Truth(at in features, label, is_right, given)
            found.append(ShownAnswer(at, message, bounded(truth)))
    return found


def _messages(rows: list[tuple[bytes, tuple[Any, ...]]]) -> Iterator[tuple[bytes, Any]]:
    for at, (text,) in rows:
        try:
            yield at, parse(text.encode())
        except ValueError:
            yield at, None
