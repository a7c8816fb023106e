"""Feeds that move between processes which compute as unlike machines do."""

import json
import signal
import sys
from contextlib import ExitStack, contextmanager

import pytest
from machine_variants import NARROW_NUMPY, OLD_LIBC, environment_of
from many_feeds import has_answered
from portable_digests import of_predictor
from portable_modes import MODES, entries_of
from processes import Process
from world import push, wait_until

from workers.broker.store import Store

FEEDS = {
    "committee": "default committee 3", "probabilities": "psvm oldest",
    "late": "late labels of a committee", "drift": "drift refit of a committee 3",
    "maps": "maps of training",
}  # fmt: skip
"""Mode of each feed, by the end of its name."""
MACHINES = (
    {}, OLD_LIBC, {}, OLD_LIBC | NARROW_NUMPY | {"OPENBLAS_CORETYPE": "Haswell"}, OLD_LIBC,
)  # fmt: skip
"""Variables of the processes that have the feeds, one after the other."""
SECONDS = 150.0
"""Within which a process starts and answers its share, on a busy machine."""


@contextmanager
def stores_of(url, before):
    """Open the store of each feed, by its name in `FEEDS`."""
    with ExitStack() as opened:
        yield {
            name: opened.enter_context(Store(url, f"{before}-{name}", block_ms=20))
            for name in FEEDS
        }


def settings_of(stores):
    """Return the settings of each feed as a settings file has them."""
    lines = []
    for name, store in stores.items():
        lines.append(f'[feed."{store.keys.feed}"]')
        settings = MODES[FEEDS[name]][2].items()
        lines += [f"{key} = {json.dumps(value)}" for key, value in settings if value is not None]
    return "\n".join(lines)


def push_part(stores, part):
    """Push one of as many parts of each feed as there are machines; return where each ends."""
    ends = {}
    for name, store in stores.items():
        entries = entries_of(FEEDS[name])
        first, ends[name] = (len(entries) * i // len(MACHINES) for i in (part, part + 1))
        push(store, entries[first : ends[name]], first=first + 1)
    return ends


def is_done(worker, store, end):
    """Return whether a process has the lease of a feed, of which so many entries are answered."""
    holder = store.call("GET", store.keys.lease) or b""
    return f'"pid": {worker.pid},'.encode() in holder and has_answered(store, end)


def wait_for(worker, store, end, notes):
    """Wait until a process has taken a feed, and so many entries of it are answered."""
    wait_until(lambda: worker.poll() is not None or is_done(worker, store, end), SECONDS)
    assert worker.poll() is None, notes.read_text()


@pytest.mark.slow
@pytest.mark.timeout(6 * SECONDS)
def test_feeds_move_between_unlike_machines_and_their_digests_are_those_of_one(
    embedded_url, feed, tmp_path
):
    notes, config = tmp_path / "notes", tmp_path / "feeds.toml"
    with stores_of(embedded_url, feed) as stores, ExitStack() as running:
        config.write_text(settings_of(stores))
        command = [sys.executable, "-m", "workers", "worker", "--redis", embedded_url]
        command += ["--config", str(config), "--lease", "1", "--replay-budget", "35"]
        command += [store.keys.feed for store in stores.values()]
        log, last = running.enter_context(notes.open("w")), None
        for move, variables in enumerate(MACHINES):
            environment = environment_of(variables)
            worker = Process(command, env=environment, stdout=log, stderr=log)
            running.enter_context(worker)
            if last is not None:
                # After a kill, what was answered since the snapshot is computed again and compared.
                last.send_signal(signal.SIGKILL if move % 2 else signal.SIGTERM)
            ends, last = push_part(stores, move), worker
            for name, store in stores.items():
                wait_for(worker, store, ends[name], notes)
        for name, store in stores.items():
            *_, (undisturbed, _) = of_predictor(FEEDS[name])
            assert store.state().position == undisturbed.after, name
