"""The endpoint: it answers whatever the worker does, and says in one line what fails."""

import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager, suppress

import pytest
from monitored_feed import COUNT, SETTINGS, Watched, push, work, working
from processes import LIMIT
from session_steps import advance
from system_tools import tool
from world import wait_until

from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, Trouble
from workers.monitor import health
from workers.monitor.health import Health
from workers.monitor.server import (
    MAX_SCRAPES,
    MAX_WAITING_CONNECTIONS,
    Address,
    Endpoint,
    _Handler,
    serving,
)
from workers.monitor.watch import FeedRecord
from workers.session.preflight import open_store
from workers.session.telemetry import Telemetry

# One server is enough: what differs between servers is below the view.
pytestmark = pytest.mark.servers("embedded")


class Served(Watched):
    """An endpoint of a feed, and what it answers."""

    def __init__(self, store, record=FeedRecord, live=60.0):
        super().__init__(store)
        self.metrics = self.watch.feeds[self.feed] = record()
        self.endpoint = Endpoint(self.registry, Health(self.watch, self.cache, live))

    def get(self, path):
        """Return the status and the text that a path gives."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=LIMIT) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@contextmanager
def serve(store, **options):
    found = Served(store, **options)
    with serving(Address("127.0.0.1", 0), found.endpoint) as found.address:
        yield found
    found.close()


@pytest.fixture
def served(store):
    with serve(store) as found:
        yield found


def test_promtool_has_nothing_to_say_against_the_names_and_units(store, served):
    push(store)
    work(store, served.metrics)
    _, text = served.get("/metrics")
    check = [tool("promtool", "prometheus"), "check", "metrics"]
    told = subprocess.run(check, input=text, capture_output=True, text=True, timeout=LIMIT)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_another_path_is_named_with_those_there_are(served):
    assert served.get("/") == (404, "there are /metrics, /livez, /readyz\n")


def fails(why, seconds=0.0):
    """Return a worker that answers, and whose refits have failed for so many seconds."""

    def happens(served):
        served.metrics.enter("answering")
        served.metrics.refits_fail(Trouble(why, time.monotonic() - seconds))

    return happens


def loses(served):
    served.metrics.enter("answering")
    served.watch.connects((), 0.5)
    served.watch.on_tick(time.monotonic() - 2)


def hangs(served):
    served.metrics.enter("answering")
    served.watch.turned -= 100


OK = (200, "ok")
STATES = {
    "it starts": (lambda _: None, (503, "FEED: the worker is starting"), OK),
    "it stands by": (
        lambda served: served.metrics.enter("standby"),
        (503, "FEED: another worker holds the lease, this one stands by"), OK,
    ),
    "it answers": (lambda served: served.metrics.enter("answering"), OK, OK),
    "refits fail": (fails("it died", 5), (503, "refits: of FEED: it died"), OK),
    "refits fail for long": (
        fails("it died", 31), (503, "refits: of FEED: it died"),
        (503, r"refits: of FEED: it died \(for 3\d s\)"),
    ),
    "what failed would forge a second line": (
        fails("a\r\nHTTP/1.1 200 OK\x1b[2J"),
        (503, r"refits: of FEED: a HTTP/1\.1 200 OK\\x1b\[2J"), OK,
    ),
    "the lease is not renewed": (
        loses, (503, r"lease: not renewed for \d+ s, it lasts 0\.5 s"), OK,
    ),
    "the loop hangs": (
        hangs, (503, r"feeds: the loop has not turned for 1\d\d s"),
        (503, r"feeds: the loop has not turned for 1\d\d s \(for 1\d\d s\)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("happens", "ready", "live"), STATES.values(), ids=STATES)
def test_probes_tell_each_state_in_one_line(store, happens, ready, live):
    with serve(store, live=30.0) as served:
        happens(served)
        for path, (status, line) in (("/readyz", ready), ("/livez", live)):
            found = served.get(path)
            assert found[0] == status
            assert re.fullmatch(f"{line.replace('FEED', served.feed)}\n", found[1]), found


class AsksInTheMiddle(FeedRecord):
    """Asks the endpoint from within each page of a replay; the worker's thread waits for it."""

    def replaying(self, done, total):
        super().replaying(done, total)
        self.heard.append((self.get("/readyz"), self.get("/livez"), self.get("/metrics")))


