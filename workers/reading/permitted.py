"""Commands that a user may be refused, where the rest of what is told does not depend on them."""

from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.broker.pipeline import Argument
from workers.errors import AccessDenied


def permitted(reader: FeedReader, *command: Argument) -> Any:
    """Return the reply of the feed's server; None where Redis does not let this user ask it."""
    try:
        return reader.call_server(*command)
    except AccessDenied:
        return None
