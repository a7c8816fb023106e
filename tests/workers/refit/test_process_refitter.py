"""Refits in another process: the same bytes, whatever becomes of the process."""

import os
import signal
import subprocess
import sys
import time
from functools import partialmethod

import numpy as np
import pytest
from processes import Process
from refits import config_of, expected_of, gone, run, tasks_of
from structlog.testing import capture_logs

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.lease import process_start
from workers.errors import RefitFailed
from workers.refit.child import CONFIG, DONE, TASK, read_message, write_message
from workers.refit.learner_log import LearnerLog
from workers.refit.process_refitter import ProcessRefitter

SETTINGS = config_of(committee="single")


@pytest.fixture(scope="module")
def tasks():
    return tasks_of(SETTINGS)


@pytest.fixture(scope="module")
def expected(tasks):
    return expected_of(tasks, SETTINGS)


@pytest.fixture
def refitter():
    with ProcessRefitter(SETTINGS, patience=60.0) as made:
        yield made


def test_results_and_states_are_those_of_a_learner_in_process(refitter, tasks, expected):
    results, states = expected
    assert run(refitter, tasks[:3]) == results[:3]
    assert refitter.state() == states[2]
    assert run(refitter, tasks[3:]) == results[3:]
    assert refitter.state() == states[-1]


def test_it_continues_from_a_state_and_from_nothing(refitter, tasks, expected):
    results, states = expected
    run(refitter, tasks[:5])
    refitter.reset(states[1])
    assert run(refitter, tasks[2:4]) == results[2:4]
    refitter.reset(None)
    assert run(refitter, tasks[:2]) == results[:2]


def test_a_reset_forgets_a_task_under_way(refitter, tasks, expected):
    results, _ = expected
    refitter.submit(tasks[0])
    refitter.reset(None)
    assert run(refitter, tasks[:1]) == results[:1]


def test_a_killed_process_is_replaced_and_no_byte_changes(refitter, tasks, expected):
    results, states = expected
    assert run(refitter, tasks[:2]) == results[:2]
    refitter.state()
    assert run(refitter, tasks[2:4]) == results[2:4]
    os.kill(refitter.pid, signal.SIGKILL)  # between two tasks
    with capture_logs() as logs:
        assert run(refitter, tasks[4:5]) == results[4:5]
    events = ["the refit process failed", "the refit process works again"]
    assert [log["event"] for log in logs] == events
    refitter.submit(tasks[5])
    os.kill(refitter.pid, signal.SIGKILL)  # within one
    assert refitter.result().state() == results[5]
    os.kill(refitter.pid, signal.SIGKILL)  # before its state is fetched
    assert refitter.state() == states[5]


@pytest.mark.parametrize("killed", [None, 0, 1, 2])
def test_tasks_wait_in_line_and_survive_their_process(refitter, tasks, expected, killed):
    results, states = expected
    refitter.submit(tasks[0])
    for i in range(1, 4):
        refitter.submit(tasks[i])  # behind the one under way
        if killed == i - 1:
            os.kill(refitter.pid, signal.SIGKILL)
        assert refitter.result().state() == results[i - 1]
    assert refitter.result().state() == results[3]
    assert refitter.state() == states[3]


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_state_is_fetched_behind_tasks_in_line(refitter, tasks, expected, monkeypatch, is_killed):
    monkeypatch.setattr(LearnerLog, "is_long", partialmethod(LearnerLog.is_long, 1))
    results, states = expected
    refitter.submit(tasks[0])
    found = []
    for i in range(1, len(tasks)):
        refitter.submit(tasks[i])
        if is_killed and i % 2:
            os.kill(refitter.pid, signal.SIGKILL)
        found.append(refitter.result().state())
        assert len(refitter._log.tasks) < 5
    found.append(refitter.result().state())
    assert found == results
    assert refitter.state() == states[-1]


def test_a_hung_process_is_replaced(tasks, expected):
    """The patience covers the imports of the process that takes over."""
    results, _ = expected
    with ProcessRefitter(SETTINGS, patience=12.0) as refitter:
        assert run(refitter, tasks[:1]) == results[:1]
        hung = refitter.pid
        os.kill(hung, signal.SIGSTOP)
        assert run(refitter, tasks[1:2]) == results[1:2]
        assert refitter.pid != hung


