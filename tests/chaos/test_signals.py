"""SIGTERM and SIGINT at random moments from the line `at work` on: a graceful stop, every time.

Most signals go to children of a warmed parent, some to the real command. A few run in the default
suite, and all of them with `make chaos`. In half of the children each wait is split into many.
"""

import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from fault_workers import OPTIONS
from world import Worker, push, rows, wait_until

from workers.broker.store import Store
from workers.feed.position import START
from workers.stop import ONE_REQUEST_SECONDS

SEED = 7
GRACE = 10.0
AT_ONCE = 6
"""Children that live at the same time: they mostly wait."""

HANGS = "hangs"
LATE = "late"
"""Two signals were two, since this machine stood still for half a second between them."""


class Answered:
    """A feed that is begun again and again; its writer is in the middle of its input, or idle."""

    options = ()

    def __init__(self, store, start, choose):
        self.store, self._start, self.choose, self._pushed = store, start, choose, 0

    def begin(self):
        count = self.choose.choice((1, 20, 60))
        push(self.store, rows(count), self._pushed + 1)
        self._pushed += count
        batch = ("--batch", str(self.choose.choice((1, 10))))
        return "worker", self.store.keys.feed, *OPTIONS, *batch, *self.options

    def check(self):
        """Check what a graceful stop leaves behind."""
        state = self.store.state()
        # A child that was stopped before the first answer of its feed had nothing to save.
        saved = START if state.snapshot is None else state.snapshot.cursor
        assert saved == state.position.cursor

    def turn(self):
        """Start a writer, signal it, and return how it ended: an exit code, HANGS or LATE."""
        writer = self._start(*self.begin(), "--redis", self.store.url)

        def is_at_work():
            assert writer.poll() is None, writer.said
            return "at work" in writer.said

        wait_until(is_at_work)
        time.sleep(self.choose.random() * 0.25)
        began = time.monotonic()
        writer.send_signal(self.choose.choice((signal.SIGTERM, signal.SIGINT)))
        if self.choose.random() < 0.5:
            time.sleep(self.choose.choice((0.0, 0.0005, 0.02, 0.2)))
            writer.send_signal(signal.SIGTERM)
        is_late = time.monotonic() - began >= ONE_REQUEST_SECONDS
        while (code := writer.poll()) is None:
            if time.monotonic() > began + GRACE + 30.0:
                writer.kill()
                return HANGS
            time.sleep(0.005)
        if is_late and code:
            return LATE
        assert code == 0, f"{code}: {writer.said}"
        assert not self.store.call("EXISTS", self.store.keys.lease), "the lease is not free"
        self.check()
        return code


class HeldBack(Answered):
    """A worker that waits for a consumer of its answers, who never comes."""

    options = ("--downstream", "block", "--retain-out", "5")


@pytest.mark.timeout(900)  # a thousand children, each with a start and an end
@pytest.mark.parametrize("count", [
    pytest.param(24, marks=pytest.mark.slow), pytest.param(1000, marks=pytest.mark.chaos),
])  # fmt: skip
def test_a_signal_at_a_random_moment_stops_a_child_in_order(
    nursery, embedded_url, feed, tmp_path, told, count
):
    def slot(number):
        choose = random.Random(f"{SEED} {number}")
        made, log = (Answered, HeldBack)[number % 2], tmp_path / f"{number}.log"

        def start(*arguments):
            log.unlink(missing_ok=True)
            return nursery.run(arguments, log, waits_shortly=choose.random() < 0.5)

        with Store(embedded_url, f"{feed}-{number}") as store:
            mine = made(store, start, choose)
            return Counter(mine.turn() for _ in range(number, count, AT_ONCE))

    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = sum(pool.map(slot, range(AT_ONCE)), Counter())
    seconds = time.monotonic() - began
    told(f"{count} signals, seed {SEED}: ended with {dict(ended)} after {seconds:.0f} s")
    assert ended.keys() <= {0, LATE}
    assert ended[0] > 0.8 * count


@pytest.mark.timeout(900)  # fifty starts of the whole program
@pytest.mark.parametrize("count", [2, pytest.param(50, marks=pytest.mark.chaos)])
def test_a_signal_stops_the_real_command_in_order(embedded_url, feed, told, count):
    with Store(embedded_url, feed) as store, ExitStack() as opened:
        real = Answered(
            store, lambda *args: opened.enter_context(Worker(*args)), random.Random(SEED)
        )
        ended = Counter(real.turn() for _ in range(count))
    told(f"{count} signals to the real command, seed {SEED}: ended with {dict(ended)}")
    assert ended.keys() <= {0, LATE}