def test_a_scrape_in_the_middle_of_a_replay_is_answered(store):
    push(store)
    work(store, Telemetry(), leaves_snapshot=False, replay_budget=1000)
    with serve(store, record=AsksInTheMiddle) as served:
        served.metrics.get, served.metrics.heard = served.get, []
        with working(store, served.metrics, replay_budget=1000):
            pass
        ready, live, (status, text) = served.metrics.heard[0]
    assert ready == (503, f"{store.keys.feed}: replays, 0 of 120 entries are answered again\n")
    assert live == (200, "ok\n")
    assert status == 200
    assert 'stage="replaying"} 1.0' in text


def test_a_redis_that_does_not_answer_is_told_and_scrapes_go_on(own_redis, feed):
    with Store(own_redis.url, feed) as store, serve(store, live=0.0) as served:
        served.metrics.enter("answering")
        assert served.get("/readyz") == (200, "ok\n")
        embedded.stop(own_redis.directory)
        time.sleep(0.6)  # a view is given again for half a second
        status, line = served.get("/readyz")
        assert status == 503
        assert re.fullmatch("redis: Redis at .* does not answer.*\n", line)
        assert served.get("/livez")[0] == 503  # nothing is forgiven here: live=0
        status, text = served.get("/metrics")
        assert (status, "online_svm_lag_entries{" in text) == (200, False)
        assert f'online_svm_redis_up{{feed="{feed}"}} 0.0' in text


def test_refits_that_fail_are_told_until_they_work_again(store, lagging):
    push(store)
    heard = []

    class AsksWhenRefitsFail(FeedRecord):
        def refits_fail(self, trouble):
            super().refits_fail(trouble)
            self.enter("answering")
            heard.append(self.get("/readyz"))

    with ExitStack() as opened:
        served = opened.enter_context(serve(store, record=AsksWhenRefitsFail))
        served.metrics.get = served.get
        session = opened.enter_context(working(store, served.metrics, batch=8))
        while session.position.n < 50:
            advance(session)
        refits = session._refits
        (slot,) = (one for one in refits._schedule._slots if one.process is not None)
        os.kill(slot.process.pid, signal.SIGKILL)
        while session.position.seq < COUNT:
            advance(session)
    assert heard[0] == (503, f"refits: of {store.keys.feed}: it died\n")
    assert heard[-1] == (200, "ok\n")


def test_a_feed_that_waits_for_its_consumers_lives_and_says_so(store, served):
    push(store)
    block = {"downstream": "block", "retain_out": 10, "batch": 8, "window": 10}
    chosen = WorkerSettings(**(SETTINGS | block))
    with (
        open_store(store.keys.feed, chosen, store.url) as own,
        working(own, served.metrics, **block) as session,
    ):
        wait_until(lambda: advance(session) or served.metrics.waiting is not None)
        told = f"{store.keys.feed}: waits for the consumer group 'downstream'\n"
        assert served.get("/readyz") == (503, told)
        assert served.get("/livez") == (200, "ok\n")


@pytest.mark.parametrize("field", [("seq", "many"), ("n", "1e9"), ("epoch", "")])
def test_a_state_that_is_damaged_is_told_and_ends_no_thread(store, served, field):
    push(store)
    with working(store, served.metrics) as session:
        advance(session)
        session.finish_commit()
    store.call("HSET", store.keys.state, *field)
    served.metrics.enter("answering")
    status, line = served.get("/readyz")
    assert (status, f"redis: {store.keys.state} is damaged" in line) == (503, True)
    assert served.get("/metrics")[0] == 200


def connected(served, opened, sends=b""):
    client = socket.create_connection((served.address.host, served.address.port))
    client.sendall(sends)
    return opened.enter_context(client)


