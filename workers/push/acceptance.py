"""Check entries before they are sent, as the worker of their feed will read them."""

from collections.abc import Iterator, Sequence

import orjson
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.stream.schema import FeatureSchema
from workers.broker import commands
from workers.broker.feed_reader import FeedReader
from workers.config.settings import Limits
from workers.errors import AccessDenied
from workers.message.decode import decode
from workers.push.preview import TableFinding, warning
from workers.push.reading import BadSource

Fields = list[bytes | str]


class Acceptance:
    """Refuses entries that a feed with these settings must reject.

    Features that the feed has adopted from its examples are not known here: the first entry stands
    for them.
    """

    def __init__(self, predictor: PredictorConfig, limits: Limits) -> None:
        self._schema, self._limits = FeatureSchema(predictor), limits

    @classmethod
    def of_feed(cls, reader: FeedReader) -> "Acceptance | None":
        """Return the check for a feed; None if it has not begun, or its settings are not known."""
        try:
            stored = reader.state_field("config")
            groups = {} if stored is None else orjson.loads(stored)
            if not groups.keys() >= {"predictor", "limits"}:
                return None
            return cls(
                PredictorConfig.model_validate(groups["predictor"]),
                Limits.model_validate(groups["limits"]),
            )
        except (AccessDenied, ValidationError, orjson.JSONDecodeError):  # the worker tells it
            return None

    def check(self, entries: Sequence[Fields], before: int) -> None:
        """Raise BadSource, with the number of its row, if the feed must reject an entry.

        `before` rows are before the first entry.
        """
        sent = [[p.encode() if isinstance(p, str) else p for p in fields] for fields in entries]
        found = decode([(b"", fields) for fields in sent], self._schema, self._limits)
        for at, error in found.rejected.items():
            raise BadSource(f"row {before + at + 1:,}: the feed rejects it: {error.reason}")
        self._schema = found.schema


class AwaitedIds:
    """Counts labels with an id that no example waits with.

    That is known where the feed had answered all of its input before the first label.
    """

    def __init__(self, url: str, feed: str) -> None:
        self._url, self._feed = url, feed
        self._is_known: bool | None = None  # None before the first label
        self._sent, self._unknown, self._first = 0, 0, ""

    def check(self, entries: Sequence[Fields], _: int) -> None:
        """Count the entries."""
        ids = [str(fields[1]) for fields in entries]
        with FeedReader(self._url, self._feed) as reader:
            try:
                if self._is_known is None:
                    last = reader.newest_id(reader.keys.input)
                    self._is_known = reader.state_field("cursor") == last
                if not self._is_known:
                    return
                places = reader.call(*commands.fields(reader.keys.answered_ids, *ids))
            except AccessDenied:  # of a producer
                self._is_known = False
                return
        unknown = [id_ for id_, place in zip(ids, places, strict=True) if place is None]
        self._sent += len(ids)
        self._unknown += len(unknown)
        self._first = self._first or next(iter(unknown), "")

    def findings(self) -> Iterator[TableFinding]:
        """Yield a warning with the number of such labels."""
        if self._unknown:
            text = (
                f"no example waits with the id of {self._unknown:,} of {self._sent:,} labels, such "
                f"as {self._first[:40]!r}: the feed rejects them, unless they correct a learned "
                "label; write ids as the examples have them, so not 7.0 or 007 for 7"
            )
            yield warning("unknown_id", text)
