"""`status` says what is published, who reads the answers, and what a feed takes in Redis."""

import json
import re
import time

import orjson
import pytest
from published_feed import examples, push, session, work

from workers.broker.connection import client
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.cli.status import describe
from workers.reading.lag import MAX_COUNTED, backlog
from workers.reading.status import MAX_SEARCHED, read_status
from workers.reading.verdict import printed, verdict


@pytest.fixture
def worked(store):
    """A feed of 60 examples that has published its state, and goes on without publishing."""
    push(store, examples(60))
    running = session(store)
    work(running, 60)
    running._publisher._every = 0
    return running


def test_without_a_published_state_nothing_is_told_of_one(store):
    push(store, examples(20))
    work(session(store, every=0), 20)
    found = read_status(store)
    assert (found.published, found.consumers) == (None, ())
    assert "published" not in describe(found)


def test_it_says_what_is_published(store, worked):
    push(store, examples(40, first=60))
    work(worked, 100)
    state, found = store.publication(), read_status(store).published
    assert (found.n, found.size, found.behind) == (state.n, state.size, 100 - state.n)
    assert 0 <= found.age < 60
    told = describe(read_status(store))
    assert re.search(f"n = {state.n:,}, {100 - state.n:,} learned since, [0-9]+ s ago", told)


def test_a_damaged_publication_leaves_the_rest_of_the_status(store, worked):
    store.call("HSET", store.keys.published, "n", "many")
    assert (read_status(store).published, read_status(store).seq) == (None, 60)
    store.call("DEL", store.keys.published)
    store.call("SET", store.keys.published, "x")
    assert read_status(store).seq == 60


def test_it_says_how_far_each_consumer_of_the_answers_is(store, worked):
    ids = [entry[0] for entry in store.call("XRANGE", store.keys.out, "-", "+")]
    for name, at in (("recorded", ids[9]), ("behind", b"0-0"), ("done", ids[-1])):
        store.call("XGROUP", "CREATE", store.keys.out, name, "0")
        store.call("XGROUP", "SETID", store.keys.out, name, at)
    store.call("XREADGROUP", "GROUP", "behind", "c", "COUNT", 7, "STREAMS", store.keys.out, ">")
    found = {group.name: group for group in read_status(store).consumers}
    assert {name: group.behind for name, group in found.items()} == {
        "recorded": 50, "behind": 53, "done": 0
    }  # fmt: skip
    assert found["recorded"].upto == ids[9].decode()
    assert found["behind"].pending == 7
    assert f"recorded, up to {ids[9].decode()}, 50 behind" in describe(read_status(store))


def test_the_bytes_of_each_kind_of_key_are_those_that_redis_says(store, worked):
    keys, found = store.keys, read_status(store).stored
    parts = store.publication().keys(keys)
    assert found.bytes["published"] == sum(store.call("MEMORY", "USAGE", key) for key in parts)
    assert found.bytes["out"] > 60 * 500
    assert found.bytes["alarms"] == 0
    assert set(found.bytes) == {"in", "out", "met", "alarms", "dlq", "snapshots", "published"}
    assert found.bounds == {"out": 64 << 20, "met": 16 << 20, "dlq": 16 << 20}
    assert "(of 67 MB)" in describe(read_status(store))


def test_waiting_bytes_are_exact_or_by_the_mean_entry(store):
    rows = [[b"x", b"[%d]" % (10**8 + i)] for i in range(MAX_COUNTED + 500)]
    store.append(store.keys.input, [(b"*", row) for row in rows[:100]])
    size = sum(map(len, rows[0]))
    assert backlog(store, store.keys.input, b"0-0") == (100, False, 100 * size)
    assert read_status(store).waiting_bytes == 100 * size
    store.append(store.keys.input, [(b"*", row) for row in rows[100:]])
    assert backlog(store, store.keys.input, b"0-0") == (MAX_COUNTED, True, MAX_COUNTED * size)
    assert read_status(store).waiting_bytes == len(rows) * size


