"""A Redis that closes the connection of whoever reads too much at once."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import structlog
from processes import Process
from session_steps import run
from world import CONFIG, drain, payloads, push, rows, session, wait_until

from workers.admin.verify import verify
from workers.broker.batch_size import BatchSize
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import ReadCut, ReadTooLarge, ReplyNotGiven, Unavailable, exit_code
from workers.feed.agreement import agreement
from workers.feed.position import START
from workers.session import snapshots
from workers.stop import Stop

ACL = Path(__file__).parents[2] / "deploy" / "redis" / "users.acl"
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
        drain(session(whole, batch=COUNT), COUNT)
        expected = payloads(whole)
    limited.be_patient()
    with structlog.testing.capture_logs() as told:
        drain(session(limited, batch=COUNT), COUNT)
    assert payloads(limited) == expected
    failed = [line for line in told if "asking for fewer" in line["event"]]
    assert [line["entries"] for line in failed] == [16]  # of 32, after 16 were given
    assert all("does not answer" in line["reason"] for line in failed)


def waits(store):
    """Return whether a read waits for input."""
    return b"blocked_clients:1" in store.call("INFO", "clients")


def requested(store):
    """Return the counts of all reads of the input, in order."""
    done = store.call("SLOWLOG", "GET", 10_000)
    reads = [entry[3] for entry in reversed(done) if entry[3][:2] == [b"XREAD", b"COUNT"]]
    return [int(command[2]) for command in reads]


def test_reads_begin_small_and_grow_and_do_so_again_after_a_broken_connection(own_redis):
    stop = Stop()
    with Store(own_redis.url, "f", stop) as store, Store(own_redis.url, "f") as other:
        store.be_patient()
        running = session(store, batch=1024, stop=stop)
        other.call("CONFIG", "SET", "slowlog-max-len", 10_000)
        other.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        push(other, rows(1100))
        worker = threading.Thread(target=run, args=(running, stop))
        worker.start()
        try:
            wait_until(lambda: running.position.seq == 1100)
            assert requested(other)[:6] == [16, 32, 64, 128, 256, 512]
            other.call("SLOWLOG", "RESET")
            other.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            push(other, rows(100), first=1101)
            wait_until(lambda: running.position.seq == 1200)
        finally:
            stop.request()
            worker.join(20)
        assert 16 in requested(other)


def test_a_replay_and_a_command_that_does_not_wait_get_on_as_well(limited):
    limited.be_patient()
    drain(session(limited, batch=10), COUNT)
    with Store(limited.url, "f") as impatient:
        assert verify(impatient).is_identical
        session(impatient)  # replays from the start


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


@pytest.fixture
def stuck(own_redis):
    """A feed of which Redis gives all entries but the sixth, of 4 MB."""
    with Store(own_redis.url, "f", block_ms=20) as store:
        push(store, rows(5))
        push(store, [["x", " " * 4_000_000, "y", "a"]], first=6)
        push(store, rows(5), first=7)
        store.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {LIMIT} 0 0")
        yield store


def test_an_entry_that_redis_never_gives_ends_the_worker_and_is_named(stuck):
    stuck.be_patient()
    running = session(stuck)
    with pytest.raises(ReplyNotGiven) as caught:
        drain(running, 11)
    assert exit_code(caught.value) == 2
    said = str(caught.value)
    assert "\n" not in said
    for part in ("entry 6-0", "of 4000003 bytes", f"is {LIMIT} bytes", "XDEL osvm:{f}:in 6-0"):
        assert part in said
    assert running.position.seq == 5
    with Store(stuck.url, "f") as impatient, pytest.raises(ReplyNotGiven, match="entry 6-0"):
        list(impatient.pages(stuck.keys.input, b"0-0"))
    # The first way on. The entry gets an answer, and nothing that was learned is lost.
    before = stuck.state().position
    assert before.seq == 5
    stuck.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    again = session(stuck)
    assert again.position == before
    drain(again, 11)
    assert [json.loads(payload).get("code") for _, payload in payloads(stuck)[0]][5] == "too_large"


def test_an_entry_that_redis_never_gives_can_be_deleted_instead(stuck):
    stuck.be_patient()
    with pytest.raises(ReplyNotGiven):
        drain(session(stuck), 11)
    stuck.call("XDEL", stuck.keys.input, "6-0")
    drain(session(stuck), 10)
    assert [entry_id for entry_id, _ in payloads(stuck)[0]] == [
        b"%d-0" % i for i in range(1, 12) if i != 6
    ]


def test_where_the_limit_cannot_be_looked_up_a_large_entry_ends_the_worker_too(stuck):
    rules = next(r for r in ACL.read_text().splitlines() if r.startswith("user osvm-worker "))
    stuck.call("ACL", "SETUSER", *rules.split()[1:], "on", ">word")
    url = stuck.url.replace("unix://", "unix://osvm-worker:word@")
    with Store(url, "f", block_ms=20) as store:
        store.be_patient()
        with pytest.raises(ReplyNotGiven, match=r"of 4000003 bytes; .*limit may be too small"):
            drain(session(store), 11)


def test_an_entry_that_the_network_breaks_again_and_again_is_tried_again(stuck):
    stuck.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    for entry in (b"5-0", b"0-0", b"11-0"):
        stuck.check_entry_is_given(ReadCut("cut"), stuck.keys.input, entry, 1)


def test_the_worker_ends_with_2_and_one_line_when_redis_never_gives_an_entry(stuck):
    command = [sys.executable, "-m", "workers.cli", "worker", "f", "--redis", stuck.url]
    options = ["--classes", "a,b", "--refit-lag", "0"]
    with Process([*command, *options], stderr=subprocess.PIPE, text=True) as worker:
        said = worker.communicate()[1]
    assert worker.returncode == 2, said
    assert said.count("asked for entry 6-0") == 1
    assert "Traceback" not in said
    assert stuck.state().position.seq == 5


def test_a_snapshot_part_that_redis_cuts_is_read_in_pieces(own_redis):
    body = bytes(range(256)) * (3 << 12)  # 3 MiB
    with Store(own_redis.url, "f") as store:
        state = store.fence("tester", agreement(CONFIG, Limits()))
        agreed = state.agreement.config_hash
        pointer, data = snapshots.encode("f", agreed, START, body)
        store.finish_snapshot(store.put_snapshot(pointer, data))
        store.call("CONFIG", "SET", "client-output-buffer-limit", "normal 300000 0 0")
        with structlog.testing.capture_logs() as told:
            assert snapshots.read(store, pointer, agreed).body == body
        assert any("in pieces" in line["event"] for line in told)
        store.call("DEL", *pointer.keys(store.keys))
        assert store.get_snapshot(pointer) is None


def test_every_retry_says_why(own_redis):
    with Store(own_redis.url, "f", patience=0.3) as store, structlog.testing.capture_logs() as told:
        store.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="maxmemory"):
            store.call("XADD", store.keys.input, "*", "x", "[1]")
    assert told
    assert all(
        "refuses for now: command not allowed when used memory" in line["reason"] for line in told
    )
