"""A Redis that closes the connection of whoever reads too much at once."""

import pytest
import structlog
from fault_feed import drain, engine, payloads, push, rows

from workers.admin.verify import verify
from workers.broker.batch_size import BatchSize
from workers.broker.store import Store
from workers.errors import Unavailable

COUNT = 120
LIMIT = 1 << 20


def padded():
    """Return entries of 40 KB each: the other half of them rejected ones."""
    blank = " " * 40_000
    return [
        ["x", fields[1] + blank, *fields[2:]] if i % 2 else ["x", "[1," + blank, *fields[2:]]
        for i, fields in enumerate(rows(COUNT))
    ]


@pytest.fixture
def limited(own_redis):
    """A feed whose input does not fit into one reply."""
    with Store(own_redis.url, "f", block_ms=20) as store:
        push(store, padded())
        store.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {LIMIT} 0 0")
        yield store


def test_reads_that_redis_cuts_are_halved_and_change_no_byte(limited, redis_url, feed):
    with Store(redis_url, feed, block_ms=20) as whole:
        push(whole, padded())
        drain(engine(whole, batch=COUNT), COUNT)
        expected = payloads(whole)
    limited.be_patient()
    with structlog.testing.capture_logs() as told:
        drain(engine(limited, batch=COUNT), COUNT)
    assert payloads(limited) == expected
    halved = [line["entries"] for line in told if "asking for fewer" in line["event"]]
    assert halved == [60, 30, 15][: len(halved)] != []
    reasons = [line["reason"] for line in told if "trying again" in line["event"]]
    assert reasons
    assert all("does not answer" in reason for reason in reasons)


def test_a_replay_and_a_command_that_does_not_wait_get_on_as_well(limited):
    limited.be_patient()
    drain(engine(limited, batch=10), COUNT)
    with Store(limited.url, "f") as impatient:
        assert verify(impatient).is_identical
        engine(impatient)  # replays from the start


def test_after_a_cut_more_is_asked_for_only_after_many_reads():
    size = BatchSize(8, 1 << 20)
    size.halve(is_cut=True)
    reads = 0
    while size.count < 8:
        size.first_of([(b"%d-0" % i, [b"x", b"[1]"]) for i in range(size.count)])
        reads += 1
    assert reads == 256
    size.halve()
    size.first_of([(b"%d-0" % i, [b"x", b"[1]"]) for i in range(size.count)])
    assert size.count == 8


def test_every_retry_says_why(own_redis):
    with Store(own_redis.url, "f", patience=0.3) as store, structlog.testing.capture_logs() as told:
        store.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="maxmemory"):
            store.call("XADD", store.keys.input, "*", "x", "[1]")
    assert told
    assert all(
        "refuses for now: command not allowed when used memory" in line["reason"] for line in told
    )
