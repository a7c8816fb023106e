"""A person is told since when, wherever the IDs of entries are times."""

from random import Random

import orjson
import pytest

from online_svm.stream.alarm import Alarm
from workers.dashboard.past_run import read_past
from workers.message.encode import encode_alarms
from workers.reading.dates import learned_at
from workers.reading.facts import facts
from workers.reading.status import FeedStatus, with_outputs
from workers.reading.verdict import trust

MONDAY = 1_763_942_400_000  # 2025-11-24 00:00 UTC
HOUR = 3_600_000


def add(store, stream, at, payload):
    store.call("XADD", stream, at, "p", orjson.dumps(payload))


@pytest.fixture
def answered(store):
    """Ninety answers in irregular time: of some hours many, of some none; not all are learned."""
    dice, n, ms, known = Random(7), 10, MONDAY, {}
    for i in range(90):
        ms += dice.choice([0, 0, 1, HOUR, 30 * HOUR])
        add(store, store.keys.out, f"{ms}-{i}", {"status": "ok", "seq": 10 + i, "n": n})
        known[n + 1] = ms  # in the end the last entry before the count grows
        n += dice.choice([0, 1, 1])
    return store, known


def test_an_example_has_the_time_of_the_entry_that_it_was_learned_with(answered):
    store, known = answered
    assert learned_at(store, known) == known
    assert learned_at(store, [0, 5, 10]) == {}  # their answers are no longer kept


def test_where_the_answers_are_trimmed_the_reports_tell(answered):
    store, known = answered
    add(store, store.keys.met, f"{MONDAY - 9 * HOUR}-0", {"n": 4, "scored": 0})
    assert learned_at(store, [7]) == {7: MONDAY - 9 * HOUR}
    assert learned_at(store, known) == known


def test_after_an_erasure_the_numbers_are_those_of_the_new_learner(answered):
    store, known = answered
    later = max(known.values()) + HOUR
    store.call("HSET", store.keys.erased, "base", f"1-0 {later}-0 100 40 {'0' * 64}")
    for i in range(5):
        add(store, store.keys.out, f"{later + i * HOUR}-1", {"status": "ok", "n": 40 + i})
    assert learned_at(store, [30, 41, 44]) == {41: later, 44: later + 3 * HOUR}


ALARM = Alarm(50, "calibration", "class", "b", "bets", 5.7, 5.3, 20, -0.05, -0.09, -0.02, 0.9)
NOTICE = {
    "n": 90, "scope": "overall", "name": None, "direction": "high", "since": 20, "examples": 30,
    "announced": 0.9, "happened": 0.85, "lower": 0.81, "upper": 0.884,
}  # fmt: skip


@pytest.mark.parametrize("start", [MONDAY, 1])
def test_verdict_facts_and_report_say_since_when(store, start):
    for i in range(100):
        add(store, store.keys.out, f"{start + i * HOUR}-0", {"status": "ok", "seq": i, "n": i})
    raised = f"{start + 49 * HOUR}-0"
    store.call("XADD", store.keys.alarms, raised, "p", encode_alarms([ALARM], 49))
    monitors = {"open": [orjson.loads(orjson.dumps(ALARM))], "notices": [NOTICE], "features": []}
    add(
        store,
        store.keys.met,
        f"{start + 99 * HOUR}-0",
        {"n": 99, "scored": 90, "monitors": monitors},
    )
    status = with_outputs(store, FeedStatus(feed=store.keys.feed))
    began, off = " (Wed 2025-11-26 01:00 UTC)", " (Mon 2025-11-24 19:00 UTC)"
    if start != MONDAY:
        began = off = ""
    found = "announced 90 of 100, true were 85 (81 to 88)"
    assert trust(status).sentence == f"Do not trust them since example 50{began}: class b: {found}"
    past = read_past(store)
    for told in (facts(status), past.facts()):
        lines = {fact.name: fact.sentence for fact in told}
        assert lines["incident"] == f"since example 50{began}, 1 alarm, of calibration"
        assert lines["alarm"] == f"at example 50{began}: class b: {found}, since example 20{off}"
        assert lines["notice"].endswith(f"in 30 since example 20{off}")
    assert past.trust() == trust(status)
    assert f"the last began at example 50{began} and is open" in lines["alarms"]
