"""Feeds of every kind that a gateway meets, behind one worker and one gateway."""

import json
from contextlib import ExitStack

import pytest
from world import SETTINGS, Worker, flags_of, push, rows, wait_until

from workers.broker import embedded
from workers.broker.store import Store

SECTIONS = """
[feed.kept]
dedupe_window = 100
[feed.late]
horizon = "60"
[feed.named]
slices = "country"
"""

WARM = 120
"""Entries that each feed has learned before the tests."""

FEEDS = ("plain", "kept", "late", "named", "cells")


def named(count):
    """Return entries of two classes, whose rows are named cells of several kinds."""
    rows = [
        {"amount": i % 7 + 0.5, "country": "df"[i % 2] + "e", "new": i % 3 == 0}
        for i in range(count)
    ]
    return [["x", json.dumps(row), "y", "ab"[i % 2]] for i, row in enumerate(rows)]


@pytest.fixture(scope="session")
def answered(tmp_path_factory):
    """URL of a server on which one worker answers `FEEDS`; all but `named` have a model."""
    config = tmp_path_factory.mktemp("gateway") / "worker.toml"
    config.write_text(SECTIONS)
    entries = rows(WARM)
    with ExitStack() as opened:
        url = opened.enter_context(embedded.temporary()).url
        stores = {feed: opened.enter_context(Store(url, feed, block_ms=20)) for feed in FEEDS}
        for feed, store in stores.items():
            if feed != "named":
                push(store, named(WARM) if feed == "cells" else entries)
        command = ("worker", *FEEDS, "--redis", url, "--config", config, *flags_of(SETTINGS))
        worker = opened.enter_context(Worker(*command))
        for feed, store in stores.items():
            worker.wait_for(store, 0 if feed == "named" else WARM)
        wait_until(lambda: stores["named"].state() is not None)
        yield url


@pytest.fixture
def gateway(answered):
    """A client of a gateway of all feeds."""
    from served_gateway import serving

    with serving(answered, *FEEDS) as client:
        yield client


@pytest.fixture
def stores(answered):
    """The stores of the feeds, by name."""
    made = {feed: Store(answered, feed) for feed in FEEDS}
    yield made
    for store in made.values():
        store.close()
