"""Whatever stands in `st`, the lease or the list of feeds: a value or one line, and no write.

And whatever IDs, labels and names producers send: answers, each under its own ID, and replayable.
"""

import json
from contextlib import contextmanager

import pytest
from fuzzing import FACTOR, fuzz
from hypothesis import given
from hypothesis import strategies as st
from session_steps import advance
from world import CONFIG, World, drain, outcome, payloads, rows, session

from workers.admin.verify import verify
from workers.broker.leases import is_held
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import WorkerError
from workers.feed.keys import REGISTRY, is_feed_name
from workers.feed.pinned_config import pinned_config
from workers.feed.position import parse_id
from workers.reading.registry import listed
from workers.reading.status import read_status
from workers.session import preflight
from workers.text import printable

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(180 * FACTOR)]
COUNT = 40
LAST = 2**64 - 1


@pytest.fixture(scope="module")
def worked(embedded_url):
    """A feed with two snapshots, no worker, and one more entry that waits."""
    with World(embedded_url, "fuzzed") as world:
        world.push(COUNT)
        world.answer(snapshot_every=15).snapshot()
        world.store.register()
        world.push(1)
        yield world.store


NUMBERS = [-1, 0, 1, COUNT - 1, COUNT + 1, 10**18, 2**63 - 1, 2**63, 2**64, 10**400]
IDS = ["0-0", "40-0", "41-0", f"{LAST}-{LAST}", f"{LAST + 1}-0"]
IDS += ["1-", "-1", "1-1-1", "٣-0", "$", "*"]
values = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(NUMBERS).map(lambda number: str(number).encode()),
    st.sampled_from(IDS).map(str.encode),
    st.sampled_from([b"{}", b"[]", b"null", b"[" * 9000, b"\0", b"\x1b]0;t\7\n", b"\xff" * 70]),
    st.tuples(st.sampled_from(NUMBERS), st.sampled_from(["ab" * 32, ""]), st.sampled_from(IDS))
    .map(lambda parts: ":".join(map(str, parts)).encode()),
)  # fmt: skip
FIELDS = [
    "format", "epoch", "writer", "cursor", "seq", "n", "digest", "snapshot", "previous", "config",
    "config_hash", "marks", "gone", "added", "run_id",
    "keeps", "written", "marks_out", "marks_met", "marks_alarms", "marks_dlq", "pending",
    "retention", "memory", "kinds", "duplicates",
]  # fmt: skip


def commands(store):
    """What looks at a feed: each returns, or raises an error of the service in one line."""
    yield lambda: preflight.check(store, pinned_config(CONFIG, Limits()))
    yield lambda: read_status(store)
    yield lambda: verify(store)
    yield lambda: session(store)


def pairs(flat):
    return zip(flat[::2], flat[1::2], strict=True)


@contextmanager
def damaged(store, changed):
    """Change fields of the state within the block, in which no answer may change."""
    key, answers = store.keys.state, payloads(store)
    state = store.call("HGETALL", key)
    try:
        for name, value in changed.items():
            store.call(*(("HDEL", key, name) if value is None else ("HSET", key, name, value)))
        yield
        assert payloads(store) == answers
    finally:
        store.call("DEL", key)
        store.call("HSET", key, *state)


def run(command):
    try:
        command()
    except WorkerError as error:
        said = str(error)
        assert said
        assert len(said) < 2000
        assert "\n" not in said


@fuzz(60)
@given(st.dictionaries(st.sampled_from(FIELDS), st.none() | values, min_size=1, max_size=3))
def test_a_damaged_state_is_named_in_one_line_and_changes_no_answer(worked, changed):
    """Nothing but the epoch and the writer may be written before the damage is found.

    The run of the server is no damage: whoever takes the feed over notes the present one.
    """
    with damaged(worked, changed):
        before = dict(pairs(worked.call("HGETALL", worked.keys.state)))
        for command in commands(worked):
            run(command)
        after = dict(pairs(worked.call("HGETALL", worked.keys.state)))
        assert {n for n in before | after if before.get(n) != after.get(n)} <= {
            b"epoch", b"writer", b"run_id",
        }  # fmt: skip
        assert after.get(b"run_id") in (before.get(b"run_id"), worked.server()["run_id"].encode())


def test_every_field_that_a_feed_stores_is_fuzzed(worked):
    stored = worked.call("HGETALL", worked.keys.state)
    assert {name.decode() for name in stored[::2]} <= set(FIELDS)


@fuzz(60)
@given(st.one_of(values, st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["name", "host", "pid", "started", "token", "x"]), inner, max_size=6),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())))  # fmt: skip
def test_whatever_stands_in_the_lease_is_shown_and_stops_nobody(worked, value):
    worked.call("SET", worked.keys.lease, value)
    try:
        holder = read_status(worked).holder
        assert holder is None or printable(holder).isprintable()
        assert isinstance(is_held(value), bool)
    finally:
        worked.call("DEL", worked.keys.lease)


@fuzz(60)
@given(st.lists(values, max_size=5), st.sampled_from(["set", "string", "list", "hash", "zset"]))
def test_garbage_in_the_registry_hides_no_feed_and_is_not_shown(worked, members, kind):
    worked.call("DEL", REGISTRY)
    members = [*members, b"fuzzed"]
    try:
        adding = {
            "set": ("SADD", *members), "string": ("SET", members[0]), "list": ("RPUSH", *members),
            "hash": ("HSET", members[0], "1"), "zset": ("ZADD", "1", members[0]),
        }  # fmt: skip
        command, *rest = adding[kind]
        worked.call(command, REGISTRY, *rest)
        run(worked.register)
        if kind == "set":
            found, odd = listed(worked)
            assert "fuzzed" in found
            assert {name.encode() for name in found} | set(odd) == set(members)
            assert not any(is_feed_name(name) for name in odd)
        else:
            run(lambda: listed(worked))
        assert read_status(worked).seq == COUNT
    finally:
        worked.call("DEL", REGISTRY)


# What producers send

parts = st.one_of(
    st.integers(0, 3), st.integers(0, LAST), st.sampled_from([LAST, LAST - 1, 2**63, 2**53 + 1])
)
ids = st.lists(st.tuples(parts, parts), min_size=1, max_size=30, unique=True).map(sorted)


@fuzz(15)
@given(ids.map(lambda found: [pair for pair in found if pair != (0, 0)]), st.booleans())
def test_entries_under_any_ids_are_answered_and_replayed(embedded_url, found, is_crashed):
    with Store(embedded_url, "ids", block_ms=1) as store:
        try:
            for pair, entry in zip(found, rows(len(found)), strict=True):
                store.call("XADD", store.keys.input, b"%d-%d" % pair, *entry)
            if not found:
                return
            running = session(store, batch=4, snapshot_every=5)
            drain(running, len(found))
            if not is_crashed:
                run(running.snapshot)
            expected = outcome(store)
            assert [parse_id(entry[0]) for entry in expected[0][0]] == found
            run(lambda: read_status(store))
            run(lambda: advance(session(store)))
            assert outcome(store) == expected
            assert verify(store).is_identical
        finally:
            store.call("DEL", *store.call("KEYS", "osvm:{ids}:*"), "none")
