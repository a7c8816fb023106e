"""A feed in a test: its Redis, its input, what answers it, what came of it, and how to wait.

`World` holds the five together; the functions serve tests that open their stores themselves.
"""

import json
import os
import signal
import sys
import tempfile
import time
from contextlib import ExitStack

import numpy as np
from processes import LIMIT, Process
from pure_replay import replayed
from session_steps import answer_batch, recovery, taken_over

from online_svm.config import PredictorConfig
from workers.broker.store import Store
from workers.config.settings import Limits, WorkerSettings
from workers.session.session import Session, SessionOptions

SETTINGS = {
    "classes": ("a", "b"), "window": 60, "refit_every": 20, "metrics_every": 10,
    "gamma": 0.5,
}  # fmt: skip
"""Of a feed in most tests: each refit takes effect at once, and there are several of them."""

CONFIG = PredictorConfig.model_validate(SETTINGS)

RECOVERY = {
    "stop", "refits", "telemetry", "may_create", "writer", "retention", "replay_snapshot_seconds",
}  # fmt: skip
"""Options of a session in a test that its recovery takes."""

COUNT = 240
"""Entries of the feed in most tests."""


class World:
    """A feed on one server, whose settings differ from `SETTINGS` by `changes`.

    Commands are retried for `retry_timeout` seconds. `push` takes from `entries`; the i-th
    of those `pushed` has the ID i-0.
    """

    def __init__(self, url, feed, run_command=None, retry_timeout=0.0, **changes):
        self.url, self.feed, self.pushed, self.entries = url, feed, 0, rows()
        self._run_command, self._given = run_command, SETTINGS | changes
        self.settings = WorkerSettings(**self._given)
        self._retry_timeout, self._opened = retry_timeout, ExitStack()
        self.store = self.open()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._opened.close()

    def open(self, url=None, **options):
        options = {"block_ms": 20, "retry_timeout": self._retry_timeout} | options
        return self._opened.enter_context(Store(url or self.url, self.feed, **options))

    def beside(self, name, **changes):
        made = World(self.url, f"{self.feed}-{name}", self._run_command, self._retry_timeout,
                     **self._given | changes)  # fmt: skip
        return self._opened.enter_context(made)

    # Input

    def push(self, entries=COUNT):
        """Push these entries, or so many more of `entries`; return how many there are now."""
        if isinstance(entries, int):
            entries = self.entries[self.pushed : self.pushed + entries]
        push(self.store, entries, self.pushed + 1)
        self.pushed += len(entries)
        return self.pushed

    # What answers

    def session(self, store=None, **options):
        config, limits = self.settings.predictor, self.settings.limits
        return session(store or self.store, **{"config": config, "limits": limits} | options)

    def answer(self, upto=None, **options):
        """Let a session answer all that was pushed, or so many entries; return the session."""
        running = self.session(**options)
        drain(running, self.pushed if upto is None else upto)
        return running

    def worker(self, *options, **process):
        """Start the real command on the feed; the world kills it where it still runs."""
        command = ["worker", self.feed, "--redis", self.url, *flags_of(self._given), *options]
        return self._opened.enter_context(Worker(*command, **process))

    def work(self, upto=None, *options):
        """Let the real command answer so many entries and stop it; return what it said."""
        worker = self.worker(*options)
        worker.wait_for(self.store, self.pushed if upto is None else upto)
        return worker.stopped()

    def run(self, *arguments):
        return self._run_command(*arguments, "--redis", self.url)

    # What came of it

    @property
    def seq(self):
        return seq_of(self.store)

    def wait_for(self, count, seconds=60.0):
        return wait_until(lambda: self.seq >= count, seconds, f"{count} entries are answered")

    def payloads(self):
        return payloads(self.store)

    def outcome(self):
        return outcome(self.store)

    def check(self):
        """Check that all is answered, with the payloads and the digest of the pure replay."""
        entries = self.entries[: self.pushed]
        out, met, position, _ = replayed(self.settings.predictor, entries, self.settings.limits)
        (answers, reports), reached = self.outcome()
        assert [payload for _, payload in answers] == out
        assert reports == met
        assert reached == position


