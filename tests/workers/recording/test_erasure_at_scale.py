"""A person is erased from a memory of 100,000 rows, and the rest stays as good as it was."""

import json
from itertools import compress

import numpy as np
import pytest
from recorded_feed import stored
from session_steps import shared_pool
from world import drain, session

from online_svm.config import PredictorConfig
from online_svm.memory.rows import key_of
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.feed.pinned_config import pinned_config
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.recording.backup import backup
from workers.recording.begin import RestorePoint, put_back
from workers.recording.erasure import erase

LEARNED, KEPT, NEXT = 97_000, 3_000, 5_000
"""Rows whose input is gone, rows whose input is kept, and rows after the erasure."""

PERSONS, PERSON = 200, "the-person"

CONFIG = PredictorConfig(classes=("a", "b"))


class History:
    """The rows of a stream, each of one of the persons; of `PERSON` or of all others."""

    def __init__(self, count):
        rng = np.random.default_rng(7)
        self.X = rng.normal(size=(count, 5)).round(6)
        signal = self.X[:, 0] + self.X[:, 1] * self.X[:, 2]
        persons = rng.integers(PERSONS, size=count)
        of_person = persons == 7
        self.ids = [PERSON if person == 7 else f"other-{person}" for person in persons]
        # The person's rows are labelled the other way round.
        above = (signal + rng.normal(size=count) > 0) ^ of_person
        self.y = ["b" if one else "a" for one in above]
        self.is_other = ~of_person

    def fields(self, begin, stop, chosen):
        """Return the fields of chosen rows as entries."""
        rows = zip(
            self.X[begin:stop].tolist(), self.y[begin:stop], self.ids[begin:stop], strict=True
        )
        return [
            ["x", json.dumps(x), "y", y, "id", i] for x, y, i in compress(rows, chosen[begin:stop])
        ]


def begun(store, history, chosen):
    """Let a feed learn the chosen rows up to `LEARNED`, then answer those whose input is kept."""
    with shared_pool().refitter(CONFIG) as refits:
        learned = OnlinePredictor(CONFIG, refits)
        at = np.flatnonzero(chosen[:LEARNED])
        learned.step_many(
            history.X[at], [history.y[i] for i in at], ids=[history.ids[i] for i in at]
        )
        body = bytes(RecentIds(0, False).prepend_to(learned.snapshot()))
    position = Position(b"1-0", len(at), learned.n, bytes(32))
    put_back(store, RestorePoint(0, pinned_config(CONFIG, Limits()), position, body))
    answered(store, history.fields(LEARNED, LEARNED + KEPT, chosen))


def answered(store, entries):
    """Push entries and answer them; return the log loss of the answers."""
    before = store.state().position.seq
    for i, fields in enumerate(entries, before + 10):
        store.call("XADD", store.keys.input, f"{i}-0", *fields)
    with shared_pool().refitter(CONFIG) as refits:
        running = session(store, batch=256, config=CONFIG, refits=refits)
        drain(running, before + len(entries), seconds=900.0)
        running.snapshot()
    last = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", len(entries))[::-1]
    found = [json.loads(entry[1][1]) for entry in last]
    hits = [one["label"] == fields[3] for one, fields in zip(found, entries, strict=True)]
    p = np.array([one["probability"] for one in found])
    return float(-np.log(np.where(hits, p, 1.0 - p)).mean())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_person_is_erased_from_a_hundred_thousand_rows(own_redis, feed, tmp_path, tell_line):
    """The next answers are as good as those of a feed that never had the person."""
    history, path = History(LEARNED + KEPT + NEXT), tmp_path / "feed.sqlite"
    later = history.fields(LEARNED + KEPT, LEARNED + KEPT + NEXT, history.is_other)
    with (
        Store(own_redis.url, feed, block_ms=20) as store,
        Store(own_redis.url, f"{feed}-without", block_ms=20) as without,
    ):
        store.call("CONFIG", "SET", "rdbcompression", "no")
        begun(store, history, np.ones(len(history.y), dtype=bool))
        begun(without, history, history.is_other)
        backup(store, path)
        traces = PERSON.encode(), key_of(PERSON).to_bytes(8, "little")

        def found():
            return [
                [trace in data for trace in traces] for data in (stored(store), path.read_bytes())
            ]

        assert found() == [[True, True], [True, True]]
        erase(store, PERSON, path)
        assert found() == [[False, False], [False, False]]
        losses = [answered(one, later) for one in (store, without)]
        tell_line(f"log loss of the next {len(later):,}: {losses}")
        assert found() == [[False, False], [False, False]]
        assert abs(losses[0] - losses[1]) < 0.002
