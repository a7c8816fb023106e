"""Workers that start in milliseconds: forked from a server that has imported everything.

A child runs the same `online-svm worker` as the command does.
"""

import itertools
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import forkserver, get_context
from pathlib import Path
from unittest.mock import patch

from world import SETTINGS, flags_of, seq_of, wait_until

from online_svm import config

OPTIONS = [*flags_of(SETTINGS), "--quiet"]

FORKING = get_context("forkserver")
FORKING.set_forkserver_preload([
    "fault_workers", "history_faults", "workers.cli.worker",
    "workers.refit.child", "workers.runner.loop",
])  # fmt: skip
_lock = threading.Lock()
"""Of two threads that ask how a child ended, the library answers one."""


class Forked:
    """A child that runs a function of this module, with its log."""

    def __init__(self, function, *arguments, log=None):
        self._process, self._log = FORKING.Process(target=function, args=arguments), log
        with _lock:
            _begin_server()
            self._process.start()
        self.pid, self._code = self._process.pid, None

    @property
    def said(self):
        return Path(self._log).read_text() if Path(self._log).exists() else ""

    def poll(self):
        """Return the exit code, negative for a signal, or None while it runs."""
        with _lock:
            if self._code is None and (code := self._process.exitcode) is not None:
                self._code = code
                self._process.close()
            return self._code

    def send_signal(self, number):
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and another thread saw it first
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
        return self.wait()

    def stopped(self):
        self.send_signal(signal.SIGTERM)
        assert self.wait() == 0

    def wait(self):
        wait_until(lambda: self.poll() is not None, why="the worker does not end", pause=0.002)
        return self.poll()


def _begin_server():
    """Begin the server of forks, if none runs; it imports from where this process does."""
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
        forkserver.ensure_running()


def end(store, worker, goal):
    """Stop a worker that has the feed, has answered `goal` entries and lives; return its code."""
    wait_until(
        lambda: worker.poll() is not None or (seq_of(store) == goal and is_holder(store, worker))
    )
    if worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
    return worker.wait()


def is_holder(store, worker):
    return f'"pid": {worker.pid},'.encode() in (store.call("GET", store.keys.lease) or b"")


class ForkedRefits:
    """A refit process forked from this one before it has threads; what it began reads from it."""

    def __init__(self):
        ours_in, self._in = os.pipe()
        self._out, ours_out = os.pipe()
        self.pid, self.returncode = os.fork(), None
        if self.pid == 0:
            os.close(self._in)
            os.close(self._out)
            _become_refits(ours_in, ours_out)
        os.close(ours_in)
        os.close(ours_out)
        # `workers.refit.process.end` closes them.
        self.stdin, self.stdout = os.fdopen(self._in, "wb", 0), os.fdopen(self._out, "rb", 0)

    def kill(self):
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


class Nursery:
    """Every worker that was ever started; they write to `log`, unless given another file."""

    def __init__(self, log):
        self.log = str(log)
        self._pipes, self._workers = itertools.count(), []

    def start(self, feed, url, *options, failpoint=None):
        return self.run(["worker", feed, "--redis", url, *OPTIONS, *options], failpoint=failpoint)

    def run(self, args, log=None, failpoint=None, waits_shortly=False, timeout=None):
        log, home = str(log or self.log), os.environ["XDG_STATE_HOME"]
        order = (args, log, home, failpoint, waits_shortly, timeout, config.EARLY_UNTIL)
        self._workers.append(Forked(_become_worker, *order, log=log))
        return self._workers[-1]

    def begin_refits(self):
        """Start a refit process, as `workers.refit.process.start` does but in milliseconds."""
        pipes = [f"{self.log}.{next(self._pipes)}.{end}" for end in ("in", "out")]
        for pipe in pipes:
            os.mkfifo(pipe)
        refits = Forked(_open_and_become_refits, *pipes)
        # `workers.refit.process.end` closes them.
        refits.stdin = Path(pipes[0]).open("wb", buffering=0)  # noqa: SIM115
        refits.stdout = Path(pipes[1]).open("rb", buffering=0)  # noqa: SIM115
        for pipe in pipes:
            Path(pipe).unlink()
        return refits

    def close(self):
        for worker in self._workers:
            worker.kill()


def _become_worker(args, log, state_home, failpoint, waits_shortly, timeout, early_until):
    from workers.broker import failpoints
    from workers.cli import app as cli

    os.setsid()
    os.environ["XDG_STATE_HOME"] = state_home
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    config.EARLY_UNTIL = early_until
    if failpoint:
        failpoints.chosen = failpoints.Failpoint(failpoint)
    if args[0] == "worker":
        _fork_refits()
    if waits_shortly:
        _wait_shortly()
    if timeout:  # sooner than the real worker does, so that a dead line costs less
        _time_out_after(timeout)
    sys.argv = ["online-svm", *args]
    code = 1
    try:
        cli.main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _fork_refits():
    """Fork the first refit process; one in its place starts from nothing."""
    from workers.refit import process

    begin, first = process.start, [ForkedRefits()]
    process.start = lambda: first.pop() if first else begin()


def _become_refits(source, target):
    from workers.refit import child

    os.setsid()
    try:
        with os.fdopen(source, "rb", 0) as said, os.fdopen(target, "wb", 0) as replies:
            child.serve(said, replies)
    finally:
        os._exit(0)


def _open_and_become_refits(source, target):
    _become_refits(os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY))


def _time_out_after(seconds):
    from workers.broker.connection import Connection

    begin = Connection.__init__

    def begin_impatiently(connection, *given, **named):
        begin(connection, *given, **named)
        connection.timeout = seconds

    Connection.__init__ = begin_impatiently


def _wait_shortly():
    """Make many short waits of each: beginnings and ends, where signals do harm, are many then."""
    from workers.stop import Stop

    wait = Stop.wait

    def wait_shortly(stop, seconds):
        end = time.monotonic() + seconds
        while not wait(stop, min(seconds, 0.0005)):
            if time.monotonic() > end:
                return False
        return True

    Stop.wait = wait_shortly
