"""Refits over several processes: the bytes of one, whatever becomes of any of them."""

import os
import signal
import subprocess
import sys
import time
from itertools import chain, repeat
from pathlib import Path

import pytest
from processes import Process
from refits import BASE, expected_of, gone, run, tasks_of

from workers.config.settings import WorkerSettings
from workers.engine.assembly import refitter as refitter_of
from workers.refit.process_refitter import ProcessRefitter


@pytest.fixture(scope="module")
def tasks():
    return tasks_of()


@pytest.fixture(scope="module")
def expected(tasks):
    return expected_of(tasks)


@pytest.fixture
def refitter():
    with ProcessRefitter(BASE, patience=60.0, processes=2) as made:
        yield made


def helpers_of(pid):
    """Return the processes that another one started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_three_processes_give_the_results_and_states_of_one(tasks, expected):
    results, states = expected
    with ProcessRefitter(BASE, patience=60.0, processes=8) as refitter:
        assert run(refitter, tasks[:3]) == results[:3]
        assert refitter.state() == states[2]
        assert len(helpers_of(refitter.pid)) == 2  # a member each
        refitter.reset(states[1])
        assert run(refitter, tasks[2:]) == results[2:]
        assert refitter.state() == states[-1]
        refitter.reset(None)
        assert run(refitter, tasks[:1]) == results[:1]


def test_a_killed_helper_changes_no_byte(refitter, tasks, expected):
    results, states = expected
    assert run(refitter, tasks[:2]) == results[:2]
    first, (helper,) = refitter.pid, helpers_of(refitter.pid)
    os.kill(helper, signal.SIGKILL)  # between two tasks
    assert run(refitter, tasks[2:3]) == results[2:3]
    assert refitter.pid != first
    assert gone(first, helper)
    (helper,) = helpers_of(refitter.pid)
    os.kill(helper, signal.SIGSTOP)
    refitter.submit(tasks[3])
    os.kill(helper, signal.SIGKILL)  # within one
    assert refitter.result().state() == results[3]
    assert refitter.state() == states[3]


def test_a_hung_helper_is_replaced_and_does_not_stay(refitter, tasks, expected, monkeypatch):
    results, _ = expected
    assert run(refitter, tasks[:1]) == results[:1]
    hung = helpers_of(refitter.pid)
    os.kill(hung[0], signal.SIGSTOP)
    patience, reply = chain([0.5], repeat(60.0)), refitter._reply

    def impatient():
        refitter._patience = next(patience)
        return reply()

    monkeypatch.setattr(refitter, "_reply", impatient)
    assert run(refitter, tasks[1:2]) == results[1:2]
    assert gone(*hung)


def test_a_worker_spreads_refits_as_its_settings_say_and_its_feed_does_not_depend_on_it():
    settings = WorkerSettings(refit_processes=2)
    assert settings.agreed == WorkerSettings().agreed
    with refitter_of(settings) as refitter:
        deadline = time.monotonic() + 20
        while not (found := helpers_of(refitter.pid)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert len(found) == 1
    assert gone(*found)


@pytest.mark.parametrize("is_hung", [False, True])
def test_helpers_end_when_the_worker_is_killed(is_hung):
    code = (
        "import time\n"
        "import numpy as np\n"
        "from online_svm.config import PredictorConfig\n"
        "from online_svm.refit.task import RefitTask\n"
        "from workers.refit.process_refitter import ProcessRefitter\n"
        "r = ProcessRefitter(PredictorConfig(), processes=2)\n"
        "X = np.random.default_rng(0).normal(size=(40, 2))\n"
        "task = RefitTask(0, 40, 0, X, np.arange(40) % 2, np.ones(2))\n"
        "r.submit(task); r.result(); print(r.pid, flush=True)\n"
        "input(); r.submit(task); print('asked', flush=True); time.sleep(60)"
    )
    worker = Process(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child = int(worker.stdout.readline())
    (helper,) = helpers_of(child)
    if is_hung:  # the refit process then waits for it
        os.kill(helper, signal.SIGSTOP)
    print(file=worker.stdin, flush=True)
    assert worker.stdout.readline() == "asked\n"
    worker.kill()
    worker.wait()
    worker.stdin.close()
    worker.stdout.close()
    assert gone(child, helper)
