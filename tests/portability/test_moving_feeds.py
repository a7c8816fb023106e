"""Feeds that move between processes which compute as unlike machines do."""

import json
import signal
from contextlib import ExitStack, contextmanager

import pytest
from fault_workers import is_done
from machine_variants import NARROW_NUMPY, OLD_LIBC, environment_of, threads
from oracle_feeds import feeds, recorded
from pure_replay import given_by
from world import Worker, push, wait_until

from workers.broker.store import Store

FEEDS = {name: feeds()[name] for name in ("several", "psvm", "late", "refit", "maps", "kinds")}
MACHINES = (
    {}, OLD_LIBC, threads(1) | {"PYTHONHASHSEED": "1"},
    OLD_LIBC | NARROW_NUMPY | {"OPENBLAS_CORETYPE": "Haswell"},
    OLD_LIBC | threads(2) | {"PYTHONHASHSEED": "random"},
)  # fmt: skip
"""Variables of the processes that have the feeds, one after the other."""
SECONDS = 150.0
"""Within which a process starts and answers its share, on a busy machine."""


@contextmanager
def stores_of(url, before):
    with ExitStack() as opened:
        yield {
            name: opened.enter_context(Store(url, f"{before}-{name}", block_ms=20))
            for name in FEEDS
        }


def settings_of(stores):
    lines = []
    for name, store in stores.items():
        lines.append(f'[feed."{store.keys.feed}"]')
        lines += [f"{key} = {json.dumps(value)}" for key, value in FEEDS[name].settings.items()]
    return "\n".join(lines)


def push_part(stores, part):
    """Push one of as many parts of each feed as there are machines; return where each ends."""
    ends = {}
    for name, store in stores.items():
        _, entries = given_by(FEEDS[name])
        first, ends[name] = (len(entries) * i // len(MACHINES) for i in (part, part + 1))
        push(store, [fields for _, fields in entries[first : ends[name]]], first=first + 1)
    return ends


def wait_for(worker, store, end):
    wait_until(lambda: worker.poll() is not None or is_done(store, worker, end), SECONDS)
    assert worker.poll() is None, worker.said


@pytest.mark.slow
@pytest.mark.timeout(6 * SECONDS)
def test_feeds_move_between_unlike_machines_and_their_digests_are_those_of_one(
    embedded_url, feed, tmp_path
):
    config = tmp_path / "feeds.toml"
    with stores_of(embedded_url, feed) as stores, ExitStack() as running:
        config.write_text(settings_of(stores))
        command = ["worker", "--redis", embedded_url, "--config", config, "--lease", "1"]
        command += ["--replay-budget", "35", *(store.keys.feed for store in stores.values())]
        last = None
        for move, variables in enumerate(MACHINES):
            worker = running.enter_context(Worker(*command, env=environment_of(variables)))
            if last is not None:
                # After a kill, what was answered since the snapshot is computed again and compared.
                last.send_signal(signal.SIGKILL if move % 2 else signal.SIGTERM)
            ends, last = push_part(stores, move), worker
            for name, store in stores.items():
                wait_for(worker, store, ends[name])
        for name, store in stores.items():
            digest = store.state().position.digest.hex()
            assert digest[:32] == recorded()["streams"][name]["chained"], name
