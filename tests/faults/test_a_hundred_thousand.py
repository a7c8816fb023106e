"""100,000 distinct labels, names or ids: what is stored, sent and held does not grow with them."""

import json
import sys
import time
from collections import Counter

import pytest
from processes import peak_since

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.message.decode import decode
from workers.session.answer import process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
COUNT = 100_000
BATCH = 1000
CONFIG = PredictorConfig(window=100, refit_every=50, refit_lag=0, metrics_every=100, gamma=0.5)
MIB = 1 << 20

FLOODS = {
    "labels": lambda i: [b"x", b"[%d,%d]" % (i % 7, i % 3), b"y", b"label %d" % i],
    "names": lambda i: [b"x", b'{"name %d":1,"a":2}' % i, b"y", b"%d" % (i % 2)],
    "more and more names": lambda i: [
        b"x", json.dumps({f"{i}-{j}": 1 for j in range(i % 40)}).encode(), b"y", b"a",
    ],
    "ids": lambda i: [b"x", b"[1,2]", b"id", b"id %d" % i],
}  # fmt: skip
CODES = {
    "labels": {"too_many_classes"},
    "names": set(),
    "more and more names": {"dimension"},  # of those without any
    "ids": set(),
}
FEWER = COUNT // 5  # rows of names: from the thousandth name on they cost what they will ever cost
COUNTS = {"labels": COUNT, "names": FEWER, "more and more names": FEWER, "ids": COUNT}
TAKEN = {"labels": 100, "names": FEWER, "more and more names": FEWER - FEWER // 40, "ids": COUNT}


class Flood:
    """A feed that gets one entry after the other; it keeps sizes, and counts of answers."""

    def __init__(self, fields, limits):
        self.fields, self.limits = fields, limits
        self.predictor, self.position = OnlinePredictor(CONFIG), START
        self.recent = RecentIds(limits.dedupe_window)
        self.answered, self.seconds, self.largest, self.letters = Counter(), [], 0, 0

    def go_on(self, first, last):
        for begin in range(first, last, BATCH):
            entries = [(b"%d-0" % (i + 1), self.fields(i)) for i in range(begin, begin + BATCH)]
            began = time.process_time()
            outcome = process(self.predictor, self.limits, self.position, entries, self.recent)
            self.seconds.append(time.process_time() - began)
            self.position = outcome.after
            for payload in outcome.out:
                answer = json.loads(payload)
                self.answered[answer.get("code", answer["status"])] += 1
            self.largest = max(self.largest, *map(len, outcome.out))
            letters = (len(letter.head) + len(letter.reason) for letter in outcome.dlq)
            self.letters = max([self.letters, *letters])

    @property
    def snapshot(self):
        return len(self.recent.prepend_to(self.predictor.snapshot()))


@pytest.mark.parametrize("kind", FLOODS)
def test_of_100_000_distinct_ones_the_last_costs_what_the_first_did(kind):
    flood, count = Flood(FLOODS[kind], Limits(dedupe_window=BATCH)), COUNTS[kind]
    flood.go_on(0, count // 5)
    snapshot, largest = flood.snapshot, flood.largest
    grown = peak_since()
    flood.go_on(count // 5, count)
    assert grown() < 32 * MIB
    assert flood.snapshot < 1.1 * snapshot + 1000
    assert flood.largest < largest + 100
    assert flood.letters < 2048
    assert min(flood.seconds[-10:]) < 3 * min(flood.seconds[1:10])
    assert flood.answered.total() == count
    assert {*flood.answered} - {"ok", "warming"} == CODES[kind]
    assert flood.answered["ok"] + flood.answered["warming"] == TAKEN[kind]


def test_one_entry_of_100_000_names_is_refused_before_they_are_read():
    names = json.dumps({f"{i:x}": 1 for i in range(COUNT)}, separators=(",", ":")).encode()
    assert len(names) < MIB
    schema = FeatureSchema(PredictorConfig())
    taken = []
    for _ in range(5):
        began = time.process_time()
        found = decode([(b"1-0", [b"x", names])], schema, Limits())
        taken.append(time.process_time() - began)
    assert found.rejected[0].code == "too_large"
    assert "20000" in found.rejected[0].reason
    assert min(taken) < 0.05
