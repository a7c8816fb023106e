"""Streams whose labels come late, never, twice or wrong; and how a predictor follows them."""

import numpy as np
from predictor_answers import flat

from online_svm.config import PredictorConfig
from online_svm.stream.input_batch import InputBatch, LateLabel

SMALL = {
    "classes": ["a", "b"], "committee": "single", "kernel": "linear", "window": 60,
    "refit_every": 20, "metrics_every": 15, "monitors": "off", "horizon": 12,
}  # fmt: skip


def late_settings(**changes):
    return PredictorConfig.model_validate(SMALL | changes)


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
        k: LateLabel(str(i), label) for k, (kind, i, label) in enumerate(events) if kind == "label"
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
