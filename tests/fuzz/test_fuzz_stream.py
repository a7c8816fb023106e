"""Many fuzzed entries mixed into a real stream: the real answers do not notice.

`make fuzz` runs FUZZ_ENTRIES of them (default a million); the default suite a few thousand.
"""

import json
import math
import os
import random
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from world import drain, session

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.schema import FeatureSchema
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.feed.codes import VERSION
from workers.feed.position import START
from workers.feed.retention import Retention
from workers.message import entry_decode
from workers.session.answer import process

CONFIG = PredictorConfig(
    features=3, classes=("a", "b"), window=100, refit_every=50, metrics_every=100, gamma=0.5
)
LIMITS = Limits(max_entry_bytes=4096)
FUZZED_PER_REAL = 19
CHUNK = 10_000
RETAINED = 20_000
MEGABYTE = 1 << 20

HOSTILE = [
    b"[NaN,1,2]", b"[1e999,1,2]", b"[-Infinity,0,0]", b"[5e-324,1,2]", b"[1e101,1,2]", b"[1,2]",
    b"[1,2,3,4]", b"[]", b"{}", b"", b"null", b"[null,1,2]", b"[true,1,2]", b'["1",1,2]',
    b"[1,2,3],[4,5,6]", b"[1,2,3]],\n[[4,5,6]", b"[1,2,3]\0", b"\xff\xfe", b'{"a":1,"b":2,"c":3}',
    b"[" * 2000, b'{"a":' * 400, b"[" + b"9" * 3000 + b",1,2]", b'{"a":1,"a":2,"b":3}',
    b"[[1,2,3]]",
]  # fmt: skip
NAMES = [b"x", b"xb", b"y", b"id", b"for", b"X", b"", b"\xff\0", b"\x1b[31m", b"x" * 300]


def mutated(choose, raw):
    changed = bytearray(raw)
    for _ in range(choose.randint(1, 4)):
        at = choose.randrange(len(changed) + 1)
        match choose.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([choose.randrange(256)])
            case 1:
                del changed[at : at + choose.randint(1, 4)]
            case 2:
                changed[at:at] = changed[at : at + 8]
            case _:
                changed[at:at] = choose.choice([b"NaN", b",", b"]", b'"', b"\0", b"1e999", b"{"])
    return bytes(changed)


def fuzzed(choose, real):
    """Return the fields of an entry that was bred from a real one or from nothing."""
    match choose.randrange(7):
        case 0:
            return [b"x", choose.choice(HOSTILE), b"y", b"a"]
        case 1:
            return [b"x", mutated(choose, real[1]), *real[2:]]
        case 2:
            return [*real[:3], mutated(choose, b"a")]
        case 3:
            values = [choose.choice([math.nan, math.inf, 1e-310, 1e300, 1.0]) for _ in range(3)]
            return [b"xb", struct.pack("<3d", *values)[: choose.choice([24, 24, 23, 16, 0])]]
        case 4:
            return [*real, choose.choice(NAMES), choose.randbytes(choose.randrange(8))]
        case 5:
            count = choose.randint(1, 4)
            return [
                part for _ in range(count) for part in (choose.choice(NAMES), choose.randbytes(9))
            ]
        case _:
            padding = b" " * choose.choice([10, 100, 4096, 9000]) * (choose.randrange(20) == 0)
            return [b"x", b"[1,2" + padding + b"]", b"y", b"a"]


def is_refused(fields, schema=FeatureSchema(CONFIG)):  # noqa: B008  (declared: it never changes)
    try:
        entry_decode.decode_entry(fields, schema, LIMITS)
    except InvalidExample:
        return True
    return False


