"""Entries and backlogs far beyond the bounds, under a limit on the memory of the worker."""

import json
import random
import resource
import sys
import time

import pytest
from processes import peak_since
from world import Worker, World, wait_until

from online_svm.config import PredictorConfig
from online_svm.stream.schema import FeatureSchema
from workers.admin.verify import verify
from workers.broker.large_replies import BatchSize
from workers.config.settings import Limits
from workers.message.decode import decode
from workers.reading.status import read_status
from workers.session.flow import InputReader

MIB = 1 << 20
SETTINGS = ["--classes", "a,b", "--batch", "64"]


def filled(unit, size, before=b"[", after=b"0]"):
    """Return JSON of about `size` bytes, made of one part over and over."""
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def wide(size, value=b"0", choose=None):
    members = [b'"%x":%b' % (i, value) for i in range(size // (7 + len(value)))]
    if choose is not None:
        choose.shuffle(members)
    return b"{" + b",".join(members)[: size - 10] + b"}"


KINDS = {
    "nested": lambda size: filled(b"[],", size),
    "nested twice": lambda size: filled(b"[[]],", size),
    "nested objects": lambda size: filled(b'{"":0},', size),
    "deep": lambda size: b"[" * size,
    "flat": lambda size: filled(b"0,", size),
    "wide object": wide,
    "wide object of objects": lambda size: wide(size, b'{"":0}'),
    "names twice": lambda size: filled(b'"a":0,', size, b"{", b'"a":0}'),
    "floats": lambda size: filled(b"1e5,", size),
    "floats and a NaN": lambda size: filled(b"1e5,", size, after=b"NaN]"),
    "short texts": lambda size: filled(b'"ab",', size),
    "text": lambda size: b'["' + b"a" * (size - 4) + b'"]',
    "quotation marks": lambda size: b'[" \\"' + b'\\"' * (size // 2 - 4),
    "no JSON": lambda size: b"x" * size,
    "digits": lambda size: b"[" + b"9" * (size - 2) + b"]",
    "a text alone": lambda size: b'"' + b"a" * (size - 2) + b'"',
    "NULs": bytes,
    "non-ASCII": lambda size: "é".encode() * (size // 2),
    "names in no order": lambda size: wide(size, choose=random.Random(11)),
    "pieces of JSON": lambda size: b"".join(random.Random(11).choices(PIECES, k=size))[:size],
    "noise": lambda size: random.Random(11).randbytes(size),
}
PIECES = [b"[", b"]", b"{", b"}", b'"', b",", b":", b"1", b"e", b"null", b"\\", b"\xff", b" "]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("features", [None, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_entry_within_bounds_costs_little_memory_and_time(kind, features):
    raw = KINDS[kind](MIB - 64)
    schema = FeatureSchema(PredictorConfig(features=features))
    grown = peak_since()
    taken = []
    for _ in range(5):
        began = time.process_time()
        found = decode([(b"1-0", [b"x", raw, b"y", b"a"])], schema, Limits())
        taken.append(time.process_time() - began)
    assert found.rejected
    assert grown() < 20 * len(raw)
    assert min(taken) < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_beyond_the_bytes_is_refused_before_it_is_parsed(kind, monkeypatch):
    def parse(raw):
        raise AssertionError(f"{len(raw)} bytes were parsed")

    monkeypatch.setattr("orjson.loads", parse)
    monkeypatch.setattr("json.loads", parse)
    raw = KINDS[kind](2 * MIB)
    batch = [(b"1-0", [b"x", raw, b"y", b"a", b"id", b"i" * MIB])]
    batch += [(b"2-0", [b"x", b"[1]", name, raw]) for name in (b"xb", b"y", b"id", b"p")]
    batch += [(b"3-0", [raw, raw])]
    for features in (None, 4):
        found = decode(batch, FeatureSchema(PredictorConfig(features=features)), Limits())
        codes = [found.rejected[i].code for i in range(len(batch))]
        assert codes == ["too_large"] * len(batch)
        assert "the limit is 1048576" in found.rejected[0].reason
        assert found.ids == [None] * len(batch)


def test_names_full_of_commas_and_brackets_are_no_values():
    names = [f"{i:05d}" + ",[{" * 80 for i in range(3000)]
    raw = json.dumps(dict.fromkeys(names, 1.5)).encode()
    assert 700_000 < len(raw) < MIB
    for features in (None, tuple(names)):
        schema = FeatureSchema(PredictorConfig(features=features))
        batch = [(b"1-0", [b"x", raw]), (b"2-0", [b"x", raw])]
        found = decode(batch, schema, Limits())
        assert (found.X.shape, found.rejected) == ((2, 3000), {})


def test_many_fields_are_not_taken_apart():
    fields = [b"ab"] * 400_000
    found = decode([(b"1-0", fields)], FeatureSchema(PredictorConfig()), Limits())
    assert found.rejected[0].code == "unknown_field"


def test_a_backlog_of_large_entries_is_read_in_parts_that_fit(store):
    for i in range(1, 41):
        store.call("XADD", store.keys.input, f"{i}-0", "x", b"1" * (MIB if i > 8 else 1))
    reader = InputReader(store, BatchSize(64, MIB))
    cursor, found = b"0-0", []
    while cursor != b"40-0":
        reader.put((), may_be_more=True)
        entries = reader.next_now(cursor, 64)
        assert sum(len(entry[1][1]) for entry in entries) <= 2 * MIB
        found += [entry[0] for entry in entries]
        cursor = found[-1]
        reader.prefetch(cursor)
    assert found == [b"%d-0" % i for i in range(1, 41)]


def test_a_stream_that_is_walked_comes_in_pages_of_bounded_bytes(store):
    for i in range(1, 61):
        store.call("XADD", store.keys.input, f"{i}-0", "x", b"1" * MIB)
    pages = list(store.pages(store.keys.input, b"0-0"))
    assert [entry[0] for page in pages for entry in page] == [b"%d-0" % i for i in range(1, 61)]
    assert max(sum(len(entry[1][1]) for entry in page) for page in pages) <= 33 * MIB
    assert read_status(store).waiting == 60


LIMIT = 3_500 * MIB


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


@pytest.mark.slow
def test_a_worker_with_little_memory_rejects_an_entry_of_100_mib(own_redis):
    small = ["x", "[1,2]", "y", "a"]
    with World(own_redis.url, "f") as world:
        world.push([small])
        for kind in ("nested", "flat", "text"):
            world.push([["x", KINDS[kind](100 * MIB), "y", "a"]])
        world.push([["x", KINDS["nested"](MIB - 64)]] * 20)
        world.push([small])
        command = ("worker", "f", "--redis", own_redis.url, *SETTINGS)
        for epoch in (1, 2):
            with Worker(*command, preexec_fn=limited) as worker:
                worker.wait_for(world.store, world.pushed, 90.0)
                wait_until(lambda epoch=epoch: world.store.state().epoch == epoch)
                worker.stopped()
        answers = [json.loads(payload) for _, payload in world.payloads()[0]]
        assert [a.get("code") for a in answers] == [None, *["too_large"] * 23, None]
        assert verify(world.store).is_identical
