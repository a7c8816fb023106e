"""Workers that start in milliseconds: forked from a parent that has imported and compiled it all.

Run as a program this is the parent; `Nursery` starts it and talks to it in lines of JSON. A child
runs the same `online-svm worker` or `online-svm combine` as the command does.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from processes import Process
from world import CONFIG, SETTINGS, flags_of, wait_until

from online_svm.config import PredictorConfig

OPTIONS = [*flags_of(SETTINGS), "--quiet", "--accept-environment"]


class Forked:
    """A forked worker."""

    def __init__(self, nursery, pid, log=None):
        self._nursery, self.pid, self.returncode, self._log = nursery, pid, None, log

    @property
    def said(self):
        """What is in its log, as text."""
        return Path(self._log).read_text() if Path(self._log).exists() else ""

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
        return self.wait()

    def stopped(self):
        """Stop it in order."""
        self.send_signal(signal.SIGTERM)
        assert self.wait() == 0

    def poll(self):
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._nursery.ask({"wait": self.pid, "seconds": 0.0})
        return self.returncode

    def wait(self, seconds=20.0):
        """Return the exit code, negative for a signal."""
        if self.returncode is None:
            self.returncode = self._nursery.ask({"wait": self.pid, "seconds": seconds})
            assert self.returncode is not None, "the worker does not end"
        return self.returncode


def end(store, worker, goal):
    """Stop a worker that has answered `goal` entries and still lives; return its exit code."""
    wait_until(lambda: worker.poll() is not None or is_done(store, worker, goal), 60.0)
    if worker.poll() is None:
        worker.send_signal(signal.SIGTERM)
    return worker.wait(20)


def is_done(store, worker, goal):
    """Return whether everything is answered and this worker, up and running, has the feed."""
    state = store.state()
    return state is not None and state.position.seq == goal and is_holder(store, worker)


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
        # `workers.refit.child.end` closes them.
        self.stdin, self.stdout = os.fdopen(self._in, "wb", 0), os.fdopen(self._out, "rb", 0)

    def kill(self):
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


class NursedRefits(Forked):
    """A refit process that the parent forked, with what `workers.refit.child` expects of one."""

    def __init__(self, nursery, pid, pipes):
        super().__init__(nursery, pid)
        # `workers.refit.child.end` closes them.
        self.stdin = Path(pipes[0]).open("wb", buffering=0)  # noqa: SIM115
        self.stdout = Path(pipes[1]).open("rb", buffering=0)  # noqa: SIM115


class Nursery:
    """The parent, and every worker that it ever started.

    Workers write what they have to say to `log`, unless they are given another file. The parent
    loads the machine code of `configs`, so that no child has to.
    """

    def __init__(self, log, configs=()):
        self.log = str(log)
        self._pipes = itertools.count()
        self._parent = Process(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._workers = []
        self._turn = threading.Lock()
        for config in configs:
            self.ask({"warm": config.model_dump_json()})

    def start(self, feed, url, *options, failpoint=None):
        return self.run(["worker", feed, "--redis", url, *OPTIONS, *options], failpoint=failpoint)

    def run(self, args, log=None, failpoint=None, waits_shortly=False, timeout=None):
        """Start `online-svm` with these arguments."""
        order = {"args": args, "failpoint": failpoint, "waits_shortly": waits_shortly}
        order["timeout"] = timeout
        order["state_home"] = os.environ["XDG_STATE_HOME"]  # of the test, not of the parent
        order["log"] = str(log or self.log)
        self._workers.append(Forked(self, self.ask(order), order["log"]))
        return self._workers[-1]

    def begin_refits(self):
        """Start a refit process, as `workers.refit.child.begin` does but in milliseconds."""
        pipes = [f"{self.log}.{next(self._pipes)}.{end}" for end in ("in", "out")]
        for pipe in pipes:
            os.mkfifo(pipe)
        refits = NursedRefits(self, self.ask({"refits": pipes}), pipes)
        for pipe in pipes:
            Path(pipe).unlink()
        return refits

    def ask(self, order):
        with self._turn:
            print(json.dumps(order), file=self._parent.stdin, flush=True)
            return json.loads(self._parent.stdout.readline())

    def close(self):
        for worker in self._workers:
            worker.kill()
        self._parent.stdin.close()
        try:
            self._parent.wait(20)
        finally:
            self._parent.kill()
            self._parent.stdout.close()


def _warm():
    for name in (
        "cli.combine", "cli.worker", "refit.served_learner", "runner.combination",
        "runner.hosting", "session.join.session",
    ):  # fmt: skip
        import_module(f"workers.{name}")
    _load_code_of(CONFIG)


def _load_code_of(config):
    """Let a predictor do all that a worker has one do."""
    from online_svm.predictor.online_predictor import OnlinePredictor
    from online_svm.stream.input_batch import Example

    predictor = OnlinePredictor(config)
    for i in range(70):
        predictor.step(Example([i % 7, i % 3, i % 2], "ab"[i % 2]))
    OnlinePredictor(config).restore(predictor.snapshot())


def _become_worker(order):
    from workers import failpoints
    from workers.cli import app as cli

    os.setsid()
    os.environ["XDG_STATE_HOME"] = order["state_home"]
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if order["failpoint"]:
        failpoints.chosen = failpoints.Failpoint(order["failpoint"])
    if order["args"][0] == "worker":
        _fork_refits()
    if order["waits_shortly"]:
        _wait_shortly()
    if order["timeout"]:  # sooner than the real worker does, so that a dead line costs less
        _time_out_after(order["timeout"])
    sys.argv = ["online-svm", *order["args"]]
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
    from workers.refit import child, pool_process

    begin, first = child.begin, [ForkedRefits()]

    def begin_soon():
        return first.pop() if first else begin()

    child.begin = pool_process.begin = begin_soon


def _become_refits(source, target):
    from workers.refit import child

    os.setsid()
    try:
        with os.fdopen(source, "rb", 0) as said, os.fdopen(target, "wb", 0) as replies:
            child.serve(said, replies)
    finally:
        os._exit(0)


def _become_nursed(pipes):
    _become_refits(os.open(pipes[0], os.O_RDONLY), os.open(pipes[1], os.O_WRONLY))


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


def _ended(pid, seconds):
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.002)


def _serve():
    _warm()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            answer = _ended(order["wait"], order["seconds"])
        elif "warm" in order:
            answer = _load_code_of(PredictorConfig.model_validate_json(order["warm"]))
        elif (answer := os.fork()) == 0:
            _become_nursed(order["refits"]) if "refits" in order else _become_worker(order)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        _serve()