def mixed(choose, generator, count):
    """Return entries, and the real ones; a fuzzed one that is acceptable after all is left out."""
    found, real = [], []
    while len(found) < count:
        x = generator.normal(size=3).round(3)
        sample = [b"x", json.dumps(x.tolist()).encode(), b"y", b"b" if x[0] > 0.3 else b"a"]
        bad = (fuzzed(choose, sample) for _ in range(choose.randint(0, 2 * FUZZED_PER_REAL)))
        bad = [fields for fields in bad if is_refused(fields)]
        found += [*bad, sample]
        real.append(sample)
    return found, real


def without_seq(payload):
    return {name: value for name, value in json.loads(payload).items() if name != "seq"}


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Mixture:
    """A feed with fuzzed entries, and beside it a predictor that sees the real ones alone."""

    def __init__(self, store):
        self.store = store
        self.session = session(store, 256, CONFIG, limits=LIMITS, snapshot_every=CHUNK // 2)
        self.alone, self.position, self.pushed = OnlinePredictor(CONFIG), START, 0

    def step(self, entries, real):
        """Push entries, let the feed answer them, and compare the real ones."""
        before = self.pushed
        link = self.store._connection._pipeline(self.store.url)
        with link.client.pipeline(transaction=False) as pipeline:
            for fields in entries:
                self.pushed += 1
                pipeline.execute_command("XADD", self.store.keys.input, f"{self.pushed}-0", *fields)
            pipeline.execute()
        drain(self.session, self.pushed, 600.0)
        bounds = (b"%d-0" % before, b"%d-0" % self.pushed)
        pages = self.store.pages(self.store.keys.out, *bounds)
        out = [entry[1][1] for page in pages for entry in page]
        outcome = process(self.alone, LIMITS, self.position, [
            (b"%d-0" % (self.position.seq + i + 1), fields) for i, fields in enumerate(real)
        ])  # fmt: skip
        self.position, answers = outcome.after, iter(outcome.out)
        real_ones = {id(fields) for fields in real}
        for fields, payload in zip(entries, out, strict=True):
            if id(fields) in real_ones:
                assert without_seq(payload) == without_seq(next(answers))
            else:
                assert payload.startswith(b'{"v":%d,"status":"rejected"' % VERSION)


def run(url, feed, total, chunk):
    """Return the feed at the end, and how memory grew after the first tenth."""
    choose, generator = random.Random(5), np.random.default_rng(5)
    retention = Retention(out=RETAINED, met=1000, dlq=RETAINED)
    began, base = time.monotonic(), None
    with Store(url, feed, retention=retention, block_ms=20) as store:
        mixture = Mixture(store)
        while mixture.pushed < total:
            mixture.step(*mixed(choose, generator, min(chunk, total - mixture.pushed)))
            if base is None and mixture.pushed >= max(total // 10, 3 * RETAINED):
                base = resident(), used_memory(store)
        now = resident(), used_memory(store)
    growth = [(after - before) / MEGABYTE for after, before in zip(now, base or now, strict=True)]
    print(
        f"\n{mixture.pushed:,} entries, {mixture.position.n:,} of them real, in "
        f"{time.monotonic() - began:.0f} s; memory grew by {growth[0]:.1f} MB in the worker, "
        f"{growth[1]:.1f} MB in Redis"
    )
    assert mixture.session.position.n == mixture.position.n
    return mixture, growth


def used_memory(store):
    return int(store.server()["used_memory"])


def test_a_few_thousand_fuzzed_entries_change_no_real_answer(embedded_url, feed):
    mixture, _ = run(embedded_url, feed, 6000, chunk=1500)
    assert 200 < mixture.position.n < mixture.pushed - 5000


@pytest.mark.fuzz
@pytest.mark.timeout(3600)  # a million entries, or as many as FUZZ_ENTRIES says
def test_very_many_fuzzed_entries_change_no_real_answer_and_take_no_memory(embedded_url, feed):
    total = int(os.environ.get("FUZZ_ENTRIES", "1000000"))
    mixture, growth = run(embedded_url, feed, total, CHUNK)
    assert mixture.position.n > total / 50
    assert max(growth) < 50
