"""SIGTERM whatever the real command is doing, and refit processes that die, hang or crawl."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from processes import Process
from session_steps import OwnRefits
from world import CONFIG, COUNT, drain, finished, outcome, push, rows, session, wait_until

from online_svm.refit.inline import InlineRefitter
from scripts.bench.processes import is_running
from workers.broker.store import Store

LAGGING = CONFIG.model_copy(update={"refit_lag": 15})
OPTIONS = ["--classes", "a,b", "--window", "60", "--refit-every", "20", "--metrics-every", "10"]
OPTIONS += ["--gamma", "0.5", "--quiet"]
GRACE = 4.0


@pytest.fixture
def filled(embedded_url, feed):
    with Store(embedded_url, feed, block_ms=20) as store:
        push(store, rows())
        yield store


@pytest.fixture
def lagging(embedded_url, feed):
    """What comes of the same stream with refits in the background, uninterrupted."""
    with Store(embedded_url, f"{feed}-whole", block_ms=20) as store:
        push(store, rows())
        drain(session(store, config=LAGGING), COUNT)
        yield outcome(store)


@pytest.fixture
def start(filled):
    """Start the real command on the feed."""
    processes = []

    def begin(*options, lag=0):
        command = [sys.executable, "-m", "workers.cli", "worker", filled.keys.feed]
        command += ["--redis", filled.url, *OPTIONS, "--refit-lag", str(lag), *options]
        command += ["--grace", str(GRACE)]
        processes.append(Process(command, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def stopped(process, store):
    """Stop a worker, which ends in time with its lease free; return what it said."""
    process.terminate()
    began = time.monotonic()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert time.monotonic() - began < GRACE + 1.0
    assert store.call("EXISTS", store.keys.lease) == 0
    return said


def answered(store, goal):
    wait_until(lambda: store.length(store.keys.out) >= goal)


def refit_process_of(pid):
    """Return the child that computes the refits."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_a_stop_in_the_stream_and_one_while_idle_change_no_byte(filled, start, expected):
    process = start("--batch", "1")
    answered(filled, 20)
    stopped(process, filled)  # in the middle of the stream
    process = start()
    answered(filled, COUNT)
    stopped(process, filled)  # idle
    assert outcome(filled) == expected


@pytest.mark.chaos
def test_a_stop_in_a_replay_leaves_everything_as_it_was(filled, start):
    """Three pages to answer again, in the middle of which the stop comes."""
    push(filled, rows(3_000, seed=2), COUNT + 1)
    total = COUNT + 3_000
    drain(session(filled, batch=2000, snapshot_every=10**9), total)
    before = outcome(filled)
    process = start()
    wait_until(lambda: filled.state().epoch == 2)
    stopped(process, filled)
    assert outcome(filled) == before
    process = start()
    wait_until(lambda: filled.state().epoch == 3)
    stopped(process, filled)
    assert finished(filled, total) == before


@pytest.mark.slow
def test_a_stop_while_a_refit_hangs_ends_in_time_and_changes_no_byte(filled, start, lagging):
    process = start("--batch", "1", lag=15)
    answered(filled, 30)
    child = refit_process_of(process.pid)
    os.kill(child, signal.SIGSTOP)
    stands = filled.length(filled.keys.out)
    wait_until(lambda: waits(filled, stands))
    stopped(process, filled)
    process = start(lag=15)
    answered(filled, COUNT)
    stopped(process, filled)
    assert outcome(filled) == lagging


@pytest.mark.slow
def test_a_stop_while_a_refit_computes_ends_in_time_and_changes_no_byte(filled, start, feed):
    """Labels are noise and a margin violation is dear, so that the refit takes a while."""
    options = ["--window", "600", "--refit-every", "300", "--C", "1e6"]
    changes = {"window": 600, "refit_every": 300, "refit_lag": 200, "C": 1e6}
    labels = np.random.default_rng(1).choice(["a", "b"], 320)
    noise = [[*fields[:3], str(y)] for fields, y in zip(rows(320, seed=2), labels, strict=True)]
    push(filled, noise, COUNT + 1)
    total = COUNT + len(noise)
    with Store(filled.url, f"{feed}-whole", block_ms=20) as whole:
        push(whole, [*rows(), *noise])
        drain(session(whole, config=CONFIG.model_copy(update=changes)), total)
        expected = outcome(whole)
    process = start("--batch", "1", *options, lag=200)
    answered(filled, 310)  # the refit of the first 300 good ones has begun
    child = refit_process_of(process.pid)
    wait_until(lambda: is_running(child))
    stopped(process, filled)
    assert filled.state().position.seq < total
    process = start(*options, lag=200)
    answered(filled, total)
    stopped(process, filled)
    assert outcome(filled) == expected


def waits(store, before):
    """Return whether nothing was answered in a while: the feed waits for a refit."""
    reached = store.length(store.keys.out)
    time.sleep(0.5)
    return store.length(store.keys.out) == reached < COUNT


class Slow(InlineRefitter):
    """Takes a tenth of a second longer than it should, which is more than ten times as long."""

    def result(self):
        time.sleep(0.1)
        return super().result()


def test_refits_that_are_ten_times_slower_take_effect_at_the_same_examples(filled, lagging):
    drain(session(filled, config=LAGGING, refits=Slow(LAGGING)), COUNT)
    assert outcome(filled) == lagging


@pytest.mark.chaos
def test_refit_processes_killed_all_along_a_feed_change_no_byte(filled, lagging):
    killed = []
    with OwnRefits(LAGGING, patience=60.0) as refits:
        running = session(filled, config=LAGGING, refits=refits)
        # A process may have computed the two refits that come next before it is killed. The third
        # takes effect within 55 examples, so between two of these goals another process is needed.
        for goal in (40, 100, 160):
            drain(running, goal)
            killed.append(refits.pid)
            os.kill(refits.pid, signal.SIGKILL)
        drain(running, COUNT)
    assert len({*killed}) == 3
    assert outcome(filled) == lagging
