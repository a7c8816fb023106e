"""Scores of rows by the newest published state of a feed: nothing is recorded, no label follows.

A thread of its own computes them, so that the event loop goes on. It keeps the states of the feeds
that were asked last.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.types import Floats
from workers.broker.feed_reader import FeedReader
from workers.config.settings import Limits
from workers.errors import InvalidPublication
from workers.feed.state import Publication
from workers.feed.stored_settings import stored_settings
from workers.gateway.answers import full
from workers.gateway.refused import later
from workers.gateway.rows import objects, parsed, row_to_score
from workers.log import Logger
from workers.message.decode import decode
from workers.message.encode import encode_block, encode_rejected
from workers.push.ingest import Fields

MAX_SCORED_ROWS = 100
"""Largest number of rows in one request: they are computed within some milliseconds."""

RETRY_SECONDS = 1.0  # after which an unusable state is tried again

_ENTRY = b"0-1"  # stands for the ID that rows do not have

log = Logger("online_svm.gateway")


class Moment(NamedTuple):
    """A feed and its newest published state, read together."""

    n: int  # examples learned, as committed
    config_hash: str
    newest: Mapping[bytes, bytes]  # fields of the published state; empty without one


@dataclass(frozen=True, slots=True)
class LoadedState:
    """A published state that passed its checks."""

    publication: Publication
    state: FrozenPredictor
    limits: Limits  # of the feed
    feed: str
    logged_kinds: set[tuple[str, str]]  # changed kinds of features that were logged

    def score(self, rows: Sequence[Fields]) -> list[bytes]:
        """Return the answer to each row, as the worker would give it right after the state."""
        state, seq = self.state, self.publication.seq
        entries = [(_ENTRY, [_encoded(part) for part in fields]) for fields in rows]
        decoded = decode(entries, state.schema, self.limits)
        found = [b""] * len(rows)
        if decoded.accepted:
            self.log_changed_kinds(decoded.X)
            ids = [decoded.ids[i] for i in decoded.accepted]
            answers = encode_block(state.answer(decoded.X), [seq] * len(ids), ids)
            for i, answer in zip(decoded.accepted, answers, strict=True):
                found[i] = answer
        for i, error in decoded.rejected.items():
            found[i] = full(encode_rejected(error, seq, state.n, decoded.ids[i]))
        return found

    def log_changed_kinds(self, X: Floats) -> None:
        """Log each feature that comes in another kind than was learned, once a feed and kind."""
        for kind in self.state.changed_kinds(X):
            if (kind.feature, kind.came) not in self.logged_kinds:
                self.logged_kinds.add((kind.feature, kind.came))
                log.warning(kind.words, feed=self.feed)


class NewestState:
    """Keeps the newest usable state of one feed."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader = reader
        self._loaded: LoadedState | None = None
        self._unusable: tuple[str, float] | None = None  # name, and time of the last attempt
        self._told: set[tuple[str, str]] = set()

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()

    def current(self, moment: Moment) -> LoadedState | None:
        """Return the state to answer with, if any.

        If the newest state is unusable, the previous one stays, and grows stale. Raises
        BadConfiguration if this version cannot answer as the feed's worker does.
        """
        try:
            found = Publication.parse(moment.newest, self._reader.keys.published)
            if self._loaded is None or found != self._loaded.publication:
                self._load(found, moment)
        except (InvalidPublication, InvalidSnapshot) as error:
            self._mark_unusable(moment, str(error))
        # After a reset another feed has this name: a state of the old feed must not answer.
        loaded = self._loaded
        if loaded is None or loaded.publication.config_hash != moment.config_hash:
            return None
        return loaded if loaded.publication.n <= moment.n else None

    def _load(self, found: Publication, moment: Moment) -> None:
        if found.config_hash != moment.config_hash:
            return  # of a deleted feed with this name
        if self._unusable is not None:
            name, tried_at = self._unusable
            if name == found.name and time.monotonic() < tried_at + RETRY_SECONDS:
                return
        feed = self._reader.state()
        if feed is None or feed.pinned.config_hash != found.config_hash:
            return
        name = self._reader.keys.feed
        config, limits = stored_settings(name, feed.pinned)
        state = FrozenPredictor.restore(self._reader.published(found), config)
        if state.n != found.n:
            raise InvalidPublication(f"the state {found.name} is of n = {state.n}")
        if self._unusable is not None:
            log.info("a published state can be used again", state=found.name)
        self._loaded, self._unusable = LoadedState(found, state, limits, name, self._told), None

    def _mark_unusable(self, moment: Moment, reason: str) -> None:
        name = Publication.shown(moment.newest)
        if self._unusable is None or self._unusable[0] != name:
            log.warning("a published state cannot be used", state=name, reason=reason)
        self._unusable = name, time.monotonic()


class PublishedStates:
    """The newest states of the feeds that were asked last, at most `most`; for one thread."""

    def __init__(self, open_reader: Callable[[str], FeedReader], most: int) -> None:
        self._open_reader, self._most = open_reader, most
        self._states: OrderedDict[str, NewestState] = OrderedDict()

    def score(self, feed: str, moment: Moment, body: bytes, max_stale: int | None) -> bytes:
        """Return the response to a request with the rows in `body`.

        Raises Refused if the body has another form, or no state is new enough.
        """
        rows = scored_rows(parsed(body))
        if not moment.newest:
            words = "its worker has published no state: start it with --publish-every 100"
            raise later("state_missing", feed=feed, words=words)
        loaded = self._newest(feed).current(moment)
        if loaded is None:
            words = "its newest state cannot be used; the gateway's log says more"
            raise later("state_missing", feed=feed, words=words)
        used = loaded.publication
        behind = moment.n - used.n
        if max_stale is not None and behind > max_stale:
            raise later("state_stale", feed=feed, n=used.n, behind=behind)
        head = b'{"n":%d,"state":"%b","behind":%d' % (used.n, used.name.encode(), behind)
        return b'%b,"answers":[%b]}' % (head, b",".join(loaded.score(rows)))

    def close(self) -> None:
        """Drop all states."""
        while self._states:
            self._states.popitem()[1].close()

    def _newest(self, feed: str) -> NewestState:
        if feed not in self._states:
            self._states[feed] = NewestState(self._open_reader(feed))
        self._states.move_to_end(feed)
        while len(self._states) > self._most:
            self._states.popitem(last=False)[1].close()
        return self._states[feed]


def _encoded(part: bytes | str) -> bytes:
    return part.encode() if isinstance(part, str) else part


def scored_rows(found: Any) -> list[Fields]:
    """Return the fields of each row of a body. Raises Refused."""
    is_list = isinstance(found, list)
    rows = objects(found, MAX_SCORED_ROWS)
    return [row_to_score(sent, f"[{i}]." if is_list else "") for i, sent in enumerate(rows)]
