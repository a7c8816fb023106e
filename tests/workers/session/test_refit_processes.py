"""A worker whose refits are spread over processes, through the whole command."""

import json

import numpy as np
from world import work

from workers.broker.store import Store

COUNT = 200


def pushed(store):
    """Push the same examples under the same IDs to any feed."""
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 2, COUNT)
    X = (generator.normal(size=(COUNT, 3)) + codes[:, None]).round(6)
    for i, (row, code) in enumerate(zip(X.tolist(), codes, strict=True)):
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", json.dumps(row), "y", "ab"[code])


SETTINGS = {"classes": "a,b", "window": "80", "refit_every": "40", "metrics_every": "50"}


def worked(url, feed, processes, notes):
    """Return what a worker with so many refit processes leaves in its streams, and its digest."""
    with Store(url, feed) as store:
        pushed(store)
        work(url, feed, SETTINGS | {"refit_processes": str(processes)}, COUNT)
        streams = [
            [entry for page in store.pages(key, b"0-0") for entry in page]
            for key in (store.keys.out, store.keys.met)
        ]
        return streams, store.state().position.digest


def test_two_refit_processes_give_the_bytes_of_one(embedded_url, feed, tmp_path):
    notes = tmp_path / "notes"
    one, two = (worked(embedded_url, f"{feed}-{count}", count, notes) for count in (1, 2))
    assert one == two
    assert len(one[0][0]) == COUNT
