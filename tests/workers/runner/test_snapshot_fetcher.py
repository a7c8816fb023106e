"""Snapshots that are fetched ahead are those that a start would read; else it reads them itself."""

import socket
import threading

import pytest
from many_feeds import alone, answer_alone, contents, running, settings, wait_for
from processes import LIMIT
from world import push, rows, wait_until

from workers.broker import large_replies
from workers.broker.store import Store
from workers.runner.feed_task import SnapshotFetcher
from workers.session import snapshots


@pytest.fixture
def store(embedded_url, feed):
    with Store(embedded_url, feed, block_ms=20) as opened:
        push(opened, rows(170, 0)[:130])
        answer_alone(opened, 130, settings())
        opened.register()
        yield opened


@pytest.fixture
def fetcher(embedded_url):
    woken = threading.Event()
    opened = SnapshotFetcher(embedded_url, woken.set)
    opened.woken = woken
    yield opened
    opened.close()


def fetch(fetcher, store):
    found = fetcher.fetch(store.keys.feed).result(timeout=LIMIT)
    assert fetcher.woken.wait(LIMIT)
    return found


def key_of_newest(store):
    return store.state().snapshot.keys(store.keys)[0]


def test_what_is_fetched_is_what_a_start_reads(store, fetcher):
    state = store.state()
    name = state.snapshot, state.pinned.config_hash
    assert fetch(fetcher, store) == {name: snapshots.read(store, *name)}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store: store.call("SETRANGE", key_of_newest(store), 5000, b"\0\0\0\0"),
        lambda store: store.call("DEL", key_of_newest(store)),
        lambda store: store.call("HSET", store.keys.state, "snapshot", "no pointer"),
        lambda store: store.call("HDEL", store.keys.state, "snapshot"),
        lambda store: store.call("DEL", store.keys.state),
        lambda store: (store.call("DEL", store.keys.state), store.call("SET", store.keys.state, 1)),
        lambda store: (
            store.call("DEL", key_of_newest(store)),
            store.call("SADD", key_of_newest(store), 1),
        ),
    ],
)  # fmt: skip
def test_where_anything_is_wrong_nothing_is_fetched_and_the_next_one_is(
    store, fetcher, embedded_url, feed, spoil
):
    with Store(embedded_url, f"{feed}-good") as good:
        push(good, rows(60, 1))
        answer_alone(good, 60, settings())
        spoil(store)
        assert fetch(fetcher, store) == {}
        ((pointer, _),) = fetch(fetcher, good)
        assert pointer == good.state().snapshot


def test_what_is_closed_leaves_no_socket_open(store, embedded_url):
    fetcher = SnapshotFetcher(embedded_url, lambda: None)
    fetcher.fetch(store.keys.feed).result(timeout=LIMIT)
    (connected,) = fetcher._reader._clients.values()
    sock = connected.connection._sock
    fetcher.close()
    wait_until(lambda: sock.fileno() == -1)


def test_a_snapshot_beyond_the_bound_is_not_fetched(store, fetcher, monkeypatch):
    monkeypatch.setattr(large_replies, "MAX_SNAPSHOT_BYTES", 1000)
    assert fetch(fetcher, store) == {}
    monkeypatch.undo()
    assert fetch(fetcher, store)


def test_after_the_connection_broke_nothing_is_fetched_for_a_while_and_then_over_another(
    store, fetcher, monkeypatch
):
    monkeypatch.setattr(large_replies, "SILENT_SECONDS", LIMIT)
    assert fetch(fetcher, store)
    (connected,) = fetcher._reader._clients.values()
    connected.connection._sock.shutdown(socket.SHUT_RDWR)
    assert fetch(fetcher, store) == {}
    assert fetch(fetcher, store) == {}
    monkeypatch.setattr(large_replies, "SILENT_SECONDS", 0.0)
    assert fetch(fetcher, store)


def test_a_start_passes_over_a_damaged_snapshot_and_gives_the_same_bytes(store, embedded_url, feed):
    damaged = key_of_newest(store)
    store.call("SETRANGE", damaged, 5000, b"\0\0\0\0")
    with running([feed, f"{feed}-none"], embedded_url):
        push(store, rows(170, 0)[130:], first=131)
        wait_for(170, store)
    assert not store.call("EXISTS", damaged)
    assert contents(store) == alone(embedded_url, rows(170, 0))


def test_the_usual_start_reads_no_snapshot_a_second_time(store, embedded_url, feed, monkeypatch):
    asked = []
    monkeypatch.setattr(Store, "get_snapshot", lambda _store, pointer: asked.append(pointer))
    with running([feed, f"{feed}-none"], embedded_url):
        push(store, rows(170, 0)[130:], first=131)
        wait_for(170, store)
    assert asked == []


class Wrapped(socket.socket):
    """As those over TLS it is not a plain socket, and takes no flags."""

    def recv_into(self, buffer, nbytes=0, flags=0):
        assert not flags
        return super().recv_into(buffer, min(nbytes or len(buffer), 1000))


@pytest.mark.parametrize("kind", [socket.socket, Wrapped])
def test_a_buffer_is_filled_however_the_bytes_arrive(kind):
    ours, theirs = socket.socketpair()
    mine = kind(fileno=ours.detach())
    mine.settimeout(LIMIT)
    sent = bytes(range(256)) * 400
    writer = threading.Thread(target=lambda: [theirs.sendall(sent[i : i + 7000])
                                              for i in range(0, len(sent), 7000)])  # fmt: skip
    writer.start()
    held = memoryview(bytearray(len(sent)))
    large_replies._fill(mine, held)
    writer.join()
    assert held == sent
    assert mine.gettimeout() == LIMIT
    theirs.close()
    with pytest.raises(ConnectionError):
        large_replies._fill(mine, held)
    mine.close()
