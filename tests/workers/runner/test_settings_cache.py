"""Settings in force are worked out once for feeds that agree; each feed is still checked."""

from dataclasses import replace

import pytest
from many_feeds import answer_alone, settings
from world import push, rows

from workers.broker.store import Store
from workers.errors import ConfigurationChanged, StateLost
from workers.feed.pinned_config import pinned_config
from workers.feed.stored_settings import effective_settings
from workers.runner.redis_context import _MAX_CACHED, SettingsCache


@pytest.fixture
def state(embedded_url, feed):
    with Store(embedded_url, feed) as store:
        push(store, rows(30, 0))
        answer_alone(store, 30, settings())
        return store.state()


def test_feeds_with_the_same_settings_share_what_they_come_to(state):
    cache, given = SettingsCache(16), settings(batch=64)
    first, second = cache.effective(given, "a", state), cache.effective(given, "b", state)
    assert first is second
    used = effective_settings(given, "a", state)
    assert first.pinned == pinned_config(used.predictor, used.limits)
    assert first.settings == used.model_copy(update={"batch": 16})
    assert cache.effective(given, "new", None).settings.batch == 16
    other = cache.effective(settings(batch=8), "a", state)
    assert other.settings.batch == 8


def test_a_feed_with_other_or_damaged_settings_is_refused_whatever_came_before(state):
    cache, given = SettingsCache(16), settings()
    cache.effective(given, "a", state)
    with pytest.raises(ConfigurationChanged, match="feed 'b'"):
        cache.effective(settings(window=80), "b", state)
    damaged = replace(state.pinned, config=state.pinned.config.replace("60", "61"))
    with pytest.raises(StateLost, match="feed 'c'"):
        cache.effective(given, "c", replace(state, pinned=damaged))


def test_kinds_of_feeds_without_end_take_no_memory_without_end(state):
    cache = SettingsCache(16)
    for _ in range(3 * _MAX_CACHED):
        cache.effective(settings(), "a", state)
    assert len(cache._cached) <= _MAX_CACHED
