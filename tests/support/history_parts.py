"""Workers, a combination and a consumer inside one process, and what a feed came to."""

import itertools
from dataclasses import dataclass
from hashlib import sha256

import redis
from history_modes import FEEDS, GROUP, JOIN_WINDOW, SECOND, TARGET, entries_of
from pure_replay import replay
from session_steps import InlineRefits, OwnRefits, assembled
from world import drain, push

from online_svm.predictor.combiner import CombinerConfig
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import Fenced
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import pin_groups
from workers.feed.position import Position, parse_id
from workers.runner.combination import JoinSettings
from workers.session.join.session import JoinedSession, JoinSetup
from workers.session.join.sources import Source
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


class Combination:
    def __init__(self, url, batch):
        self._stores = [impatient(Store(url, feed, block_ms=1)) for feed in FEEDS]
        self.target = impatient(Store(url, TARGET, block_ms=1))
        self.target.reads_input = False
        settings = CombinerConfig(classes=("a", "b"))
        joined = JoinSettings(feeds=FEEDS, join_window=JOIN_WINDOW)
        setup = JoinSetup(
            self.target, [Source(store) for store in self._stores], settings, JOIN_WINDOW,
            pin_groups({"combination": settings, "join": joined}), "history", batch,
            may_create=self.target.state() is None,
        )  # fmt: skip
        self.session = JoinedSession(setup)
        self._take_over()

    def advance(self):
        """Answer a batch, or confirm the last one; return whether there was anything to do."""
        self._take_over()
        if not self.session.may_answer():
            return True
        self.session.input.restart_read()
        rows = self.session.next_now(1 << 20)
        if rows:
            self.session.answer(rows)
        else:
            self.session.finish_commit()
        return bool(rows) or not self.session.is_spent

    def _take_over(self):
        while not self.session.recover_step():
            pass

    def abandon(self):
        for store in (self.target, *self._stores):
            store.close()


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

    def acknowledge(self, upto=None):
        limit = None if upto is None else parse_id(upto)
        done = [entry for entry in self._pending if limit is None or parse_id(entry) <= limit]
        if done:
            self._client.xack(self._out, GROUP, *done)

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


def found_in(url, mode, read=None):
    """Return what is left of each feed of a history."""
    feeds = [*FEEDS, TARGET] if "combine" in mode else FEEDS[:1]
    return {feed: _left(url, feed, read if feed == FEEDS[0] else None) for feed in feeds}


def digest_of(found):
    digests = [left.position.digest for left in found.values()]
    return (digests[0] if len(digests) == 1 else sha256(b"".join(digests)).digest()).hex()


def alarms_in(found):
    return sum(len(left.alarms) for left in found.values())


def difference(found, expected):
    """Return in one line what differs first, or nothing."""
    for feed, left in expected.items():
        for name in ("out", "met", "alarms", "dlq"):
            here, there = getattr(found[feed], name), getattr(left, name)
            for mine, wanted in zip(here, there, strict=False):
                if mine != wanted:
                    return f"{name} of {feed}: {mine!r}, not {wanted!r}"
            if len(here) != len(there):
                return f"{name} of {feed}: {len(here)} entries, not {len(there)}"
        if found[feed].position != left.position:
            return f"{feed}: {found[feed].position}, not {left.position}"
    return ""


def uninterrupted(mode, seed, count, url):
    """Return what is left where nothing happens, and no consumer holds the feed back."""
    with Store(url, FEEDS[0]) as store:
        store.call("FLUSHDB")
    settings = {
        FEEDS[0]: mode.settings(batch=64, downstream="trim", retain_out=10**6),
        FEEDS[1]: WorkerSettings(**SECOND),
    }
    for feed, entries in entries_of(mode, seed, count).items():
        worker = Worker(url, feed, settings[feed])
        try:
            push(worker.store, entries)
            drain(worker.session, len(entries))
            *_, (replayed, _) = replay(
                settings[feed].predictor, entries, settings[feed].limits, size=64
            )
            assert worker.session.position == replayed.after
        finally:
            worker.abandon()
    if "combine" in mode:
        combination = Combination(url, batch=64)
        try:
            while combination.advance():
                pass
            assert combination.session.position.seq == count, combination.session.position
        finally:
            combination.abandon()
    return found_in(url, mode)


def _left(url, feed, read):
    with Store(url, feed, retry_timeout=20.0) as store:
        keys = store.keys
        out = {entry[0]: entry[1][1] for entry in store.call("XRANGE", keys.out, "-", "+")}
        for entry_id, payload in out.items():
            assert read is None or read.get(entry_id, payload) == payload
        out = sorted((out | (read or {})).items(), key=lambda entry: parse_id(entry[0]))
        others = (store.call("XRANGE", key, "-", "+") for key in keys.outputs[1:])
        state = store.state()
        assert state is not None, f"{feed} is gone"
        flat = (tuple((entry[0], *entry[1]) for entry in entries) for entries in others)
        return Left(state.position, tuple(out), *flat)
