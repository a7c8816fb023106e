"""What a history leaves in Redis, and what an uninterrupted run leaves."""

from dataclasses import dataclass
from hashlib import sha256

from history_modes import FEEDS, SECOND, TARGET, entries_of
from history_parts import Combination, Worker
from world import drain, push

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.position import Position, parse_id


@dataclass(frozen=True)
class Left:
    """What one feed came to: its position, and its streams without those trimmed."""

    position: Position
    out: tuple
    met: tuple
    alarms: tuple
    dlq: tuple


def found_in(url, mode, read=None):
    """Return what is left of each feed of a history.

    Parameters
    ----------
    url : str
    mode : Mode
    read : dict from entry ID to payload, optional
        What a consumer read of the first feed before it was trimmed.
    """
    feeds = [*FEEDS, TARGET] if "combine" in mode else FEEDS[:1]
    return {feed: _left(url, feed, read if feed == FEEDS[0] else None) for feed in feeds}


def digest_of(found):
    """Return the digest of a history: of the feed, or of all that was combined."""
    digests = [left.position.digest for left in found.values()]
    return (digests[0] if len(digests) == 1 else sha256(b"".join(digests)).digest()).hex()


def alarms_in(found):
    """Return how many alarms are left of all feeds."""
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
    """Return what is left where nothing happens, and no consumer holds the feed back.

    The database of `url` is emptied first.
    """
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
        finally:
            worker.abandon()
    if "combine" in mode:
        _combine(url, count)
    return found_in(url, mode)


def _combine(url, count):
    combination = Combination(url, batch=64)
    try:
        while combination.advance():
            pass
        assert combination.session.position.seq == count, combination.session.position
    finally:
        combination.abandon()


def _left(url, feed, read):
    with Store(url, feed, patience=20.0) as store:
        keys = store.keys
        out = {entry[0]: entry[1][1] for entry in store.call("XRANGE", keys.out, "-", "+")}
        for entry_id, payload in out.items():
            assert read is None or read.get(entry_id, payload) == payload
        out = sorted((out | (read or {})).items(), key=lambda entry: parse_id(entry[0]))
        met, alarms, dlq = (store.call("XRANGE", key, "-", "+") for key in keys.outputs[1:])
        state = store.state()
        assert state is not None, f"{feed} is gone"
        return Left(
            state.position, tuple(out), tuple((e[0], *e[1]) for e in met),
            tuple((e[0], *e[1]) for e in alarms), tuple((e[0], *e[1]) for e in dlq),
        )  # fmt: skip
