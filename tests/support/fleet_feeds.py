"""Feeds of a fleet: their stores, their input, who wrote what, and whether all was answered."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

from many_feeds import SETTINGS, answer_alone, contents, has_answered, settings
from ray_nodes import LOOPBACK
from world import flags_of, push, rows, seq_of, wait_until

from workers.broker.store import Store


class FleetFeeds:
    """Feeds that a fleet answers, each with the bytes that a lone worker would give it."""

    def __init__(self, stores, count):
        self.stores, self.count = stores, count
        self._given = [rows(count, seed) for seed in range(len(stores))]
        self.pushed = 0
        for store in stores:
            store.register()

    def push(self, number, stores=None):
        first = self.pushed
        for store, given in zip(stores or self.stores, self._given, strict=True):
            push(store, given[first : first + number], first=first + 1)
        self.pushed = min(first + number, self.count)

    @contextmanager
    def under_load(self, pause):
        """Add an entry to each feed, again and again, while the block runs."""
        ended = threading.Event()
        names = [(store.url, store.keys.feed) for store in self.stores]

        def load():
            with ExitStack() as opened:
                stores = [opened.enter_context(Store(*name)) for name in names]
                while not ended.wait(pause):
                    self.push(1, stores)

        thread = threading.Thread(target=load)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def is_answered(self):
        return all(has_answered(store, self.pushed) for store in self.stores)

    def seqs(self):
        return [*map(seq_of, self.stores)]

    def wait_until_each_goes_on(self, limit, settle=0.0):
        """Return the seconds until each feed has answered more than after `settle` seconds."""
        began = time.monotonic()
        time.sleep(settle)
        before = self.seqs()
        wait_until(
            lambda: all(now > then for now, then in zip(self.seqs(), before, strict=True)), limit
        )
        return time.monotonic() - began

    def check(self, url, **changed):
        """Compare each feed with a lone worker's; check that no epoch had two writers."""
        for store, given in zip(self.stores, self._given, strict=True):
            with Store(url, f"{store.keys.feed}.alone", block_ms=20) as alone:
                push(alone, given[: self.pushed])
                answer_alone(alone, self.pushed, settings(**changed))
                assert contents(store) == contents(alone), store.keys.feed
            epochs = begun(store)
            assert epochs == sorted(set(epochs)), f"{store.keys.feed}: {epochs}"


def begun(store):
    """Return the epochs of a feed's take-overs, in order."""
    events = [entry for page in store.pages(store.keys.events, b"0-0") for entry in page]
    texts = [b" ".join(fields).decode() for _, fields in events]
    return [int(text.split("epoch ")[1].split(",")[0]) for text in texts if '"began"' in text]


@contextmanager
def fleet_feeds(url, before, number, count):
    """Open the stores of so many feeds, named BEFORE-0, BEFORE-1, ..."""
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(url, f"{before}-{i}", block_ms=20))
                  for i in range(number)]  # fmt: skip
        yield FleetFeeds(stores, count)


FLAGS = flags_of(SETTINGS | {"lease": 1.0})
"""The lease of a host that died lapses soon."""


def fleet(*arguments):
    return run("fleet", *arguments)


def status(*where):
    return run("status", *("--fleet" if word == "--name" else word for word in where), "--json")


def run(*arguments):
    ended = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments],
        env=os.environ | LOOPBACK, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    return ended.returncode, ended.stdout, ended.stderr


def shards(*where):
    code, out, err = status(*where)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]
