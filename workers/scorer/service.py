"""Run a scorer: check the server and the permissions, then answer until a stop is requested."""

import os
import platform
import secrets
import time
from contextlib import ExitStack, closing

from workers.broker import permissions
from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import RequestQueue
from workers.errors import BadConfiguration, Stopped
from workers.feed.state import FeedState
from workers.log import Logger
from workers.python_process import importing
from workers.scorer.settings import ScorerCounts, ScorerSettings
from workers.stop import Stop, signals

_POLL_SECONDS = 0.5  # between two checks for a feed that does not exist yet

log = Logger("online_svm.scorer")


def run(
    feed: str,
    url: str,
    settings: ScorerSettings,
    name: str | None = None,
    stop: Stop | None = None,
    counts: ScorerCounts | None = None,
) -> None:
    """Answer the requests of a feed until SIGTERM or SIGINT; finish the current batch.

    `name` must be unique among scorers, by default host, process and a random token. With `stop`,
    no signal handlers are installed. Raises WorkerError; the command
    ends with its `exit_code`.
    """
    consumer = name or f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
    with ExitStack() as opened:
        if stop is None:
            stop = Stop()
            opened.enter_context(signals(stop))
        reader = opened.enter_context(FeedReader(url, feed, stop, settings.wait))
        permissions.check(url, permissions.of_scorer(reader.keys), stop, settings.wait)
        queue = opened.enter_context(
            closing(RequestQueue(url, feed, consumer, stop, batch=settings.batch))
        )
        state = _wait_for_state(reader, settings.wait, stop)
        if state is None:
            return
        # Imported here: errors of the server or the feed are reported without this delay.
        with importing():
            from workers.scorer.newest_state import NewestState
            from workers.scorer.scorer import Scorer

            newest = NewestState(reader)
            queue.max_request_bytes = newest.settings(state)[1].max_entry_bytes
        reader.retry_forever()
        queue.retry_forever()
        counts = counts or ScorerCounts()
        scorer = Scorer(queue, newest, settings, stop, counts=counts)
        log.info("answering requests", feed=feed, scorer=consumer)
        try:
            scorer.run()
        except Stopped:
            log.info("stopped while Redis did not answer; what is left is taken over")
        log.info(
            "stopped", answered=counts.written, unavailable=counts.unavailable,
            taken_over=counts.taken_over, answered_elsewhere=counts.elsewhere,
        )  # fmt: skip


def _wait_for_state(reader: FeedReader, seconds: float, stop: Stop) -> FeedState | None:
    """Wait for a feed that does not exist yet; return its state, None after a stop."""
    deadline = time.monotonic() + seconds
    while (state := reader.state()) is None:
        if time.monotonic() >= deadline:
            feed = reader.keys.feed
            raise BadConfiguration(f"feed {feed!r} does not exist yet: start its worker first")
        if stop.wait(_POLL_SECONDS):
            return None
    return state
