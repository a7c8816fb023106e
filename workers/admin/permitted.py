"""Commands that a user may be refused, where the rest of what is told does not depend on them."""

from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.broker.pipeline import Argument
from workers.errors import AccessDenied


def permitted(reader: FeedReader, *command: Argument) -> Any:
    """Return the reply to a command; None where Redis does not let this user run it."""
    try:
        return reader.call(*command)
    except AccessDenied:
        return None
