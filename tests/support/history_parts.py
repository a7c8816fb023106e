"""Workers and a consumer inside one process, and what a feed came to."""

import itertools
from dataclasses import dataclass

import redis
from history_modes import FEED, GROUP, rows
from pure_replay import replay
from session_steps import InlineRefits, OwnRefits, assembled
from world import drain, push

from workers.broker.store import Store
from workers.errors import Fenced
from workers.feed.keys import FeedKeys
from workers.feed.position import Position, parse_id
from workers.session.preflight import open_store
from workers.stop import Stop

REPLY, PATIENCE = 0.15, 60.0
"""Seconds for one reply, and for Redis to come back."""


def impatient(store):
    """Let a store give up a reply soon, and Redis late."""
    for connection in (store._connection, store._reader):
        connection.timeout, connection.retry_timeout = REPLY, PATIENCE
    return store


class Worker:
    """A session with connections, and a refit process, of its own."""

    def __init__(self, url, feed, settings, timeout=60.0):
        """A refit process counts as hung after `timeout` seconds."""
        stop = Stop()
        self.store = impatient(open_store(feed, settings, url, stop))
        config = settings.predictor
        if config.lag:
            self._own = OwnRefits(config, timeout, stop)
            self.refits = self._own.refits
        else:
            self._own, self.refits = None, InlineRefits(config)
        given = (self.store, settings, self.refits, stop)
        try:
            self.session = assembled(*given, self.store.state() is None, writer="history")
        except BaseException:
            self.abandon()
            raise

    @property
    def refit_pid(self):
        return None if self._own is None else self._own.pid

    def abandon(self):
        """Leave it where it stands, as a kill does: what was sent is sent, nothing follows."""
        self.store.close()
        if self._own is not None:
            self._own.close()


class Consumer:
    """Reads the answers of a blocked feed through its group, and acknowledges what it has."""

    def __init__(self, url, feed):
        self._client, self._out = redis.Redis.from_url(url), FeedKeys(feed).out
        self.answers, self._pending, self._reads = {}, [], itertools.count()
        self._client.xgroup_create(self._out, GROUP, "0", mkstream=True)

    def read(self, count):
        """Read on, every fifth time under another name: it claims what the last one left."""
        name = f"consumer-{next(self._reads) // 5}"
        claimed = self._client.xautoclaim(self._out, GROUP, name, 0, count=1000)[1]
        replies = self._client.xreadgroup(GROUP, name, {self._out: ">"}, count)
        fresh = [entry for _, entries in replies for entry in entries]
        for entry_id, fields in [*claimed, *fresh]:
            before = self.answers.setdefault(entry_id, fields[b"p"])
            assert before == fields[b"p"], f"another answer under {entry_id}"
        self._pending = [entry[0] for entry in [*claimed, *fresh]]

    def acknowledge(self):
        if self._pending:
            self._client.xack(self._out, GROUP, *self._pending)

    def close(self):
        self._client.close()


def fenced(act, session):
    """Return whether a worker finds itself replaced when its session acts."""
    try:
        act(session)
    except Fenced:
        return True
    return False


@dataclass(frozen=True)
class Left:
    """What one feed came to: its position, and its streams without those trimmed."""

    position: Position
    out: tuple
    met: tuple
    alarms: tuple
    dlq: tuple

    @property
    def digest(self):
        return self.position.digest.hex()


def difference(found, expected):
    """Return in one line what differs first, or nothing."""
    for name in ("out", "met", "alarms", "dlq"):
        here, there = getattr(found, name), getattr(expected, name)
        for mine, wanted in zip(here, there, strict=False):
            if mine != wanted:
                return f"{name}: {mine!r}, not {wanted!r}"
        if len(here) != len(there):
            return f"{name}: {len(here)} entries, not {len(there)}"
    return (
        "" if found.position == expected.position else f"{found.position}, not {expected.position}"
    )


def uninterrupted(mode, seed, count, url):
    """Return what is left where nothing happens, and no consumer holds the feed back."""
    with Store(url, FEED) as store:
        store.call("FLUSHDB")
    settings = mode.settings(batch=64, downstream="trim", retain_out=10**6)
    entries = rows(mode, seed, count)
    worker = Worker(url, FEED, settings)
    try:
        push(worker.store, entries)
        drain(worker.session, len(entries))
        *_, (replayed, _) = replay(settings.predictor, entries, settings.limits, size=64)
        assert worker.session.position == replayed.after
    finally:
        worker.abandon()
    return found_in(url)


def found_in(url, read=None):
    """Return what is left of the feed of a history; `read` has answers that a consumer read."""
    with Store(url, FEED, retry_timeout=20.0) as store:
        keys = store.keys
        out = {entry[0]: entry[1][1] for entry in store.call("XRANGE", keys.out, "-", "+")}
        for entry_id, payload in out.items():
            assert read is None or read.get(entry_id, payload) == payload
        out = sorted((out | (read or {})).items(), key=lambda entry: parse_id(entry[0]))
        others = (store.call("XRANGE", key, "-", "+") for key in keys.outputs[1:])
        state = store.state()
        assert state is not None, f"{FEED} is gone"
        flat = (tuple((entry[0], *entry[1]) for entry in entries) for entries in others)
        return Left(state.position, tuple(out), *flat)
