"""A worker and a producer of a feed, each in a thread, while its servers fail or are replaced."""

import threading
import time

from session_steps import run
from world import outcome, push, rows, session, wait_until

from workers.broker import embedded
from workers.broker.store import Store
from workers.errors import WorkerError
from workers.stop import Stop


class Answering:
    """A worker in a thread of its own.

    It pauses so many seconds between two batches, so that there is time for a fault however fast
    the machine is, and waits `timeout` seconds for a reply. `confirmed` has the payload of each
    answer that counts as committed, by its entry ID; `times` when each batch was; `error` what
    ended it.
    """

    def __init__(self, url, feed, batch=10, pause=0.0, timeout=None, keep_input=True, **options):
        self.confirmed, self.times, self.error = {}, [], None
        self.stop = Stop(grace=30.0)
        self._batch, self._pause, self._keep_input = batch, pause, keep_input
        self.store = Store(url, feed, self.stop, retry_timeout=30.0, block_ms=20, **options)
        if timeout is not None:
            self.store._connection.timeout = self.store._reader.timeout = timeout
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            with self.store:
                running = session(
                    self.store, self._batch, stop=self.stop, keep_input=self._keep_input,
                    snapshot_every=60, observe=self._observe,
                )  # fmt: skip
                self.store.retry_forever()
                run(running, self.stop)
        except WorkerError as error:
            self.error = error

    def _observe(self, outcome):
        self.times.append(time.monotonic())
        for identity, payload in zip(outcome.ids, outcome.out, strict=True):
            before = self.confirmed.setdefault(identity, payload)
            assert before == payload, "an answer that was confirmed has other bytes now"
        self.stop.wait(self._pause)

    def wait_for(self, count, seconds=60.0):
        def is_done():
            assert self.error is None, self.error
            return len(self.confirmed) >= count

        wait_until(is_done, seconds, f"{count} answers are confirmed")

    def wait_for_end(self):
        """Wait until it has ended by itself; return the error."""
        self._thread.join(60.0)
        assert not self._thread.is_alive(), "it goes on"
        return self.error

    def end(self):
        """Stop it; return the error that ended it, if one did."""
        self.stop.request()
        return self.wait_for_end()

    def longest_pause(self):
        return max(b - a for a, b in zip(self.times, self.times[1:], strict=False))


class Filling:
    """A producer in a thread of its own: entry i has the ID i-0 and is sent until it is taken.

    So many replicas must have an entry before the next one is sent, `pause` seconds later.
    """

    def __init__(self, url, feed, entries, first=1, replicas=0, pause=0.0):
        self._entries, self._first = entries, first
        self._replicas, self._pause = replicas, pause
        self._store = Store(url, feed, retry_timeout=60.0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.done = 0
        self.error = None
        self._thread.start()

    def _run(self):
        connection, key = self._store._connection, self._store.keys.input
        try:
            for i, fields in enumerate(self._entries, self._first):
                command = ("XADD", key, f"{i}-0", *fields)
                try:
                    connection.receive(connection.send(*command, replicas=self._replicas))
                except WorkerError as error:
                    if "equal or smaller" not in str(error):  # its first reply was lost
                        raise
                self.done += 1
                time.sleep(self._pause)
        except WorkerError as error:
            self.error = error
        finally:
            self._store.close()

    def wait(self, seconds=120.0):
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"{self.done} of {len(self._entries)} were taken"
        assert self.error is None, self.error


def refill(store, entries):
    """Push again what the producer finds missing."""
    last = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", 1)
    held = int(last[0][0].split(b"-")[0]) if last else 0
    push(store, entries[held:], held + 1)


def lone_outcome(count, entries=None):
    """Return what a lone worker on one server answers to the first entries."""
    with embedded.temporary() as server:
        Filling(server.url, "lone", entries or rows(count)).wait()
        worker = Answering(server.url, "lone")
        worker.wait_for(count)
        assert worker.end() is None
        with Store(server.url, "lone") as store:
            return outcome(store)