def test_the_status_of_a_feed_costs_redis_no_more_where_it_holds_more(store, worked):
    """Nothing is read but a report and what waits."""

    def sent():
        before = int(store.call("INFO", "stats").split(b"total_net_output_bytes:")[1].split()[0])
        read_status(store)
        after = int(store.call("INFO", "stats").split(b"total_net_output_bytes:")[1].split()[0])
        return after - before

    first = sent()
    push(store, examples(600, first=60))
    work(worked, 660)
    assert sent() < 2 * first


def test_a_feed_is_replayed_from_when_a_worker_takes_it_over_until_it_begins(store, worked):
    def told():
        return verdict(read_status(store)).sentence.partition(";")[0]

    store.note("began", f"epoch {worked.epoch}, seq 0")
    push(store, examples(5, first=60))
    store.call("SET", store.keys.lease, Holder.here("host-1").encode())
    assert (store.state().epoch, told() == "Replaying") == (worked.epoch, False)
    store.note("stopped", "killed")
    state = store.fence("host-1", None)
    assert (state.epoch, told()) == (worked.epoch + 1, "Replaying")
    store.note("began", f"epoch {state.epoch}, seq 60")
    assert not told().startswith("Replaying")


def test_what_comes_after_an_answer_does_not_give_its_guarantee_back(store, worked):
    store.call("SET", store.keys.lease, Holder.here("host-1").encode())
    said = {"v": 2, "status": "ok", "seq": 60, "n": 60, "guarantee": "none", "reason": "none yet"}
    store.call("XADD", store.keys.out, "*", "p", orjson.dumps(said))
    for i in range(MAX_SEARCHED - 1):
        other = {
            "v": 2,
            "status": ("label", "duplicate", "rejected")[i % 3],
            "seq": 61 + i,
            "n": 60,
        }
        store.call("XADD", store.keys.out, "*", "p", orjson.dumps(other))
    assert verdict(read_status(store)).sentence == "Take care: the answers have no guarantee"


def test_an_answer_hours_after_the_last_label_does_not_miss_one_at_once(store, worked):
    store.call("SET", store.keys.lease, Holder.here("host-1").encode())
    long_ago, now = int(1000 * (time.time() - 7500)), int(1000 * time.time())
    store.call("DEL", store.keys.out)
    label = {"v": 2, "status": "label", "seq": 60, "n": 60}
    store.call("XADD", store.keys.out, f"{long_ago}-0", "p", orjson.dumps(label))
    store.call("XADD", store.keys.out, f"{now}-0", "p", orjson.dumps({**label, "status": "ok"}))
    for age, is_told in ((0, False), (now - long_ago, True)):
        store.call("HSET", store.keys.state, "pending", f"1 1 0 {age} 0")
        told = verdict(read_status(store)).sentence
        assert (told == "No label for 2 hours; 1 answer waits") is is_told


def test_all_of_it_is_in_the_json_of_the_command(store, worked, run):
    found = json.loads(run("status", store.keys.feed, "--json")[1])
    expected = orjson.loads(orjson.dumps(printed(read_status(store))))
    age = found["published"].pop("age"), expected["published"].pop("age")
    assert age[0] <= age[1]
    assert found == expected


def test_a_user_who_may_not_ask_for_it_gets_the_rest(store, worked):
    """As under the rules of an earlier deployment."""
    with client(store.url) as admin:
        try:
            admin.execute_command(
                "ACL", "SETUSER", "reader", "reset", "on", ">pw", "~*", "+@all", "-xinfo", "-time",
                "-memory",
            )  # fmt: skip
            url = store.url.replace("unix://", "unix://reader:pw@")
            with Store(url, store.keys.feed) as reading:
                found = read_status(reading)
            assert (found.seq, found.consumers) == (60, ())
            assert (found.published.n, found.published.age) == (store.publication().n, None)
            assert found.stored.bytes["out"] is None
            assert "may not run MEMORY USAGE" in describe(found)
        finally:
            admin.execute_command("ACL", "DELUSER", "reader")
