"""A small feed whose labels come late: its entries, and what they are answered."""

import json

import numpy as np
from pure_replay import replay

from online_svm.config import PredictorConfig

SMALL = {
    "classes": ["a", "b"], "committee": "single", "kernel": "linear", "window": 40,
    "refit_every": 20, "metrics_every": 15, "monitors": "off", "horizon": 10,
}  # fmt: skip


def settings(**changes):
    return PredictorConfig.model_validate(SMALL | changes)


def history(n=260, seed=0):
    """Return entries of a feed whose labels come up to 20 examples late, some never, some twice."""
    rng = np.random.default_rng(seed)
    due, entries = {}, []
    for i in range(n):
        x = rng.normal(size=2).round(6)
        label = "b" if x[0] + rng.normal() > 0 else "a"
        if rng.random() < 0.3:
            entries.append({"x": json.dumps(x.tolist()), "id": str(i), "y": label})
        else:
            entries.append({"x": json.dumps(x.tolist()), "id": str(i)})
            if rng.random() < 0.9:
                due.setdefault(i + int(rng.integers(0, 20)), []).append((str(i), label))
        for id, label in due.pop(i, []):
            entries.append({"for": id, "y": label})
            if rng.random() < 0.1:
                entries.append({"for": id, "y": str(rng.choice(["a", "b"]))})
        if rng.random() < 0.05:
            entries.append({"for": str(int(rng.integers(2 * i + 1))), "y": "a"})
        if rng.random() < 0.03:
            entries.append({"x": "[1]", "id": "bad"})
    return entries


def flat(entries):
    return [[part.encode() for pair in entry.items() for part in pair] for entry in entries]


def answered(entries, config=None, size=None, limits=None):
    """Return the outcomes of entries in batches of `size`, and who made them."""
    found = [*replay(config or settings(), flat(entries), limits, size)]
    return [outcome for outcome, _ in found], found[-1][1]
