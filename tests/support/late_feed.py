"""A small feed whose labels come late: its entries, and what they are answered."""

import json

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.session.answer import process

SMALL = {
    "classes": ["a", "b"],
    "committee": "single",
    "kernel": "linear",
    "window": 40,
    "refit_every": 20,
    "metrics_every": 15,
    "monitors": "off",
    "horizon": 10,
}


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
    """Return entries as flat lists of bytes, as Redis gives them."""
    return [[part.encode() for pair in entry.items() for part in pair] for entry in entries]


def answered(entries, config=None, size=None, limits=None):
    """Return the outcomes of entries in batches of `size`, under IDs 1-0, 2-0, ..., and who made
    them."""
    config, limits = config or settings(), limits or Limits()
    predictor, recent = OnlinePredictor(config), RecentIds(limits.dedupe_window)
    position, outcomes, given = START, [], flat(entries)
    size = size or len(given)
    for begin in range(0, len(given), size):
        batch = [(b"%d-0" % (i + 1), given[i]) for i in range(begin, min(begin + size, len(given)))]
        outcomes.append(process(predictor, limits, position, batch, recent))
        position = outcomes[-1].after
    return outcomes, predictor
