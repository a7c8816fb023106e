"""A command whose reply is read later."""

import socket
import time
from contextlib import closing

import pytest
import redis

from workers.broker.client import client
from workers.broker.connection import Connection
from workers.broker.pipeline import PendingReply, Pipeline
from workers.errors import ReadTooLarge, Unavailable, WorkerError
from workers.stop import Stop


@pytest.fixture
def connection(redis_url):
    with closing(Connection(redis_url, Stop())) as connection:
        yield connection


@pytest.fixture
def other(redis_url):
    with closing(Connection(redis_url, Stop())) as connection:
        yield connection


@pytest.fixture
def broken(connection, other):
    """A connection that broke after two commands were sent, the first of which waits for ever."""
    number = connection.call("CLIENT", "ID")
    sent = [connection.send("XREAD", "BLOCK", 0, "STREAMS", "none", "$"), connection.send("PING")]
    assert other.call("CLIENT", "KILL", "ID", number) == 1
    return connection, sent


def test_several_replies_may_be_under_way_and_each_is_kept_for_its_command(connection):
    sent = [connection.send("ECHO", f"{i}") for i in range(5)]
    assert connection.receive(sent[3]) == b"3"
    assert [connection.receive(each) for each in sent] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("replicas", [0, 1])
def test_an_error_belongs_to_its_own_command(connection, replicas):
    connection.call("SET", "text", "no number")
    wrong = connection.send("INCR", "text", replicas=replicas)
    right = connection.send("ECHO", "fine")
    assert connection.receive(right) == b"fine"
    with pytest.raises(WorkerError, match="not an integer"):
        connection.receive(wrong)


def test_a_reply_that_was_too_large_ends_no_connection_but_its_own(connection, feed):
    connection.retry_timeout = 10.0
    connection.call("SET", feed, b"x" * 100_000)
    large = connection.send("GET", feed, limit=1000)
    connection.call("ECHO", "first")  # over another connection, for that one was given up
    failures, later = connection.failures, connection.send("ECHO", "later")
    with pytest.raises(ReadTooLarge):
        connection.receive(large)
    assert connection.receive(later) == b"later"
    assert connection.failures == failures


def test_a_large_argument_arrives_as_it_is(connection):
    data = bytes(range(256)) * 8192
    written = connection.send("SET", "large", memoryview(data), "EX", 100, is_large=True)
    assert connection.call("GET", "large") == data
    assert connection.receive(written) == b"OK"


def test_no_reply_goes_to_another_command_where_a_send_fails(redis_url):
    pipeline = Pipeline(client(redis_url))
    lost, unsent, after = (
        PendingReply(("ECHO", word), "echo") for word in ("lost", "unsent", "after")
    )
    pipeline.send(lost)
    pipeline.client.connection._sock.shutdown(socket.SHUT_RDWR)
    pipeline.send(unsent)
    pipeline.send(after)
    for sent in (lost, unsent, after):
        pipeline.read_until(sent)
        assert sent.reply is None
        assert isinstance(sent.error, redis.ConnectionError)
    pipeline.close()


def test_a_reply_is_not_waited_for_beyond_the_one_that_is_asked_for(connection, other):
    first = connection.send("ECHO", "first")
    later = connection.send("XREAD", "BLOCK", 0, "STREAMS", "later", "$")
    assert connection.receive(first) == b"first"
    assert not connection.has_reply(later)
    other.call("XADD", "later", "*", "a", "b")
    assert connection.receive(later)[0][0] == b"later"


def test_a_write_that_no_replica_acknowledges_is_done_and_is_not_confirmed(connection):
    with pytest.raises(Unavailable, match="NOREPLICAS 0 of 1 replicas have acknowledged"):
        connection.receive(connection.send("SET", "acknowledged", "no", replicas=1))
    assert connection.call("GET", "acknowledged") == b"no"
    assert connection.retries == {"noreplicas": 1}


def test_replies_that_have_arrived_are_read_and_no_other_is_waited_for(connection, other):
    here = [connection.send("ECHO", "1"), connection.send("ECHO", "2")]
    later = connection.send("XREAD", "BLOCK", 0, "STREAMS", "arrives", "$")
    assert not any(connection.has_reply(sent) for sent in (*here, later))
    stop = Stop()
    while not connection.has_reply(here[1]):
        connection.read_arrived(stop.wait_for(connection.descriptors, 10.0))
    assert connection.has_reply(here[0])
    assert not connection.has_reply(later)
    connection.read_arrived(())
    assert [connection.receive(sent) for sent in here] == [b"1", b"2"]
    other.call("XADD", "arrives", "*", "a", "b")
    connection.read_arrived(stop.wait_for(connection.descriptors, 10.0))
    assert connection.has_reply(later)
    assert connection.descriptors == []
    assert connection.receive(later)[0][0] == b"arrives"


def test_a_connection_that_broke_is_told_by_the_receiver_and_is_not_waited_for(broken):
    connection, sent = broken
    connection.read_arrived(Stop().wait_for(connection.descriptors, 10.0))
    assert all(connection.has_reply(each) for each in sent)
    assert connection.descriptors == []
    with pytest.raises(Unavailable, match="does not answer"):
        connection.receive(sent[0])
    assert connection.call("ECHO", "again") == b"again"


def test_replies_that_a_broken_connection_cannot_bring_are_asked_for_again(broken):
    connection, sent = broken
    connection.retry_timeout = 10.0
    assert connection.receive(sent[1])
    assert connection.failures == 1


def test_a_reply_that_does_not_come_in_time_is_a_failure_of_that_name(redis_url):
    with closing(Connection(redis_url, Stop(), timeout=0.3)) as connection:
        with pytest.raises(Unavailable, match="does not answer"):
            connection.call("XREAD", "BLOCK", 0, "STREAMS", "none", "$")
        assert connection.retries == {"timeout": 1}


def test_commands_sent_together_go_at_once_and_each_has_its_reply(connection, monkeypatch):
    connection.call("PING")
    link, writes = connection._last.client.connection, []
    write = link.send_packed_command
    monkeypatch.setattr(
        link, "send_packed_command", lambda packed: (writes.append(packed), write(packed))
    )
    sent = connection.send_all([("ECHO", f"{i}") for i in range(5)])
    assert [connection.receive(each) for each in sent] == [b"0", b"1", b"2", b"3", b"4"]
    assert len(writes) == 1
    assert connection.call("ECHO", "alone") == b"alone"


def test_commands_sent_together_wait_once_for_a_server_that_does_not_answer():
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        closing(
            Connection(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", Stop(), timeout=0.3)
        ) as connection,
    ):
        began = time.monotonic()
        for each in connection.send_all([("ECHO", f"{i}") for i in range(50)]):
            with pytest.raises(Unavailable):
                connection.receive(each)
        assert time.monotonic() - began < 10, "they wait 15 s one by one"


def test_commands_sent_together_over_a_broken_connection_fail_and_later_ones_do_not(connection):
    connection.call("PING")
    connection._last.client.connection._sock.shutdown(socket.SHUT_RDWR)
    sent = connection.send_all([("ECHO", "a"), ("ECHO", "b")])
    for each in sent:
        with pytest.raises(Unavailable):
            connection.receive(each)
    assert connection.call("ECHO", "again") == b"again"
