"""Read what belongs to answers: one commit made it visible together with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workers.broker.batch_size import Entry
from workers.broker.store import Store
from workers.feed.position import parse_id
from workers.feed.state import FeedState
from workers.history.archive import rows
from workers.history.archive.rows import Row
from workers.reading.answers import answer, payload
from workers.reading.true_labels import TrueLabels

MOST_INPUT = 1 << 24
"""Bytes of input that are read at once, about: answers are small, and their input may not be."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Some answers, and the rows of all that belongs to them.

    Attributes
    ----------
    ids : list of bytes
        Of the answers.
    messages : list of dict
        The answers.
    given : list of bytes
        IDs of their input, as far as it is kept.
    rows : dict of str to list of Row
        By kind.
    """

    ids: list[bytes]
    messages: list[dict[str, Any]]
    given: list[bytes]
    rows: dict[str, list[Row]]


class Gatherer:
    """Reads from one feed.

    Parameters
    ----------
    store : Store
    state : FeedState

    Attributes
    ----------
    reads_input : bool
        Whether the feed has input of its own: a combination has none.
    """

    def __init__(self, store: Store, state: FeedState) -> None:
        self._store, self._truths = store, TrueLabels(store)
        self.reads_input = "join" not in json.loads(state.agreement.config)

    def gather(self, after: bytes, page: Sequence[Entry]) -> Gathered:
        """Return the first answers of a page, and what belongs to them: all, or a bound of input.

        Parameters
        ----------
        after : bytes
            The answer before the page.
        page : sequence of entries
            Answers; at least one.
        """
        page, given = self._with_input(after, page) if self.reads_input else (page, None)
        messages, keys = [answer(entry) for entry in page], self._store.keys
        truths = self._truths.of(page, messages, given)
        labels = (
            rows.of_label(entry[0], message, truth)
            for entry, message, truth in zip(page, messages, truths, strict=True)
        )
        found = {
            "input": [rows.of_input(entry) for entry in given or ()],
            "labels": [row for row in labels if row is not None],
            "reports": [
                rows.of_report(entry[0], payload(entry), answer(entry))
                for entry in self._beside(keys.met, after, page)
            ],
            "alarms": [
                rows.of_alarm(entry[0], payload(entry))
                for entry in self._beside(keys.alarms, after, page)
            ],
            "answers": [
                rows.of_answer(entry[0], payload(entry), message)
                for entry, message in zip(page, messages, strict=True)
            ],
        }
        ids = [entry[0] for entry in page]
        return Gathered(ids, messages, [entry[0] for entry in given or ()], found)

    def _with_input(
        self, after: bytes, page: Sequence[Entry]
    ) -> tuple[Sequence[Entry], list[Entry]]:
        """Return a page and its input; where that is large, the first answers and theirs."""
        found, size = list[Entry](), 0
        for some in self._store.pages(self._store.keys.input, after, page[-1][0]):
            found += some
            size += sum(len(part) for _, fields in some for part in fields)
            last = parse_id(found[-1][0])
            first = [entry for entry in page if parse_id(entry[0]) <= last]
            if size >= MOST_INPUT and first:
                return first, found
        return page, found

    def _beside(self, stream: str, after: bytes, page: Sequence[Entry]) -> list[Entry]:
        return [entry for some in self._store.pages(stream, after, page[-1][0]) for entry in some]
