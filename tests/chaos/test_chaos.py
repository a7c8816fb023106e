"""Workers killed, paused and started together, and a Redis killed under them: the same bytes."""

import random
import signal
import time

import pytest
from fault_redis import Server
from world import finished, push, rows, wait_until

from workers.broker.store import Store

# Each test injects 20 to 200 faults, and waits for progress between two.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

SEED = 5
FENCED = 3


class Producer:
    """Pushes the stream a few entries at a time, so that there is always something to do."""

    def __init__(self, store, total):
        self._store, self._rows, self.pushed = store, rows(total), 0

    def push(self, count):
        push(self._store, self._rows[self.pushed : self.pushed + count], self.pushed + 1)
        self.pushed += count

    def wait(self, goal):
        wait_until(lambda: self._store.length(self._store.keys.out) >= goal)


def end(worker):
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_kills_at_random_moments(nursery, embedded_url, feed, times, expected_of, told):
    """Each after real progress: a random number of entries further than the worker before it."""
    choose, kills, step = random.Random(SEED), times["KILLS"], 25
    with Store(embedded_url, feed) as store:
        producer = Producer(store, kills * step + 100)
        for _ in range(kills):
            goal = producer.pushed + choose.randint(1, step)
            producer.push(step)
            batch, every = choose.choice((1, 3, 7, 64)), choose.choice((30, 200))
            worker = nursery.start(
                feed, embedded_url, "--batch", str(batch), "--replay-budget", str(every)
            )
            producer.wait(goal)
            time.sleep(choose.random() * 0.01)
            assert worker.kill() == -signal.SIGKILL
        producer.push(100)
        worker = nursery.start(feed, embedded_url)
        found = finished(store, producer.pushed)
        end(worker)
        assert found == expected_of(producer.pushed)
        assert store.state().epoch == kills + 1
        told(f"{kills} kills", found[1])


def test_pauses_with_a_take_over(nursery, embedded_url, feed, times, expected_of, told):
    choose, pauses, step = random.Random(SEED), times["PAUSES"], 40
    with Store(embedded_url, feed) as store:
        producer = Producer(store, pauses * step)
        worker = nursery.start(feed, embedded_url, "--lease", "0.5", "--batch", "1")
        for _ in range(pauses):
            before = producer.pushed
            producer.push(step // 2)
            producer.wait(before + choose.randint(1, step // 2))
            worker.send_signal(signal.SIGSTOP)
            batch = str(choose.choice((1, 5)))
            successor = nursery.start(feed, embedded_url, "--lease", "0.5", "--batch", batch)
            producer.push(step // 2)
            producer.wait(before + step // 2 + choose.randint(1, step // 2))
            worker.send_signal(signal.SIGCONT)
            resumed = time.monotonic()
            assert worker.wait() == FENCED
            assert time.monotonic() - resumed < 5.0
            worker = successor
        found = finished(store, producer.pushed)
        end(worker)
        assert found == expected_of(producer.pushed)
        assert store.state().epoch == pauses + 1
        told(f"{pauses} pauses with a take-over", found[1])


def holder_is(store, worker):
    return f'"pid": {worker.pid},'.encode() in (store.call("GET", store.keys.lease) or b"")


def test_two_workers_that_start_together(nursery, embedded_url, feed, times, expected_of, told):
    """One writer an epoch: the other waits, and takes over when the first is stopped."""
    starts, step = times["STARTS"], 20
    with Store(embedded_url, feed) as store:
        producer = Producer(store, starts * step)
        for turn in range(starts):
            producer.push(step)
            pair = [
                nursery.start(feed, embedded_url, "--lease", "0.5", "--batch", "3") for _ in "ab"
            ]
            producer.wait(producer.pushed)
            assert store.state().epoch == 2 * turn + 1
            for worker in sorted(pair, key=lambda worker: not holder_is(store, worker)):
                wait_until(lambda worker=worker: holder_is(store, worker))
                end(worker)
        found = finished(store, producer.pushed)
        assert found == expected_of(producer.pushed)
        told(f"{starts} pairs started together", found[1])


@pytest.mark.parametrize("breaks", ["stop", "kill"])
def test_a_redis_that_goes_away_and_comes_back(
    nursery, tmp_path, feed, times, expected_of, told, breaks
):
    """Stopped in order or killed, with fsync always; the worker lives through all of it."""
    choose, count, step = random.Random(SEED), times["REDIS"], 60
    server = Server(tmp_path / "redis", "always")
    try:
        with Store(server.url, feed, patience=20.0) as store:
            producer = Producer(store, count * step)
            worker = nursery.start(feed, server.url, "--batch", "2", "--replay-budget", "100")
            for _ in range(count):
                before = producer.pushed
                producer.push(step)
                producer.wait(before + choose.randint(1, step))
                getattr(server, breaks)()
                server.start()
            found = finished(store, producer.pushed)
            assert store.state().epoch == 1
            end(worker)
            assert found == expected_of(producer.pushed)
            told(f"{count} times Redis {breaks}, fsync always", found[1])
    finally:
        server.kill()


def test_an_append_only_file_cut_at_any_byte(nursery, tmp_path, feed, times, expected_of, told):
    """The producer pushes again what the file lost; the worker notices and reads again."""
    choose, cuts, step = random.Random(SEED), times["CUTS"], 30
    server = Server(tmp_path / "redis", "always")
    try:
        with Store(server.url, feed, patience=20.0) as store:
            producer = Producer(store, cuts * step)
            worker = nursery.start(feed, server.url, "--batch", "3", "--replay-budget", "50")
            for _ in range(cuts):
                producer.push(step)
                producer.wait(producer.pushed)
                server.stop()
                size = server.append_only_file.stat().st_size
                with server.append_only_file.open("r+b") as file:
                    file.truncate(size - choose.randint(1, 8000))
                server.start()
                last = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", 1)
                producer.pushed = int(last[0][0].split(b"-")[0])
            producer.push(cuts * step - producer.pushed)
            found = finished(store, cuts * step)
            end(worker)
            assert found == expected_of(cuts * step)
            told(f"{cuts} cuts of the append-only file", found[1])
    finally:
        server.kill()
