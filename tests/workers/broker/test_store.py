"""Typed reads, named errors, the loop that tries again, and operational events."""

import json
import socket
import threading
import time
from typing import get_args

import pytest
import redis
from processes import LIMIT
from world import World, drain, wait_until

from workers.broker.client import MAX_DELAY_SECONDS, delays, translated
from workers.broker.connection import Connection
from workers.config.redis_url import redacted
from workers.errors import (
    AccessDenied,
    BadConfiguration,
    Stopped,
    Unavailable,
    WorkerError,
    WrongKeyType,
)
from workers.feed import codes
from workers.feed.position import ALARMS, MET, OUT, chain
from workers.feed.state import PinnedConfig
from workers.message.schema import EventMessage
from workers.stop import Stop


def test_reads_give_entries_as_flat_lists_after_the_cursor(store):
    for entry_id, more in (("1-1", ()), ("1-2", ("x", "[2]")), ("2-0", ())):
        store.call("XADD", store.keys.input, entry_id, "x", "[1]", "y", "a", *more)

    def read(cursor, count):
        return store.receive_read(store.send_read(cursor, count))

    assert read(b"1-1", 10) == [
        [b"1-2", [b"x", b"[1]", b"y", b"a", b"x", b"[2]"]],  # a field sent twice is seen twice
        [b"2-0", [b"x", b"[1]", b"y", b"a"]],
    ]
    assert [entry[0] for entry in read(b"0-0", 2)] == [b"1-1", b"1-2"]


def test_pages_cover_a_half_open_range(store):
    store.append(store.keys.input, [(b"%d-0" % i, [b"x", b"[1]"]) for i in range(1, 11)])
    pages = list(store.pages(store.keys.input, b"2-0", b"9-0", count=3))
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [entry[0] for page in pages for entry in page] == [b"%d-0" % i for i in range(3, 10)]
    assert list(store.pages(store.keys.input, b"10-0")) == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (redis.exceptions.OutOfMemoryError("command not allowed"), Unavailable),
        (redis.ResponseError("@user_script: 9: -OOM command not allowed when used"), Unavailable),
        (redis.exceptions.ReadOnlyError("You can't write against a read only"), Unavailable),
        (redis.ResponseError("BUSY Redis is busy running a script"), Unavailable),
        (redis.ResponseError("MISCONF Redis is configured to save"), Unavailable),
        (redis.BusyLoadingError("Redis is loading"), Unavailable),
        (redis.ConnectionError("Error 111"), Unavailable),
        (redis.TimeoutError("Timeout reading"), Unavailable),
        (redis.AuthenticationError("invalid username-password pair"), AccessDenied),
        (redis.exceptions.NoPermissionError("this user has no permissions"), AccessDenied),
        (redis.ResponseError("WRONGTYPE Operation against a key"), WrongKeyType),
        (redis.ConnectionError("SSL: CERTIFICATE_VERIFY_FAILED certificate"), BadConfiguration),
        (redis.ResponseError("ERR syntax error"), WorkerError),
    ],
)
def test_every_error_of_redis_has_a_name(error, expected):
    assert type(translated(error, "redis://user:secret@host:1/0")) is expected


def test_no_message_holds_the_credentials():
    url = "redis://user:secret@host:1/0?password=secret"
    assert "secret" not in redacted(url)
    for error in (redis.ConnectionError("no"), redis.AuthenticationError("no")):
        assert "secret" not in str(translated(error, url))
    with pytest.raises(Unavailable) as failed:
        Connection("redis://user:secret@127.0.0.1:1/0", Stop()).call("PING")
    assert "secret" not in str(failed.value)


def test_delays_grow_to_a_cap_and_are_spread():
    drawn = [delay for delay, _ in zip(delays(), range(200), strict=False)]
    assert min(drawn) >= 0.0
    assert MAX_DELAY_SECONDS / 2 < max(drawn) <= MAX_DELAY_SECONDS
    assert drawn[0] <= 0.05
    assert len(set(drawn)) == 200


def test_a_command_is_tried_again_until_redis_is_there(redis_url, tmp_path, feed):
    """The socket appears only after a while, as when Redis is restarted."""
    late = tmp_path / "late.sock"
    real = redis_url.removeprefix("unix://")
    connection = Connection(f"unix://{late}", Stop(), retry_timeout=LIMIT)
    failed = lambda: wait_until(lambda: connection.failures > 1)  # noqa: E731
    appears = threading.Thread(target=lambda: failed() and late.symlink_to(real))
    appears.start()
    assert connection.call("PING") in (b"PONG", True)
    appears.join()
    connection.close()


