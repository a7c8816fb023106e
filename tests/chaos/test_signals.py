"""SIGTERM and SIGINT at random moments from the line `at work` on: a graceful stop, every time.

Most signals go to children of a warmed parent, some to the real command. A few run in the default
suite, and all of them with `make chaos`; the seed stands beside each count. In half of the children
each wait is split into many short ones.
"""

import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from fault_workers import arguments, command
from processes import Process
from world import drain, push, rows, session

from workers.admin.reset import reset
from workers.broker.store import Store
from workers.stop import ONE_REQUEST

SEED = 7
GRACE = 10.0
AT_ONCE = 6
"""Children that live at the same time: they mostly wait."""

HANGS = "hangs"

SOURCES = ("signals-rbf", "signals-linear")


@pytest.fixture(scope="module")
def sources(embedded_url):
    """Two answered feeds over the same ids."""
    entries = [[*fields, "id", str(i)] for i, fields in enumerate(rows())]
    for feed in SOURCES:
        with Store(embedded_url, feed, block_ms=20) as store:
            push(store, entries)
            drain(session(store, batch=64), len(entries))
    return embedded_url


class Feed:
    """A feed that is begun again and again, and whose writer is stopped each time."""

    def __init__(self, nursery, url, name, log, choose):
        self._nursery, self._url, self._name, self._log = nursery, url, name, log
        self._choose = choose
        self._pushed = 0

    def turn(self):
        """Start a writer, signal it, and return how it ended: an exit code, or HANGS."""
        self._log.unlink(missing_ok=True)
        with Store(self._url, self._name) as store:
            writer = self.begin(store)
            self._wait_for_work(writer)
            time.sleep(self._choose.random() * 0.25)
            return self._end(writer, store)

    def begin(self, store):
        raise NotImplementedError

    def check(self, store):
        """Check what a graceful stop leaves behind."""
        assert not store.call("EXISTS", store.keys.lease), "the lease is not free"

    def _wait_for_work(self, writer):
        deadline = time.monotonic() + 60.0
        while not self._log.exists() or b"at work" not in self._log.read_bytes():
            assert time.monotonic() < deadline, "it does not begin"
            assert writer.poll() is None, self._log.read_text()
            time.sleep(0.002)

    def _end(self, writer, store):
        began = time.monotonic()
        writer.send_signal(self._choose.choice((signal.SIGTERM, signal.SIGINT)))
        if self._choose.random() < 0.5:
            time.sleep(self._choose.choice((0.0, 0.0005, 0.02, 0.2)))
            writer.send_signal(signal.SIGTERM)
        is_late = time.monotonic() - began >= ONE_REQUEST  # this machine stood still
        while (code := writer.poll()) is None:
            if time.monotonic() > began + GRACE + 2.0:
                writer.kill()
                return HANGS
            time.sleep(0.005)
        if not (is_late and code):
            assert code == 0, f"{code}: {self._log.read_text()}"
            self.check(store)
        return code


class Answered(Feed):
    """A worker in the middle of its input, or idle after it."""

    options = ()

    def begin(self, store):
        count = self._choose.choice((1, 20, 60))
        push(store, rows(count), self._pushed + 1)
        self._pushed += count
        batch = str(self._choose.choice((1, 10)))
        args = arguments(self._name, self._url, "--batch", batch, *self.options)
        return self._nursery.run(args, self._log, waits_shortly=self._choose.random() < 0.5)

    def check(self, store):
        super().check(store)
        state = store.state()
        assert state.snapshot is not None
        assert state.snapshot.cursor == state.position.cursor


class HeldBack(Answered):
    """A worker that waits for a consumer of its answers, who never comes."""

    options = ("--downstream", "block", "--retain-out", "5")


class Combined(Feed):
    """A combination at its first answers, or idle after them."""

    def begin(self, store):
        if self._choose.random() < 0.2:
            reset(store, with_input=True)
        into = ["combine", *SOURCES, "--into", self._name, "--redis", self._url, "--batch", "7"]
        return self._nursery.run(into, self._log, waits_shortly=self._choose.random() < 0.5)


KINDS = {"worker": (Answered, HeldBack), "combination": (Combined,)}


def signalled(nursery, url, name, directory, kind, count):
    """Send the signals, to a few children at a time; return how often each way to end was seen."""

    def slot(number):
        choose = random.Random(f"{SEED} {kind} {number}")
        made = KINDS[kind][number % len(KINDS[kind])]
        mine = made(nursery, url, f"{name}-{number}", directory / f"{number}.log", choose)
        return Counter(mine.turn() for _ in range(number, count, AT_ONCE))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(slot, range(AT_ONCE)), Counter())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_at_a_random_moment_stops_a_child_in_order(nursery, sources, feed, tmp_path, kind):
    assert signalled(nursery, sources, feed, tmp_path, kind, 24) == {0: 24}


@pytest.mark.chaos
@pytest.mark.timeout(900)  # a thousand children, each with a start and an end
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_signals_at_random_moments_stop_children_in_order(
    nursery, sources, feed, tmp_path, told, kind
):
    began, count = time.monotonic(), 1000
    ended = signalled(nursery, sources, feed, tmp_path, kind, count)
    told(f"{count} signals to a {kind}, seed {SEED}: {told_of(ended, began)}")
    # Two signals are two where this machine stood still for half a second between them.
    assert ended[0] >= 0.99 * count
    assert not ended[HANGS]


def told_of(ended, began):
    return f"ended with {dict(ended)} after {time.monotonic() - began:.0f} s"


class Command(Process):
    """The real command, with its log in a file."""

    def __init__(self, log, *arguments):
        with log.open("wb") as said:
            super().__init__(command(*arguments), stderr=said)


class Real(Answered):
    """The real command in place of a child."""

    def begin(self, store):
        push(store, rows(20), self._pushed + 1)
        self._pushed += 20
        self.process = Command(self._log, self._name, self._url)
        return self.process


def real_ends(url, name, log, count):
    """Send the signals to real commands; return how often each way to end was seen."""
    real = Real(None, url, name, log, random.Random(SEED))
    try:
        return Counter(real.turn() for _ in range(count))
    finally:
        real.process.kill()
        real.process.wait()


def test_a_signal_at_a_random_moment_stops_the_real_command_in_order(sources, feed, tmp_path):
    assert real_ends(sources, feed, tmp_path / "log", 2) == {0: 2}


@pytest.mark.chaos
@pytest.mark.timeout(900)  # fifty starts of the whole program
def test_fifty_signals_at_random_moments_stop_the_real_command_in_order(
    sources, feed, tmp_path, told
):
    began = time.monotonic()
    ended = real_ends(sources, feed, tmp_path / "log", 50)
    told(f"50 signals to the real command, seed {SEED}: {told_of(ended, began)}")
    assert ended == {0: 50}
