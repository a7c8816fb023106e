"""Feeds that a release left half answered go on with the bytes that it would have given them."""

import kept_feeds
import pytest
from oracle_feeds import feeds

from online_svm.config.semantics import SEMANTICS
from workers.admin.verify import verify
from workers.broker.store import Store


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


@pytest.fixture(scope="module")
def kept():
    return kept_feeds.read(SEMANTICS)


@pytest.mark.parametrize("name", kept_feeds.NAMES)
def test_a_feed_of_the_release_is_continued_with_the_bytes_of_the_release(redis_url, kept, name):
    stored, rest = kept[name], feeds()[name].entries
    with Store(redis_url, name) as store:
        kept_feeds.restored(store, stored["kept"])
        half = stored["half"]
        assert store.length(store.keys.input) == half
        kept_feeds.add(store, rest[half:], half)
        # numba may be a later one than that of the release: the bytes are the same.
        kept_feeds.answer(redis_url, name, accept_environment=True)
        assert kept_feeds.digests(store) == stored["then"]
        assert verify(store).is_identical
