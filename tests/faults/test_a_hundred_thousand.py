"""100,000 distinct labels, names or ids: what is stored, sent and held does not grow with them."""

import json
import sys
import time
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from processes import alone, peak_since
from pure_replay import replay, replayed

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.message.decode import decode
from workers.session.answer import process

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
COUNT = 100_000
BATCH = 1000
# The long memory is full within the first fifth: its bound is far above the growth looked for.
CONFIG = PredictorConfig(window=100, refit_every=50, metrics_every=100, gamma=0.5, memory=500)
MIB = 1 << 20

FEWER = COUNT // 10  # rows of names: from the thousandth name on they cost what they will ever cost
FLOODS = {
    "labels": (
        lambda i: [b"x", b"[%d,%d]" % (i % 7, i % 3), b"y", b"label %d" % i],
        COUNT, {"too_many_classes"}, 100,
    ),
    "names": (
        lambda i: [b"x", b'{"name %d":1,"a":2}' % i, b"y", b"%d" % (i % 2)], FEWER, set(), FEWER,
    ),
    "more and more names": (  # rejected are rows without any
        lambda i: [b"x", json.dumps({f"{i}-{j}": 1 for j in range(i % 40)}).encode(), b"y", b"a"],
        FEWER, {"dimension"}, FEWER - FEWER // 40,
    ),
    "ids": (lambda i: [b"x", b"[1,2]", b"id", b"id %d" % i], COUNT, set(), COUNT),
}  # fmt: skip
"""The fields of each entry, how many come, codes of rejected ones, and how many are taken."""


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
            letters = (len(letter.head) + len(letter.about) for letter in outcome.dlq)
            self.letters = max([self.letters, *letters])

    @property
    def snapshot(self):
        return len(self.recent.prepend_to(self.predictor.snapshot()))


class Figures(NamedTuple):
    """Of a flood: after its first fifth, and at its end."""

    first_snapshot: int
    first_largest: int
    grown: int  # bytes by which the peak of memory is above that of the first fifth
    snapshot: int
    largest: int
    letters: int
    seconds: list[float]
    answered: Counter[str]


def figures_of(kind):
    fields, count, _, _ = FLOODS[kind]
    flood = Flood(fields, Limits(dedupe_window=BATCH))
    grown = peak_since()
    flood.go_on(0, count // 5)
    first = (flood.snapshot, flood.largest)
    first_peak = grown()  # a snapshot is in it: the allocator may give its memory back, or keep it
    flood.go_on(count // 5, count)
    last = (flood.snapshot, flood.largest, flood.letters, flood.seconds, flood.answered)
    return Figures(*first, grown() - first_peak, *last)


@on_linux
@pytest.mark.parametrize("kind", FLOODS)
def test_of_100_000_distinct_ones_the_last_costs_what_the_first_did(kind):
    _, count, codes, taken = FLOODS[kind]
    found = alone(figures_of, kind)
    assert found.grown < 32 * MIB
    assert found.snapshot < 1.1 * found.first_snapshot + 1000
    assert found.largest < found.first_largest + 100
    assert found.letters < 2048
    assert min(found.seconds[-10:]) < 3 * min(found.seconds[1:10])
    assert found.answered.total() == count
    assert {*found.answered} - {"ok", "warming"} == codes
    assert found.answered["ok"] + found.answered["warming"] == taken


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
    assert min(taken) < 0.1


# A feed takes so many classes, each of so many bytes


def flood(count=2500, taken=100, known=60, filling="é" * 126):
    """Return the fields of entries of ever new labels, 256 bytes each, then of the first ones."""
    labels = [f"{i:04}{filling}" for i in range(count)]
    labels += [labels[i % taken] for i in range(known)]
    X = np.random.default_rng(0).normal(size=(len(labels), 3)).round(3)
    pairs = zip(X, labels, strict=True)
    return [[b"x", json.dumps(x.tolist()).encode(), b"y", label.encode()] for x, label in pairs]


def test_labels_of_control_characters_make_answers_of_at_most_192_kib():
    ((outcome, _),) = replay(CONFIG, flood(100, filling="\x01" * 252))
    assert not outcome.dlq
    assert json.loads(outcome.out[-1])["status"] == "ok"
    assert 1 << 16 < max(map(len, outcome.out)) < 192 << 10
    assert max(len(report) for _, report in outcome.met) < 96 << 10


@pytest.mark.parametrize(("label", "is_taken"), [("é" * 128, True), ("é" * 128 + "a", False)])
def test_the_bytes_of_a_label_are_bounded_unless_it_is_declared(label, is_taken):
    entry = ["x", "[1]", "y", label]
    (discovered,) = replayed(PredictorConfig(), [entry])[0]
    assert (b'"warming"' in discovered) == is_taken
    if not is_taken:
        answer = json.loads(discovered)
        assert (answer["code"], answer["about"]) == ("label", {"case": "y_bytes", "most": 256})
    assert b'"warming"' in replayed(PredictorConfig(classes=("a", label)), [entry])[0][0]


@pytest.mark.parametrize(("config", "most", "labels"), [
    ({"classes": ("a", "b", "c")}, 2, "abc"),
    ({"refit_every": 500}, None, map(str, range(110))),
], ids=["declared", "without a bound"])  # fmt: skip
def test_classes_that_are_not_counted_are_taken_in_any_number(config, most, labels):
    entries = [["x", "[1]", "y", label] for label in labels]
    ((outcome, _),) = replay(PredictorConfig(**config), entries, Limits(max_classes=most))
    assert not outcome.dlq
