"""Refits of a short stream, their results by a learner in this process, and slow or held ones."""

import threading
import time
from contextlib import contextmanager

import numpy as np
from world import wait_until

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.learner import InlineRefitter, Learner
from workers.broker.leases import process_start
from workers.refit.pool import PoolThread
from workers.refit.process import TASK

BASE = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, gamma=0.5)

MODES = {
    "committee": {},
    "single": {"committee": "single"},
    "three classes": {"classes": ("a", "b", "c")},
    "implied": {"committee": "single", "maps": ("implied",)},
    "psvm": {"learner": "psvm"},
    "varying": {"refit_every": None},
}
"""Settings of each kind of learner, in addition to `BASE`."""


class Recorder(InlineRefitter):
    """A refitter of this process that keeps its tasks."""

    def __init__(self, config):
        super().__init__(config)
        self.seen = []

    def submit(self, task):
        self.seen.append(task)
        super().submit(task)


def config_of(**changes):
    return PredictorConfig.model_validate(BASE.model_dump(exclude_unset=True) | changes)


def tasks_of(config=BASE, seed=5):
    """Return the tasks that a short stream gives rise to, in order."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(140, 3))
    score = X[:, 0] + generator.normal(size=140)
    labels = [config.classes[int(s > 0) + int(s > 1) * (len(config.classes) - 2)] for s in score]
    recorder = Recorder(config)
    OnlinePredictor(config, recorder).step_many(X, labels)
    assert len(recorder.seen) > 5
    return recorder.seen


def expected_of(tasks, config=BASE):
    """Return the results of tasks by a learner in this process, and its states in between."""
    learner, results, states = Learner(config), [], []
    for task in tasks:
        results.append(learner.refit(task).state())
        states.append(learner.state())
    return results, states


def run(refitter, tasks):
    """Return the results of tasks, one after the other, as bytes."""
    results = []
    for task in tasks:
        refitter.submit(task)
        results.append(refitter.result().state())
    return results


def gone(*pids):
    wait_until(lambda: all(process_start(pid) is None for pid in pids), why=f"{pids} end")
    return True


@contextmanager
def _before_each(monkeypatch, act):
    """Do something before each refit of a pool within the block."""
    exchange = PoolThread._exchange

    def exchanged(thread, learner, message):
        if message[0] == TASK:
            act()
        return exchange(thread, learner, message)

    with monkeypatch.context() as patched:
        patched.setattr(PoolThread, "_exchange", exchanged)
        yield


def slow_refits(monkeypatch, seconds):
    return _before_each(monkeypatch, lambda: time.sleep(seconds))


@contextmanager
def held_refits(monkeypatch):
    """Let no refit of a pool begin within the block; yield an event that is set when one would."""
    held, released = threading.Event(), threading.Event()

    def hold():
        held.set()
        assert released.wait(150.0)

    with _before_each(monkeypatch, hold):
        try:
            yield held
        finally:
            released.set()
