"""Feeds of one test, on one server."""

from contextlib import ExitStack

import pytest

from workers.broker.store import Store


@pytest.fixture
def feeds(redis_url, feed):
    """Open stores of feeds, the name of each of which begins with that of the test's feed."""
    with ExitStack() as opened:

        def stores(*suffixes):
            names = [f"{feed}-{suffix}" for suffix in suffixes]
            return [opened.enter_context(Store(redis_url, name, block_ms=20)) for name in names]

        yield stores