class Worker(Process):
    """`online-svm` in a process of its own, with its standard error in a file."""

    def __init__(self, *arguments, program=(sys.executable, "-m", "workers.cli"), **options):
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed on exit)
        super().__init__([*program, *map(str, arguments)], stderr=self._log, **options)

    def __exit__(self, *error):
        super().__exit__(*error)
        self._log.close()

    @property
    def said(self):
        log = self._log.fileno()
        return os.pread(log, os.fstat(log).st_size, 0).decode()

    def wait_for(self, store, count, seconds=60.0):
        """Wait until a feed has so many answers; the worker must not end before."""

        def is_answered():
            assert self.poll() is None, self.said
            return seq_of(store) >= count

        return wait_until(is_answered, seconds, f"{count} entries are answered")

    def stopped(self, seconds=LIMIT):
        """Stop it in order, within these seconds; return what it said."""
        self.send_signal(signal.SIGTERM)
        assert self.wait(seconds) == 0, self.said
        return self.said


def work(url, feed, settings, count):
    """Let a worker answer so many entries of a feed, then stop it; return what it said."""
    command = ("worker", feed, "--redis", url, *flags_of(settings))
    with Store(url, feed) as store, Worker(*command) as worker:
        worker.wait_for(store, count)
        return worker.stopped()


def flags_of(settings):
    flags = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] * value
        else:
            flags += [flag, ",".join(value) if isinstance(value, tuple) else str(value)]
    return flags


def wait_until(is_true, seconds=60.0, why="it took too long", pause=0.005):
    """Wait until a condition holds; return how many seconds that took."""
    began = time.monotonic()
    while not is_true():
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {why}"
        time.sleep(pause)
    return time.monotonic() - began


def seq_of(store):
    state = store.state()
    return 0 if state is None else state.position.seq


def rows(count=COUNT, seed=0):
    """Return the fields of input entries of two noisy classes, one in fifty of them bad."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=count) > 0, "b", "a")
    texts = ["[1,2]" if i % 50 == 7 else json.dumps(x.tolist()) for i, x in enumerate(X)]
    return [["x", text, "y", str(label)] for text, label in zip(texts, y, strict=True)]


def push(store, entries, first=1):
    """Add entries under the IDs first-0, (first + 1)-0, ..."""
    for i, fields in enumerate(entries):
        store.call("XADD", store.keys.input, f"{first + i}-0", *fields)


def session(store, batch=10, config=CONFIG, limits=None, **given):
    """Return a session that has taken the feed over.

    The options are those of `Session`, `SessionOptions` and `Recovery`.
    """
    options, taking = {"batch": batch}, {"may_create": True}
    for name in [name for name in given if name in SessionOptions.__dataclass_fields__]:
        options[name] = given.pop(name)
    for name in [name for name in given if name in RECOVERY]:
        taking[name] = given.pop(name)
    made = recovery(store, config, limits or Limits(), **taking)
    return taken_over(Session(made, SessionOptions(**options), **given))


def drain(running, count, seconds=150.0):
    deadline = time.monotonic() + seconds
    while running.position.seq < count:
        assert time.monotonic() < deadline, f"{running.position.seq} of {count} answered"
        answer_batch(running)


def payloads(store):
    """Return ID and payload of every entry of `out` and `met`."""
    return [
        [(entry[0], entry[1][1]) for page in store.pages(key, b"0-0") for entry in page]
        for key in (store.keys.out, store.keys.met)
    ]


def outcome(store):
    """Return all that must not depend on faults: the payloads and the committed position."""
    return payloads(store), store.state().position


def take_back(store, key, last):
    """Put a stream back to its state when this ID was its last: later entries were never there."""
    kept = store.call("XRANGE", key, "-", last)
    store.call("DEL", key)
    store.append(key, kept)
    store.call("XSETID", key, last)


def saved(store):
    """Return an image of all keys of a server: key, milliseconds left of it, content."""
    keys = sorted(store.call("KEYS", "*"))
    return [(key, max(0, store.call("PTTL", key)), store.call("DUMP", key)) for key in keys]


def restore(store, image):
    """Put a server back to what it was."""
    store.call("FLUSHDB")
    for key, left, content in image:
        store.call("RESTORE", key, left, content)