@pytest.fixture
def patient(monkeypatch):
    """Let the endpoint wait longer for a silent client than `probed` does for an answer."""
    monkeypatch.setattr(_Handler, "timeout", 3 * LIMIT)


def probed(served, count=20):
    """Ask both probes so often; none of them waits until a silent client is disconnected."""
    for _ in range(count):
        assert served.get("/livez") == (200, "ok\n")
        assert served.get("/readyz")[0] == 503


@pytest.mark.parametrize("begins", [None, b"", b"GET /liv", b"GET /metrics HTTP/1.1\r\n"])
def test_silent_and_slow_clients_delay_no_probe(patient, served, begins):
    ended = threading.Event()
    with ExitStack() as opened:
        count = 3 * MAX_WAITING_CONNECTIONS if begins is None else MAX_WAITING_CONNECTIONS
        clients = [connected(served, opened, begins or b"") for _ in range(count)]

        def drip():
            while begins is not None and not ended.wait(0.05):
                for client in clients:
                    with suppress(OSError):
                        client.sendall(b"a: b\r\n" if begins.endswith(b"\n") else b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            probed(served)
        finally:
            ended.set()
            dripping.join()


def test_slow_scrapes_delay_no_probe_and_are_bounded(patient, served):
    begun, goes_on = threading.Semaphore(0), threading.Event()

    class Slow:
        def collect(self):
            begun.release()
            goes_on.wait(3 * LIMIT)
            return []

    slow = Slow()
    served.registry.register(slow)
    with ExitStack() as opened:
        opened.callback(served.registry.unregister, slow)
        opened.callback(goes_on.set)
        scrape = b"GET /%6detrics?x HTTP/1.0\r\n\r\n"
        clients = [connected(served, opened, scrape) for _ in range(MAX_SCRAPES)]
        for _ in range(MAX_SCRAPES):
            assert begun.acquire(timeout=LIMIT)
        probed(served)
        status, told = served.get("/metrics")
        assert (status, "too many requests at once" in told) == (503, True)
        goes_on.set()
        assert all(client.recv(12) == b"HTTP/1.0 200" for client in clients)
    assert served.get("/metrics")[0] == 200


def test_a_probe_does_not_wait_for_a_scrape_of_a_slow_redis(store, monkeypatch):
    begun, goes_on, read = threading.Event(), threading.Event(), health.read_many

    def slowly(*given):
        begun.set()
        goes_on.wait(3 * LIMIT)
        return read(*given)

    monkeypatch.setattr(health, "read_many", slowly)
    with serve(store) as served, ExitStack() as opened:
        served.metrics.enter("answering")
        scrape = threading.Thread(target=served.get, args=("/metrics",))
        scrape.start()
        opened.callback(scrape.join)
        opened.callback(goes_on.set)
        assert begun.wait(LIMIT)
        assert served.get("/readyz") == (200, "ok\n")


def test_of_endless_headers_so_much_is_read_and_the_request_is_answered(served):
    with ExitStack() as opened:
        client = connected(served, opened, b"GET /livez HTTP/1.0\r\n" + b"a: " + b"x" * 100_000)
        assert client.recv(12) == b"HTTP/1.0 200"


def test_more_clients_than_there_is_room_for_are_turned_away(patient, served):
    with ExitStack() as opened:
        clients = [connected(served, opened) for _ in range(MAX_WAITING_CONNECTIONS + 4)]
        ended = []
        wait_until(lambda: ended.extend(select.select(clients, [], [], 0)[0]) or len({*ended}) == 4)
        assert {client.recv(1) for client in ended} == {b""}


def test_a_port_alone_is_of_this_machine():
    assert Address.parse("9464") == ("127.0.0.1", 9464)
    assert Address.parse("[::]:9464") == ("::", 9464)
    assert Address.parse("0.0.0.0:1") == ("0.0.0.0", 1)


def test_a_port_that_is_taken_is_refused_by_name(served):
    with (
        pytest.raises(BadConfiguration, match=f"nothing can listen on {served.address}"),
        serving(served.address, served.endpoint),
    ):
        pass
