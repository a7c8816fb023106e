"""What a predictor gives, by kind and one by one; streams to give it, and late labels for them."""

import numpy as np

from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_ensemble import ExpertEnsemble
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import DelayedLabel, InputBatch
from online_svm.stream.prediction import Prediction, PredictionBlock
from online_svm.stream.validity_report import ValidityReport

QUICK = {"window": 80, "refit_every": 40, "metrics_every": 30, "monitors": "off", "maps": ()}
"""Settings with which a short stream has refits."""


def predictor_of(**settings):
    """Return a predictor with these settings, else quick ones."""
    return OnlinePredictor(ProtocolConfig(**QUICK | settings))


def restored(predictor):
    """Return a predictor that continues from a snapshot of this one."""
    other = OnlinePredictor(predictor.config)
    other.restore(predictor.snapshot())
    return other


def stream(n, n_classes=2, seed=None):
    """Return rows of overlapping classes and their labels c0, c1, ..."""
    rng = np.random.default_rng(n_classes if seed is None else seed)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + codes[:, None], [f"c{code}" for code in codes]


def flat(answers):
    """Return all answers in order, each row of a block by itself."""
    found = []
    for answer in answers:
        is_block = isinstance(answer, PredictionBlock)
        found += [answer.row(i) for i in range(len(answer))] if is_block else [answer]
    return found


def rows(answers):
    return [answer for answer in flat(answers) if isinstance(answer, Prediction)]


def reports(answers):
    return [answer for answer in answers if isinstance(answer, ValidityReport)]


def alarms(answers):
    return [answer for answer in answers if isinstance(answer, Alarm)]


def blocks(answers, status=None):
    found = [answer for answer in answers if isinstance(answer, PredictionBlock)]
    return [block for block in found if status in (None, block.status)]


def said(predictor, X, labels, size=None):
    """Return all answers one by one; calls have so many rows."""
    found = []
    for begin in range(0, len(X), size or len(X)):
        part = slice(begin, begin + (size or len(X)))
        found += flat(predictor.step_many(X[part], labels[part]))
    return found


def answered(config, X, labels):
    """Return the blocks of answers that a new predictor gives by a model."""
    return blocks(OnlinePredictor(config).step_many(X, labels), "ok")


def corrected(history, points, columns, sources=None, features=None):
    """Return the probabilities as a label history corrects them."""
    sources = np.full(len(points), -1) if sources is None else sources
    rows = RowsToLearn(
        np.empty((len(points), 0)), None, columns, None, sources=sources, stored=features
    )
    (found,) = history.answer(rows, {"average": points})
    return found


SMALL = {
    "classes": ["a", "b"], "committee": "single", "kernel": "linear", "window": 60,
    "refit_every": 20, "metrics_every": 15, "monitors": "off", "horizon": 12,
}  # fmt: skip


def late_settings(**changes):
    return ProtocolConfig.model_validate(SMALL | changes)


def late_stream(n, rng, longest=30, never=0.1):
    """Return rows, true labels, and events in order: examples by number, and labels for them."""
    X = rng.normal(size=(n, 2))
    codes = np.clip(np.floor(X[:, 0] + 0.7 * rng.normal(size=n) + 1), 0, 1)
    labels = ["ab"[int(code)] for code in codes]
    delays = np.where(rng.random(n) < never, 10**6, rng.integers(0, longest, n))
    due = sorted((i + delay + 0.5, i) for i, delay in enumerate(delays) if delay > 0)
    events, k = [], 0
    for i in range(n):
        while k < len(due) and due[k][0] < i:
            events.append(("label", due[k][1], labels[due[k][1]]))
            k += 1
        events.append(("example", i, labels[i] if delays[i] == 0 else None))
        if rng.random() < 0.05 and i > 5:
            events.append(("label", int(rng.integers(i)), str(rng.choice(["a", "b"]))))
    return X, labels, events


def batch_of(X, events, first=0):
    """Return events as a batch; `first` events came before them."""
    rows = [k for k, (kind, _, _) in enumerate(events) if kind == "example"]
    numbers = [events[k][1] for k in rows]
    late = {
        k: DelayedLabel(str(i), label)
        for k, (kind, i, label) in enumerate(events)
        if kind == "label"
    }
    times = [1000 * i - 700 * (i % 3) for i in numbers]
    labels, ids = [events[k][2] for k in rows], [str(i) for i in numbers]
    return InputBatch(X[numbers], labels, rows, late, first, ids=ids, times=times)


def follow(predictor, X, events, size):
    """Answer events in calls of `size`; return the answers one by one, and what labels gave."""
    answers, outcomes = [], []
    for begin in range(0, len(events), size):
        result = predictor.process(batch_of(X, events[begin : begin + size], begin))
        done = {k: taken.done for k, taken in result.taken.items()}
        done |= {k: error.code for k, error in result.rejected.items()}
        outcomes += [what for _, what in sorted(done.items())]
        answers += flat(result.found)
    return answers, outcomes


def answers_of_model(monkeypatch):
    """Return a list to which what the experts of each model say is added, by name."""
    found, answer = [], ExpertEnsemble.answer

    def recorded(experts, rows, *rest):
        if rows.model:
            found.append(dict(rows.model))
        return answer(experts, rows, *rest)

    monkeypatch.setattr(ExpertEnsemble, "answer", recorded)
    return found
