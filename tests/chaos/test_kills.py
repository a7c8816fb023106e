"""One stream at four batch sizes, then killed twenty times at random progress: the same bytes."""

import random

import pytest
from world import Worker, flags_of, payloads, seq_of

from workers.admin.verify import verify
from workers.broker.store import Store
from workers.push.ingest import push, shuffled
from workers.push.sources import Reading, rows

# Twenty-five starts of the whole program, over 5,300 examples each time.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

SOURCE, SEED = "Bananas", 0  # comes with river: 5,300 examples, 2 classes
KILLS, LEAST, MOST = 20, 1, 150
SETTINGS = {"classes": ("-1", "1"), "metrics_every": 50, "quiet": True}


def worked(store, count, is_killed=False, **settings):
    """Let a worker answer so many entries, and stop or kill it; return the answers and reports."""
    flags = flags_of(SETTINGS | settings)
    with Worker("worker", store.keys.feed, "--redis", store.url, *flags) as worker:
        worker.wait_for(store, count, 120.0)
        if not is_killed:
            worker.stopped()
    return [[payload for _, payload in stream] for stream in payloads(store)]


@pytest.mark.parametrize("payload", ["full", "compact"])
def test_batches_and_twenty_kills_change_no_byte(redis_url, feed, payload):
    examples, choose = shuffled(rows(SOURCE, Reading()), SEED), random.Random(SEED)
    found, total = [], len(examples)
    for batch in (1, 7, 64, 1024):
        with Store(redis_url, f"{feed}-{batch}") as store:
            push(examples, redis_url, store.keys.feed)
            found.append(worked(store, total, batch=batch, payload=payload))
    with Store(redis_url, f"{feed}-killed") as store:
        push(examples, redis_url, store.keys.feed)
        for _ in range(KILLS):
            goal = seq_of(store) + choose.randint(LEAST, MOST)
            changing = {"batch": choose.choice((1, 7, 64)), "replay_budget": 300}
            worked(store, goal, is_killed=True, payload=payload, **changing)
        found.append(worked(store, total))
        assert all(one == found[0] for one in found)
        assert verify(store).is_identical
        state = store.state()
        assert (state.position.seq, state.epoch) == (total, KILLS + 1)
        print(f"\n{KILLS} kills, {total} answers, digest {state.position.digest.hex()}")
