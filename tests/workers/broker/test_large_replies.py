"""How many entries a batch has, by their bytes; values that Redis gives in pieces alone."""

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from shipped_redis import PROGRAMS
from world import CONFIG

from workers.broker import embedded
from workers.broker.large_replies import BatchSize
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import ReadCut, ReadTooLarge
from workers.feed.pinned_config import pinned_config
from workers.feed.position import START
from workers.session import snapshots

sizes = st.lists(st.integers(1, 300), min_size=1, max_size=64)


def entries(lengths):
    return [(b"%d-0" % (i + 1), [b"x", b"1" * (n - 1)]) for i, n in enumerate(lengths)]


@given(sizes, st.integers(1, 2000))
def test_a_batch_is_the_longest_beginning_within_the_bytes_but_never_empty(lengths, limit):
    count = BatchSize(64, limit).first_of(entries(lengths))
    assert sum(lengths[:count]) <= limit or count == 1
    assert count == len(lengths) or sum(lengths[: count + 1]) > limit


@given(st.lists(sizes, max_size=20), st.integers(1, 2000))
def test_the_number_that_is_asked_for_stays_within_its_bounds(reads, limit):
    size = BatchSize(64, limit)
    for lengths in reads:
        size.first_of(entries(lengths[: size.count]))
        assert 1 <= size.count <= 64


def test_large_entries_lower_the_number_and_small_ones_raise_it_again():
    size = BatchSize(64, 1000)
    while size.count > 3:
        size.first_of(entries([300] * size.count))
    assert size.count == 2
    for _ in range(10):
        size.first_of(entries([2] * size.count))
    assert size.count == 64


def test_after_a_cut_more_is_asked_for_only_after_many_reads():
    size = BatchSize(8, 1 << 20)
    size.halve(ReadCut("cut"))
    reads = 0
    while size.count < 8:
        size.first_of([(b"%d-0" % i, [b"x", b"[1]"]) for i in range(size.count)])
        reads += 1
    assert reads == 256
    size.halve(ReadTooLarge("large"))
    size.first_of([(b"%d-0" % i, [b"x", b"[1]"]) for i in range(size.count)])
    assert size.count == 8


@pytest.mark.parametrize("kind", ["oldest", "system"])  # Valkey gives a string of any length
def test_a_snapshot_part_that_redis_cuts_is_read_in_pieces(kind):
    body = bytes(range(256)) * (3 << 12)  # 3 MiB
    with embedded.temporary(PROGRAMS[kind]()) as server, Store(server.url, "f") as store:
        state = store.fence("tester", pinned_config(CONFIG, Limits()))
        agreed = state.pinned.config_hash
        pointer, data = snapshots.encode("f", agreed, START, body)
        store.finish_snapshot(store.put_snapshot(pointer, data))
        store.call("CONFIG", "SET", "client-output-buffer-limit", "normal 300000 0 0")
        with structlog.testing.capture_logs() as told:
            assert snapshots.read(store, pointer, agreed).body == body
        assert any("in pieces" in line["event"] for line in told)
        store.call("DEL", *pointer.keys(store.keys))
        assert store.get_snapshot(pointer) is None
