"""The settings that are stored with a feed, for those who show what it has."""

from workers.broker.feed_reader import FeedReader
from workers.errors import BadConfiguration, StateLost
from workers.feed.agreement import Groups, stored_groups


def stored_values(reader: FeedReader) -> Groups:
    """Return the stored settings of a feed, by group; empty if it has none that can be read."""
    try:
        state = reader.state()
        return {} if state is None else stored_groups(reader.keys.feed, state.agreement)
    except (StateLost, BadConfiguration):
        return {}  # the answers can be shown all the same
