"""What a feed costs Redis: its outputs are kept by bytes, and level off near their bounds."""

import random

import pytest
from session_steps import assembled, refitter
from world import COUNT, SETTINGS, drain, push, rows

from workers.broker.store import Store
from workers.config.settings import WorkerSettings, load
from workers.errors import BadConfiguration
from workers.feed.position import START, Position, parse_id
from workers.feed.retention import Retention
from workers.feed.state import Commit, PinnedConfig, RejectedEntry
from workers.session.preflight import open_store
from workers.stop import Stop

AGREEMENT = PinnedConfig("{}", "00")
BOUND = 1 << 20


def commits(store, sizes, batch, before=START, epoch=1):
    """Write answers of these sizes, `batch` in a commit; yield after each commit.

    The input gets the entries that are answered, unless it has them.
    """
    for begin in range(0, len(sizes), batch):
        ids = [b"%d-0" % (before.seq + i + 1) for i in range(len(sizes[begin : begin + batch]))]
        last = parse_id(store.newest_id(store.keys.input))
        new = [(i, [b"x", b"[1]"]) for i in ids if parse_id(i) > last]
        store.append(store.keys.input, new)
        out = [b"x" * size for size in sizes[begin : begin + batch]]
        letters = [RejectedEntry(i, "label", "{}", 5, b"y" * 1000) for i in ids]
        after = Position(ids[-1], before.seq + len(ids), before.n, bytes(32))
        met = [(ids[-1], b"r" * 3000)]
        store.commit(Commit(epoch, before, after, ids, out, met, letters))
        before = after
        yield after


def used(store, key):
    return store.call("MEMORY", "USAGE", key, "SAMPLES", 0)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((145,), id="small"), pytest.param((60, 145, 720, 5000), id="mixed"),
        pytest.param((30_000,), id="a hundred classes"),
    ],
)  # fmt: skip
def test_memory_levels_off_near_the_bound_whatever_the_size_of_answers(redis_url, feed, sizes):
    told = Retention(out_bytes=BOUND, met_bytes=BOUND // 4, dlq_bytes=BOUND // 2)
    choose = random.Random(0)
    drawn = [choose.choice(sizes) for _ in range(5 * BOUND // (sum(sizes) // len(sizes)))]
    with Store(redis_url, feed, retention=told) as store:
        store.fence("tester", AGREEMENT)
        batch = max(1, min(256, BOUND // 32 // max(sizes)))
        found = []
        for after in commits(store, drawn, batch):
            if after.seq > len(drawn) // 2:
                found.append(used(store, store.keys.out))
            if len(found) % 40 == 39:
                assert used(store, store.keys.dlq) < 0.6 * BOUND
                assert used(store, store.keys.met) < 0.3 * BOUND
        assert min(found) > 0.6 * BOUND
        assert max(found) < 1.1 * BOUND
        assert store.length(store.keys.out) < len(drawn) / 2


def test_the_bound_holds_over_take_overs_after_every_few_commits(redis_url, feed):
    before, drawn = START, [500] * 12_000
    for part in range(0, len(drawn), 1000):
        with Store(redis_url, feed, retention=Retention(out_bytes=BOUND)) as store:
            epoch = store.fence("tester", AGREEMENT).epoch
            # The last of them is dropped with its reply unread, as by a kill.
            *_, before = commits(store, drawn[part : part + 1000], 100, before, epoch)
            assert used(store, store.keys.out) < 1.1 * BOUND
            first = store.call("XRANGE", store.keys.out, "-", "+", "COUNT", 1)[0][0]
            assert store.length(store.keys.out) == before.seq - int(first.split(b"-")[0]) + 1
    with Store(redis_url, feed) as store:
        assert used(store, store.keys.out) > 0.6 * BOUND


def test_a_commit_whose_reply_is_lost_is_counted_once(redis_url, feed):
    with Store(redis_url, feed, retention=Retention(out_bytes=BOUND)) as store:
        store.fence("tester", AGREEMENT)
        (first,) = commits(store, [100] * 10, 10)
        total = store.retained.kept.streams[0].total
        # The same batch once more: Redis says that it has it.
        list(commits(store, [100] * 10, 10))
        state = store.state()
        assert state.position.seq == first.seq
        assert state.kept.streams[0].total == total


def test_a_feed_is_counted_by_default_and_goes_on_with_another_bound(redis_url, feed):
    with Store(redis_url, feed, retention=Retention(out_bytes=0)) as store:
        store.fence("tester", AGREEMENT)
        *_, before = commits(store, [500] * 1000, 100)
        assert store.state().kept.streams[0].total == 0
        assert store.state().kept.streams[1].total > 0
    with Store(redis_url, feed, retention=Retention(out_bytes=BOUND)) as store:
        epoch = store.fence("tester", None).epoch
        kept = commits(store, [500] * 3000, 100, before, epoch)
        assert next(kept).seq == 1100
        assert store.length(store.keys.out) == 1100  # nothing is known of the size of the old ones
        list(kept)
        assert used(store, store.keys.out) < 1.1 * BOUND


def test_entries_and_bytes_are_bounded_together_as_the_settings_say(monkeypatch):
    assert Retention.of(load({})) == Retention()
    assert Retention.of(load({"retain_out": "5"})) == Retention(out=5)
    monkeypatch.setenv("ONLINE_SVM_RETAIN_BYTES", "8000")
    with pytest.raises(BadConfiguration, match="setting downstream: "):
        load({"downstream": "drop"})
    given = Retention.of(load({"downstream": "block"}))
    assert given == Retention(out_bytes=8000, met_bytes=2000, dlq_bytes=2000, is_held=True)


def test_a_worker_keeps_what_its_settings_say(embedded_url, feed):
    settings, stop = WorkerSettings(**SETTINGS, batch=7, retain_bytes=20_000), Stop()
    with open_store(feed, settings, embedded_url, stop) as store, refitter(settings) as refits:
        push(store, rows())
        drain(assembled(store, settings, refits, stop), COUNT)
        kept = [entry[1][1] for entry in store.call("XRANGE", store.keys.out, "-", "+")]
    assert 10_000 < sum(map(len, kept)) * 5 // 4 + 32 * len(kept) <= 20_000 + 4096 * 5 // 4
    assert len(kept) < COUNT
