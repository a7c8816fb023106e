"""The true labels of answered examples, joined from the input by the ID of the answer."""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from workers.broker.streams import pairs_of
from workers.feed.pinned_config import Groups
from workers.feed.position import parse_id, previous_id
from workers.reading.answers import answer, message, stored_values

if TYPE_CHECKING:
    from workers.broker.feed_reader import FeedReader
    from workers.broker.streams import Entry

Features = list[Any] | dict[str, Any]

ANSWERED = ("ok", "warming")
"""Status of answers to accepted examples: a label in their entry was learned."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The true label and the features of an answered example, as far as they are known."""

    is_kept: bool = False  # whether its input entry is still kept; else nothing is known
    label: str | None = None  # as the feed spells it; None if none was learned
    is_right: bool | None = None  # see `is_right`
    features: Features | None = None  # as they were sent; None unless requested

    def fields(self, with_features: bool) -> dict[str, Any]:
        """Return the fields that are added to an answer."""
        added = {"true_label": self.label, "is_right": self.is_right}
        return added | ({"features": self.features} if with_features else {})


class TrueLabels:
    """Reads the true labels of a feed's answers, page by page, while the input is kept.

    `with_late` adds delayed labels: it first reads all kept answers for them.
    """

    def __init__(
        self, store: "FeedReader", with_features: bool = False, with_late: bool = False
    ) -> None:
        self._store, self.with_features, self._with_late = store, with_features, with_late
        self._late: dict[str, str] = {}
        self._begun = False
        self._spelled: Callable[[str], str | None] = _as_sent

    def of(
        self,
        entries: "Sequence[Entry]",
        messages: Sequence[Any],
        given: "Sequence[Entry] | None" = None,
    ) -> Iterator[Truth]:
        """Yield the truth of each answer.

        Entries of `out` are in the order of their IDs, with their parsed payloads. `given` is the
        input of the feed from the first to the last of them, if the caller has read it.
        """
        if entries and not self._begun:  # not in __init__: the feed may not have begun by then
            self._begin()
        inputs: Iterator[Entry] = iter(given or ())
        if entries and given is None:
            inputs = self._inputs(entries[0][0], entries[-1][0])
        sent = next(inputs, None)
        for (entry_id, _), parsed in zip(entries, messages, strict=True):
            while sent is not None and parse_id(sent[0]) < parse_id(entry_id):
                sent = next(inputs, None)
            is_kept = sent is not None and sent[0] == entry_id
            yield self._truth(sent[1], parsed) if sent is not None and is_kept else Truth()

    def _begin(self) -> None:
        """Find how this feed spells labels, and its delayed labels."""
        settings = stored_values(self._store)
        self._spelled, self._begun = _spelling(settings), True
        if self._with_late and settings.get("predictor", {}).get("horizon"):
            self._late = _late_labels(self._store)

    def _inputs(self, first: bytes, last: bytes) -> "Iterator[Entry]":
        for page in self._store.pages(self._store.keys.input, previous_id(first), last):
            yield from page

    def _truth(self, flat: Sequence[bytes], message: Any) -> Truth:
        if not isinstance(message, dict) or message.get("status") not in ANSWERED:
            return Truth(is_kept=True)
        fields = pairs_of(flat)
        label = self._spelled(fields[b"y"].decode(errors="replace")) if b"y" in fields else None
        label = self._late.get(message.get("id", ""), label)
        return Truth(
            is_kept=True,
            label=label,
            is_right=is_right(message, label),
            features=features_of(fields) if self.with_features else None,
        )


def is_right(answer: dict[str, Any], label: str | None) -> bool | None:
    """Return whether an answer predicted a label; None if either is missing."""
    predicted = answer.get("label")
    return None if label is None or predicted is None else predicted == label


def labelled_answers(store: "FeedReader") -> "Iterator[tuple[Entry, dict[str, Any], str]]":
    """Yield each kept prediction with a known label: its entry, its parsed payload, the label.

    StateLost: an entry of the output stream is no answer.
    """
    last = store.last_entries(store.keys.out, 1)
    truths = TrueLabels(store, with_late=True)
    for page in store.pages(store.keys.out, b"0-0", last[0][0] if last else b"0-0"):
        messages = [answer(entry) for entry in page]
        for entry, parsed, truth in zip(page, messages, truths.of(page, messages), strict=True):
            if truth.label is not None and parsed.get("status") == "ok":
                yield entry, parsed, truth.label


def _late_labels(store: "FeedReader") -> dict[str, str]:
    """Return the newest delayed label of each id, from the answers to label entries."""
    found = {}
    for page in store.pages(store.keys.out, b"0-0"):
        for entry in page:
            parsed = message(entry)
            if not isinstance(parsed, dict) or parsed.get("status") != "label":
                continue
            example, label = parsed.get("example"), parsed.get("label")
            if isinstance(example, str) and isinstance(label, str):
                found[example] = label
    return found


def _spelling(settings: Groups) -> Callable[[str], str | None]:
    """Return the function that spells a label as the feed does: an integer label `+1` is `1`."""
    if settings.get("predictor", {}).get("labels") != "integer":
        return _as_sent
    # Imported here: only feeds with integer labels need it.
    from online_svm.config import PredictorConfig
    from online_svm.stream.schema import FeatureSchema

    return FeatureSchema(PredictorConfig(labels="integer")).label


def _as_sent(label: str) -> str | None:
    return label


def features_of(fields: dict[bytes, bytes]) -> Features | None:
    """Return the features of an accepted entry; None if they are not valid JSON."""
    if b"x" not in fields:
        raw = fields.get(b"xb", b"")
        values = struct.unpack(f"<{len(raw) // 8}d", raw[: len(raw) // 8 * 8])
        return [None if math.isnan(value) else value for value in values]
    try:
        found = orjson.loads(fields[b"x"])
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, list | dict) else None
