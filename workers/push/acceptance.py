"""Check entries before they are sent, as the worker of their feed will read them."""

from collections.abc import Sequence

import orjson
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.stream.schema import FeatureSchema
from workers.broker.feed_reader import FeedReader
from workers.config.settings import Limits
from workers.errors import AccessDenied
from workers.message.decode import decode
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
