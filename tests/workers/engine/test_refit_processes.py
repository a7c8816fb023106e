"""A worker whose refits are spread over processes, through the whole command."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
from processes import Process

from workers.broker.store import Store

COUNT = 200


def pushed(store):
    """Push the same examples under the same IDs to any feed."""
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 2, COUNT)
    X = (generator.normal(size=(COUNT, 3)) + codes[:, None]).round(6)
    for i, (row, code) in enumerate(zip(X.tolist(), codes, strict=True)):
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", json.dumps(row), "y", "ab"[code])


def worked(url, feed, processes):
    """Return what a worker with so many refit processes leaves in its streams, and its digest."""
    command = [sys.executable, "-m", "workers.cli", "worker", feed, "--quiet", "--redis", url]
    settings = [
        "--classes",
        "a,b",
        "--window",
        "80",
        "--refit-every",
        "40",
        "--metrics-every",
        "50",
    ]
    spread = ["--refit-processes", str(processes)]
    with Store(url, feed) as store:
        pushed(store)
        with Process([*command, *settings, *spread], stderr=subprocess.PIPE, text=True) as worker:
            try:
                deadline = time.monotonic() + 120
                while store.length(store.keys.out) < COUNT:
                    assert worker.poll() is None, worker.stderr.read()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(20) == 0, worker.stderr.read()
            finally:
                worker.kill()
        streams = [
            [entry for page in store.pages(key, b"0-0") for entry in page]
            for key in (store.keys.out, store.keys.met)
        ]
        return streams, store.state().position.digest


def test_two_refit_processes_give_the_bytes_of_one(embedded_url, feed):
    one, two = (worked(embedded_url, f"{feed}-{count}", count) for count in (1, 2))
    assert one == two
    assert len(one[0][0]) == COUNT