def test_patience_ends(tmp_path):
    connection = Connection(f"unix://{tmp_path}/none.sock", Stop(), retry_timeout=0.3)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="start it, or correct the URL"):
        connection.call("PING")
    assert 0.2 < time.monotonic() - began < 30.0


def test_a_stop_ends_endless_patience_within_the_grace_period(tmp_path):
    stop = Stop(grace=0.3)
    connection = Connection(f"unix://{tmp_path}/none.sock", stop, retry_timeout=None)
    threading.Timer(0.2, stop.request).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        connection.call("PING")
    assert time.monotonic() - began < 30.0


def test_no_command_is_repeated_behind_our_back(tmp_path):
    """A server that takes a command and cuts the line must have been asked exactly once."""
    path, asked = str(tmp_path / "cut.sock"), []

    def serve(listener):
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            with line:
                while data := line.recv(65536):
                    if b"INCR" in data:
                        asked.append(data)
                        break
                    line.sendall(b"+OK\r\n" * data.count(b"*"))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        with pytest.raises(Unavailable):
            Connection(f"unix://{path}", Stop()).call("INCR", "counter")
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert len(asked) == 1


def test_the_digest_tells_streams_ids_and_payloads_apart():
    links = [
        (OUT, b"1-2", b"ab"),
        (ALARMS, b"1-2", b"ab"),
        (MET, b"1-2", b"ab"),
        (OUT, b"1-3", b"ab"),
        (OUT, b"1-2", b"a"),
    ]
    digests = {chain(bytes(32), [link]) for link in links}
    assert len(digests) == 5
    assert chain(chain(bytes(32), links[:1]), links[1:]) == chain(bytes(32), links)


@pytest.fixture
def begun(store):
    """A feed that was taken over."""
    store.fence("tester", PinnedConfig("{}", "00"))
    return store


def events(store):
    entries = store.call("XRANGE", store.keys.events, "-", "+")
    return [json.loads(fields[1]) for _, fields in entries]


def test_an_event_is_noted_and_no_part_of_the_state(begun):
    before = begun.state()
    begun.note("began", "epoch 1, seq 0")
    begun.note("snapshot_not_kept", "x" * 10_000)
    noted = [EventMessage(**found) for found in events(begun)]
    assert [(one.code, one.epoch) for one in noted] == [("began", 1), ("snapshot_not_kept", 1)]
    assert len(noted[1].detail) == 1000, "a long detail is cut"
    assert begun.state() == before


def test_a_writer_that_has_not_taken_the_feed_over_notes_nothing(store):
    store.note("failed", "nothing begun")
    assert events(store) == []


def test_a_worker_that_outlives_its_feed_does_not_make_the_stream_again(begun):
    begun.note("began", "")
    begun.call("DEL", begun.keys.events)
    begun.note("failed", "StateLost: the feed is gone")
    assert begun.call("EXISTS", begun.keys.events) == 0


@pytest.mark.parametrize("how", ["another type", "no permission"])
def test_events_that_cannot_be_written_are_in_nobodys_way(own_redis, feed, how):
    with World(own_redis.url, feed) as world:
        world.push(20)
        running, keys = world.session(), world.store.keys
        if how == "another type":
            world.store.call("DEL", keys.events)
            world.store.call("SET", keys.events, "foreign")
        else:
            all_but_events = f"~osvm:{{{feed}}}:[^e]*"
            world.store.call("ACL", "SETUSER", "default", "resetkeys", all_but_events)
        world.store.note("began", "")
        drain(running, 20)
        world.store.note("stopped", "")
        assert (world.seq, world.store.failures) == (20, 0)


def test_about_a_thousand_events_are_kept(begun):
    for i in range(1500):
        begun.note("began", str(i))
    assert codes.EVENTS_KEPT <= begun.length(begun.keys.events) <= codes.EVENTS_KEPT + 100
    assert events(begun)[-1]["detail"] == "1499"


def test_every_code_of_an_event_is_described():
    assert tuple(codes.EVENT_CODES) == get_args(codes.EventCode)