def test_a_task_that_fails_everywhere_is_given_up_with_its_reason(refitter, tasks):
    broken = type(tasks[0])(0, 10, 5, tasks[0].X, tasks[0].codes[:3], 2)
    refitter.submit(broken)
    with pytest.raises(RefitFailed, match="3 processes"):
        refitter.result()


def test_a_long_history_is_replaced_by_the_state(refitter, tasks, expected, monkeypatch):
    monkeypatch.setattr(LearnerLog, "is_long", partialmethod(LearnerLog.is_long, 1))
    results, _ = expected
    assert run(refitter, tasks) == results
    assert len(refitter._log.tasks) < len(tasks)
    os.kill(refitter.pid, signal.SIGKILL)
    refitter.reset(None)
    assert run(refitter, tasks[:2]) == results[:2]


def test_the_process_ends_with_the_pipe(tasks, expected):
    child = Process(
        [sys.executable, "-m", "workers.refit.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    write_message(child.stdin, CONFIG, SETTINGS.model_dump_json().encode())
    assert read_message(child.stdout) == (DONE, b"")
    write_message(child.stdin, TASK, tasks[0].state())
    assert read_message(child.stdout) == (DONE, expected[0][0])
    child.stdin.close()
    assert child.wait(10) == 0
    child.stdout.close()


def test_the_process_ends_when_its_parent_is_killed():
    code = "import time; from online_svm.config import PredictorConfig\n"
    code += "from workers.refit.process_refitter import ProcessRefitter\n"
    code += "r = ProcessRefitter(PredictorConfig()); print(r.pid, flush=True); time.sleep(60)"
    parent = Process([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert process_start(child) is not None
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(child)


def test_answers_do_not_depend_on_where_refits_are_computed(refitter):
    generator = np.random.default_rng(7)
    X = generator.normal(size=(120, 3))
    labels = np.where(X[:, 0] > 0, "a", "b").tolist()
    inline, apart = OnlinePredictor(SETTINGS), OnlinePredictor(SETTINGS, refitter)
    for begin in range(0, 120, 40):
        rows = slice(begin, begin + 40)
        for predictor in (inline, apart):
            predictor.step_many(X[rows], labels[rows])
        assert apart.snapshot() == inline.snapshot()


def test_it_is_busy_from_a_task_until_its_reply_comes(refitter, tasks):
    assert not refitter.is_busy
    refitter.submit(tasks[0])
    assert refitter.is_busy
    refitter.result()
    assert not refitter.is_busy


def test_a_patient_task_waits_until_it_is_begun_or_its_result_is_asked_for(
    refitter, tasks, expected
):
    results, _ = expected
    refitter.is_patient = True
    refitter.submit(tasks[0])
    time.sleep(0.05)
    assert not refitter.is_busy
    refitter.begin()
    assert refitter.is_busy
    refitter.submit(tasks[1])
    assert [refitter.result().state() for _ in range(2)] == results[:2]


def test_what_was_submitted_and_not_begun_is_forgotten_by_a_reset(refitter, tasks, expected):
    results, states = expected
    run(refitter, tasks[:3])
    refitter.is_patient = True
    refitter.submit(tasks[3])
    refitter.reset(states[1])
    assert not refitter.is_patient
    assert run(refitter, tasks[2:4]) == results[2:4]


def test_patience_changes_no_answer_and_no_state():
    generator = np.random.default_rng(8)
    X = generator.normal(size=(200, 3))
    labels = np.where(X[:, 0] > 0, "a", "b").tolist()

    def answered(is_patient, refits):
        predictor = OnlinePredictor(SETTINGS, refits)
        refits.is_patient = is_patient
        answers = []
        for begin in range(0, len(X), 7):
            rows = slice(begin, begin + 7)
            answers += map(repr, predictor.step_many(X[rows], labels[rows]))
            if begin % 3 == 0:
                refits.begin()
        return answers, predictor.snapshot()

    with ProcessRefitter(SETTINGS) as patient, ProcessRefitter(SETTINGS) as eager:
        assert answered(True, patient) == answered(False, eager)
