"""An erasure may end at any call to Redis: the feed can go on, and the same command finishes it."""

import pytest
from recorded_feed import (
    KEPT,
    PERSON,
    Cut,
    CutStore,
    answering,
    entry,
    push,
    push_with_person,
    stored,
    stream,
    traces_in,
)

from workers.admin.erased_streams import erased_of
from workers.admin.verify import verify
from workers.recording.erasure import erase

CHANGES = KEPT | {"horizon": 20}


def saved(store):
    return {key: store.call("DUMP", key) for key in store.call("KEYS", "*")}


def put_back(store, keys):
    store.call("FLUSHALL")
    for key, data in keys.items():
        store.call("RESTORE", key, 0, data)


@pytest.mark.slow
def test_wherever_it_ends_the_feed_goes_on_and_the_next_one_finishes_it(own_redis, feed):
    with answering(own_redis.url, feed, **CHANGES) as (store, answer, _):
        store.call("CONFIG", "SET", "rdbcompression", "no")  # DUMP shows the bytes
        push_with_person(store)
        at, fields = entry(100)
        store.call("XADD", store.keys.input, at, "x", fields["x"], "id", PERSON)  # waits
        answer()
    with CutStore(own_redis.url, feed) as store:
        before, nth, erased = saved(store), 0, False
        while not erased:
            nth += 1
            put_back(store, before)
            store.left = nth
            try:
                erase(store, PERSON)
                erased = True
            except Cut:
                pass
            store.left = 10**9
            assert verify(store).is_identical, nth
            if nth % 7 == 0:  # a worker takes it over as it is
                with answering(own_redis.url, feed, **CHANGES) as (_, answer, _session):
                    push(store, 101, 104)
                    answer()
                assert verify(store).is_identical, nth
            if erased_of(store).is_unfinished or traces_in(stored(store)):
                erase(store, PERSON)
            assert not erased_of(store).is_unfinished
            assert traces_in(stored(store)) == [], nth
            seqs = {at for at, _ in stream(store, "out")}
            assert entry(50)[0].encode() not in seqs
        assert nth > 30
