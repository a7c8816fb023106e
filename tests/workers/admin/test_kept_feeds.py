"""Feeds that a release left half answered go on with the bytes that it would have given them."""

import json

import kept_feeds
import pytest
from oracle_feeds import feeds

from online_svm.config.semantics import COMPUTED
from workers.admin.verify import verify
from workers.broker.store import Store


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


KEPT = {
    (number, name): kept for number in COMPUTED for name, kept in kept_feeds.read(number).items()
}


@pytest.mark.parametrize(("number", "name"), KEPT)
def test_a_feed_of_a_release_is_continued_with_the_bytes_of_the_release(redis_url, number, name):
    stored, rest = KEPT[number, name], feeds()[name].entries
    with Store(redis_url, name) as store:
        kept_feeds.restored(store, stored["kept"])
        half = stored["half"]
        assert store.length(store.keys.input) == half
        kept_feeds.add(store, rest[half:], half)
        kept_feeds.answer(redis_url, name)
        assert kept_feeds.digests(store) == stored["then"]
        config = json.loads(store.state().pinned.config)
        assert config["predictor"]["semantics"] == number
        assert verify(store).is_identical


def test_feeds_of_0_1_0_name_the_libraries_that_computed_them():
    """What goes on above goes on without a flag, whatever computes it."""
    for name in kept_feeds.NAMES[4]:
        fields = KEPT[4, name]["kept"]["st"]["hash"]
        stored = dict(zip(fields[::2], fields[1::2], strict=True))
        assert (json.loads(stored["environment"]) != {}, stored["format"]) == (True, "1")


@pytest.mark.parametrize("number", COMPUTED)
def test_each_number_that_is_computed_has_its_feeds(number):
    assert tuple(kept_feeds.read(number)) == tuple(sorted(kept_feeds.NAMES[number]))
