"""A Redis that closes the connection of whoever reads too much at once."""

import json
from pathlib import Path

import pytest
import structlog
from session_steps import answer_batch
from shipped_redis import PROGRAMS
from world import World, drain, rows

from workers.admin.verify import verify
from workers.broker import embedded
from workers.broker.store import Store
from workers.errors import InputLost, ReadCut, ReplyNotGiven, Unavailable, exit_code

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
    with World(own_redis.url, "f") as world:
        world.push(padded())
        world.store.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {LIMIT} 0 0")
        world.store.retry_forever()
        yield world


def test_reads_that_redis_cuts_are_halved_and_change_no_byte(limited, world):
    world.push(padded())
    world.answer(batch=COUNT)
    with structlog.testing.capture_logs() as told:
        limited.answer(batch=COUNT)
    assert limited.payloads() == world.payloads()
    (line,) = (line for line in told if "asking for fewer" in line["event"])
    assert line["entries"] == 16  # of 32, after 16 were given
    assert "does not answer" in line["reason"]


def requested(store):
    """Return the counts of all reads of the input, in order."""
    done = store.call("SLOWLOG", "GET", 10_000)
    reads = [entry[3] for entry in reversed(done) if entry[3][:2] == [b"XREAD", b"COUNT"]]
    return [int(command[2]) for command in reads]


def test_reads_begin_small_and_grow_and_do_so_again_after_a_broken_connection(own_redis):
    with World(own_redis.url, "f") as world:
        other = world.open()
        world.store.retry_forever()
        running = world.session(batch=1024)
        other.call("CONFIG", "SET", "slowlog-max-len", 10_000)
        other.call("CONFIG", "SET", "slowlog-log-slower-than", 0)
        world.push(rows(1100))
        drain(running, 1100)
        assert requested(other)[:6] == [16, 32, 64, 128, 256, 512]
        other.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        for _ in range(2):
            answer_batch(running)  # finds the line cut, then reads its position again
        other.call("SLOWLOG", "RESET")
        world.push(rows(100))
        drain(running, 1200)
        assert requested(other)[:3] == [16, 32, 64]


def test_a_replay_and_a_command_that_does_not_wait_get_on_as_well(limited):
    limited.answer()
    impatient = limited.open()
    assert verify(impatient).is_identical
    limited.session(impatient)  # replays from the start


@pytest.fixture
def stuck(request):
    """A feed of which Redis gives all entries but the sixth, of 4 MB."""
    program = PROGRAMS[getattr(request, "param", "embedded")]()
    with embedded.temporary(program) as server, World(server.url, "f") as world:
        world.push(5)
        world.push([["x", " " * 4_000_000, "y", "a"]])
        world.push(5)
        world.store.call("CONFIG", "SET", "client-output-buffer-limit", f"normal {LIMIT} 0 0")
        world.store.retry_forever()
        yield world


def test_an_entry_that_redis_never_gives_ends_the_worker_and_is_named(stuck):
    running = stuck.session()
    with pytest.raises(ReplyNotGiven) as caught:
        drain(running, 11)
    assert exit_code(caught.value) == 2
    said = str(caught.value)
    assert "\n" not in said
    for part in ("entry 6-0", "of 4000003 bytes", f"is {LIMIT} bytes", "XDEL osvm:{f}:in 6-0"):
        assert part in said
    assert running.position.seq == stuck.seq == 5
    with pytest.raises(ReplyNotGiven, match="entry 6-0"):
        list(stuck.open().pages(stuck.store.keys.input, b"0-0"))
    # The first way on. The entry gets an answer, and nothing that was learned is lost.
    before = stuck.store.state().position
    stuck.store.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    again = stuck.session()
    assert again.position == before
    drain(again, 11)
    assert [json.loads(payload).get("code") for _, payload in stuck.payloads()[0]][5] == "too_large"


@pytest.mark.parametrize(
    ("stuck", "misses_it"), [("oldest", False), ("embedded", True)], indirect=["stuck"]
)
def test_an_entry_that_redis_never_gives_can_be_deleted_instead(stuck, misses_it):
    with pytest.raises(ReplyNotGiven, match=r"XDEL osvm:\{f\}:in 6-0 \(from Redis 7 on"):
        stuck.answer()
    stuck.store.call("XDEL", stuck.store.keys.input, "6-0")
    if misses_it:
        with pytest.raises(InputLost, match=r"HSET osvm:\{f\}:st gone '0 6-0'"):
            stuck.answer(10)
        stuck.store.call("HSET", stuck.store.keys.state, "gone", "0 6-0")
    stuck.answer(10)
    ids = [entry_id for entry_id, _ in stuck.payloads()[0]]
    assert ids == [b"%d-0" % i for i in range(1, 12) if i != 6]


def test_a_large_entry_ends_a_worker_that_cannot_see_the_limit(stuck):
    rules = next(r for r in ACL.read_text().splitlines() if r.startswith("user osvm-worker "))
    stuck.store.call("ACL", "SETUSER", *rules.split()[1:], "on", ">word")
    store = stuck.open(stuck.url.replace("unix://", "unix://osvm-worker:word@"), retry_timeout=None)
    with pytest.raises(ReplyNotGiven, match=r"of 4000003 bytes; .*limit may be too small"):
        drain(stuck.session(store), 11)


def test_an_entry_that_the_network_breaks_again_and_again_is_tried_again(stuck):
    stuck.store.call("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0")
    for entry in (b"5-0", b"0-0", b"11-0"):
        stuck.store.check_entry_is_deliverable(ReadCut("cut"), stuck.store.keys.input, entry, 1)


def test_every_retry_says_why(own_redis):
    with (
        Store(own_redis.url, "f", retry_timeout=0.3) as store,
        structlog.testing.capture_logs() as told,
    ):
        store.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="maxmemory"):
            store.call("XADD", store.keys.input, "*", "x", "[1]")
    assert told
    assert all(
        "refuses for now: command not allowed when used memory" in line["reason"] for line in told
    )
