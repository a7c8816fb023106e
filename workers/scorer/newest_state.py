"""The newest published state of a feed, read again when there is another one."""

import time
from dataclasses import dataclass

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.frozen_predictor import FrozenPredictor
from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import QueueStatus
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InvalidPublication, Trouble
from workers.feed.state import FeedState, Publication
from workers.feed.stored_settings import stored_settings
from workers.log import Logger

RETRY_SECONDS = 1.0
"""Seconds after which a state that could not be used is tried again."""

log = Logger("online_svm.scorer")


@dataclass(frozen=True, slots=True)
class Held:
    """A state that was read and passed its checks."""

    publication: Publication
    state: FrozenPredictor
    limits: Limits  # of an entry of the feed


class NewestState:
    """Holds the newest state of a feed that can be used."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader = reader
        self._held: Held | None = None
        self._refused: tuple[str, float] | None = None  # a state, and when it could not be used
        self.loaded = 0  # states read so far

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not give a state; None where the last attempt succeeded."""
        return self._reader.trouble

    def of(self, status: QueueStatus) -> Held | None:
        """Return the state to answer with; None if the feed has none.

        A newer state that cannot be used leaves the one before, which grows stale.

        Raises BadConfiguration if this software cannot answer as the feed's worker does.
        """
        if status.n is None or not status.newest:
            self._held = None
            return None
        key = self._reader.keys.published
        try:
            found = Publication.parse(status.newest, key)
            if self._held is None or found != self._held.publication:
                self._load(found, status)
        except (InvalidPublication, InvalidSnapshot) as error:
            self._refuse(status, str(error))
        # After a reset another feed has this name; a state of the old one answers nothing.
        held = self._held
        if held is None or held.publication.config_hash != status.config_hash:
            return None
        return held if held.publication.n <= status.n else None

    def _load(self, found: Publication, status: QueueStatus) -> None:
        if found.config_hash != status.config_hash:
            return  # of a feed that had this name; its worker publishes the next one
        if self._refused is not None:
            name, when = self._refused
            if name == found.name and time.monotonic() < when + RETRY_SECONDS:
                return
        feed = self._reader.state()
        if feed is None or feed.pinned.config_hash != found.config_hash:
            return
        config, limits = self.settings(feed)
        state = FrozenPredictor.restore(self._reader.published(found), config)
        if state.n != found.n:
            raise InvalidPublication(f"the state {found.name} is of n = {state.n}")
        if self._refused is not None:
            log.info("a published state can be used again", state=found.name)
        self._held, self._refused = Held(found, state, limits), None
        self.loaded += 1

    def settings(self, feed: FeedState) -> tuple[PredictorConfig, Limits]:
        """Return the settings of a feed, if this software can answer for it.

        Raises BadConfiguration if it cannot: other semantics, or a combination.
        """
        name = self._reader.keys.feed
        stored = stored_settings(name, feed.pinned)
        if stored is None:
            raise BadConfiguration(
                f"feed {name!r} is a combination: scorers answer feeds of an SVM"
            )
        return stored

    def _refuse(self, status: QueueStatus, reason: str) -> None:
        name = Publication.shown(status.newest)
        if self._refused is None or self._refused[0] != name:
            log.warning("a published state cannot be used", state=name, reason=reason)
        self._refused = name, time.monotonic()
