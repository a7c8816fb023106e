"""One stream at four batch sizes, then killed twenty times at random progress: the same bytes."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from processes import Process

from workers.admin.verify import verify
from workers.broker.store import Store
from workers.push.ingest import push, shuffled
from workers.push.sources import Reading, rows

# Twenty-five starts of the whole program, over 5,300 examples each time.
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

SOURCE, SEED = "Bananas", 0  # comes with river: 5,300 examples, 2 classes
KILLS, LEAST, MOST = 20, 1, 150
OPTIONS = ["--classes", "-1,1", "--metrics-every", "50", "--quiet"]
PATIENCE = 120.0


@contextmanager
def worker(store: Store, url: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "workers.cli", "worker", store.keys.feed, "--redis", url]
    process = Process([*command, *OPTIONS, *options], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def answered(store: Store) -> int:
    return store.length(store.keys.out)


def wait_for(store: Store, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while answered(store) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"{answered(store)} of {count} answered"
        time.sleep(0.001)


def payloads(store: Store) -> list[list[bytes]]:
    return [
        [entry[1][1] for page in store.pages(key, b"0-0") for entry in page]
        for key in (store.keys.out, store.keys.met)
    ]


@pytest.mark.parametrize("payload", ["full", "compact"])
def test_batches_and_twenty_kills_change_no_byte(redis_url: str, feed: str, payload: str) -> None:
    form = ("--payload", payload)
    examples = shuffled(rows(SOURCE, Reading()), SEED)
    expected = None
    for batch in (1, 7, 64, 1024):
        with Store(redis_url, f"{feed}-{batch}") as store:
            push(examples, redis_url, store.keys.feed)
            with worker(store, redis_url, "--batch", str(batch), *form) as process:
                wait_for(store, len(examples), process)
                process.terminate()
                assert process.wait(20) == 0
            expected = expected or payloads(store)
            assert payloads(store) == expected
    with Store(redis_url, f"{feed}-killed") as store:
        push(examples, redis_url, store.keys.feed)
        kill_and_finish(store, redis_url, len(examples), form)
        assert payloads(store) == expected
        found = verify(store)
        assert found.is_identical
        state = store.state()
        assert state is not None
        assert state.position.seq == len(examples)
        assert state.epoch == KILLS + 1
        print(f"\n{KILLS} kills, {len(examples)} answers, digest {state.position.digest.hex()}")


def kill_and_finish(store: Store, url: str, total: int, form: tuple[str, str]) -> None:
    choose = random.Random(SEED)
    for _ in range(KILLS):
        options = ["--batch", str(choose.choice((1, 7, 64))), "--replay-budget", "300"]
        with worker(store, url, *options, *form) as process:
            wait_for(store, answered(store) + choose.randint(LEAST, MOST), process)
            process.kill()
            process.wait()
    with worker(store, url) as process:
        wait_for(store, total, process)
        process.terminate()
        assert process.wait(20) == 0
