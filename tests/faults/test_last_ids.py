"""IDs at the edges of what a stream can hold, or of a clock that jumps: answers, or a clear end."""

import pytest
from session_steps import answer_batch
from structlog.testing import capture_logs
from world import CONFIG, drain

from workers.admin.verify import verify
from workers.cli.status import describe
from workers.config.settings import Limits
from workers.errors import EndOfStream
from workers.feed.pinned_config import pinned_config
from workers.feed.position import LAST_ID
from workers.feed.retention import Retention
from workers.push.back_pressure import HighWater
from workers.push.ingest import PushStopped, push
from workers.push.sources import Row
from workers.reading.status import read_status
from workers.session import preflight
from workers.session.flow import ConsumerBackpressure

MOST = 2**64 - 1
COUNT = 60
HOUR = 3_600_000
LAST = f"{MOST}-{MOST}"

IDS = ["0-1", f"0-{MOST}", "1-0", *(f"{i}-{MOST}" for i in range(2, COUNT - 4))]
IDS += [f"{MOST}-0", f"{MOST}-{MOST - 1}", LAST]
"""They begin with the first possible one and end with the last, and are edges of both parts."""

TIMES = (1_700_000_000_000, 1_700_000_000_000 + HOUR, 1_700_000_000_000 + 2 * HOUR, 2**63)
JUMPS = [f"{TIMES[i // 15]}-{i % 15}" for i in range(COUNT)]
"""Of a clock that jumps: IDs of the same millisecond, an hour and a century ahead."""


def fill(world, ids):
    for entry_id, fields in zip(ids, world.entries, strict=False):
        world.store.call("XADD", world.store.keys.input, entry_id, *fields)


@pytest.fixture
def edge(world):
    fill(world, IDS)
    return world


@pytest.mark.parametrize("ids", [IDS, JUMPS], ids=["edges", "jumps"])
def test_entries_under_odd_ids_are_answered_as_others_replayed_and_verified(world, ids):
    edge = world
    fill(edge, ids)
    edge.answer(COUNT, batch=7)
    before = edge.outcome()
    again = edge.session(batch=13)  # replays all: there is no snapshot
    answer_batch(again)
    again.snapshot()
    assert edge.outcome() == before
    assert [entry_id.decode() for entry_id, _ in edge.payloads()[0]] == ids
    assert verify(edge.store).is_identical
    assert [len(page) for page in edge.store.pages(edge.store.keys.out, LAST_ID)] == []
    plain = edge.beside("plain")
    plain.push(COUNT)
    plain.answer()
    edges, others = ([[p for _, p in kind] for kind in each.payloads()] for each in (edge, plain))
    assert edges == others


@pytest.mark.parametrize("last", ["1001-18446744073709551615", LAST])
def test_back_pressure_goes_on_past_the_last_id(store, last):
    ids = [*(f"{i}-{MOST}" for i in range(1, 40)), last]
    for entry_id in ids:
        store.call("XADD", store.keys.out, entry_id, "p", "{}")
    store.call("XGROUP", "CREATE", store.keys.out, "sink", "0")
    store.retained.retention = Retention(out=10)
    backpressure = ConsumerBackpressure(store, "sink")
    assert not backpressure.has_room(5)
    for entry_id in ids:
        found = store.call(
            "XREADGROUP", "GROUP", "sink", "c", "COUNT", 1, "STREAMS", store.keys.out, ">"
        )
        assert found[0][1][0][0] == entry_id.encode()
        store.call("XACK", store.keys.out, "sink", entry_id)
        backpressure.has_room(1)
    assert backpressure.has_room(5)
    assert backpressure.has_room(40)
    assert store.length(store.keys.out) <= 10


def test_a_worker_a_check_and_status_say_that_the_stream_has_ended(edge):
    assert "ended" not in describe(read_status(edge.store))
    with capture_logs() as logs:
        running = edge.session()
        drain(running, COUNT)
        for _ in range(3):
            answer_batch(running)
    said = [entry["event"] for entry in logs if "no entry can follow" in entry["event"]]
    assert len(said) == 1
    assert "online-svm reset" in said[0]
    checked = preflight.check(edge.store, pinned_config(CONFIG, Limits()))
    assert any("no entry can follow" in warning for warning in checked.warnings)
    found = read_status(edge.store)
    assert (found.waiting, found.cursor) == (0, LAST)
    assert "ended      the stream has reached" in describe(found)


def test_a_push_to_an_ended_stream_says_so(edge):
    edge.answer(COUNT)
    with HighWater(edge.url, edge.feed, 10, pytest.fail) as high_water:
        high_water(0)
    with pytest.raises(PushStopped, match=r"no entry can follow.*0 rows were pushed"):
        push([Row([1.0, 2.0, 3.0], "a")], edge.url, edge.feed)
    with pytest.raises(EndOfStream, match="online-svm reset"):
        edge.store.call("XADD", edge.store.keys.input, "*", "x", "[1]")
