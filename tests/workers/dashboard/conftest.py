"""Feeds for the page, closed at the end of a test."""

import pytest
from dashboard_feed import Feed


@pytest.fixture
def feeds():
    """Make a feed by URL and name; close its connection at the end."""
    made = []

    def make(url, name):
        made.append(Feed(url, name))
        return made[-1]

    yield make
    for one in made:
        one.store.close()
