"""The newest published state of a feed, read again when it changes."""

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

RETRY_SECONDS = 1.0  # seconds after which an unusable state is tried again

log = Logger("online_svm.scorer")


@dataclass(frozen=True, slots=True)
class LoadedState:
    """A state that was read and passed its checks."""

    publication: Publication
    state: FrozenPredictor
    limits: Limits  # of the feed


class NewestState:
    """Keeps the newest usable state of a feed."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader = reader
        self._loaded: LoadedState | None = None
        self._unusable: tuple[str, float] | None = None  # name, and time of the last attempt
        self.loads = 0  # number of states read so far

    @property
    def trouble(self) -> Trouble | None:
        """Why the last read failed; None if it succeeded."""
        return self._reader.trouble

    def current(self, status: QueueStatus) -> LoadedState | None:
        """Return the state to answer with, if any.

        If the newest state is unusable, the previous one stays, and grows stale. Raises
        BadConfiguration if this version cannot answer as the feed's worker does.
        """
        if status.n is None or not status.newest:
            self._loaded = None
            return None
        key = self._reader.keys.published
        try:
            found = Publication.parse(status.newest, key)
            if self._loaded is None or found != self._loaded.publication:
                self._load(found, status)
        except (InvalidPublication, InvalidSnapshot) as error:
            self._mark_unusable(status, str(error))
        # After a reset another feed has this name: a state of the old feed must not answer.
        loaded = self._loaded
        if loaded is None or loaded.publication.config_hash != status.config_hash:
            return None
        return loaded if loaded.publication.n <= status.n else None

    def _load(self, found: Publication, status: QueueStatus) -> None:
        if found.config_hash != status.config_hash:
            return  # of a deleted feed with this name
        if self._unusable is not None:
            name, tried_at = self._unusable
            if name == found.name and time.monotonic() < tried_at + RETRY_SECONDS:
                return
        feed = self._reader.state()
        if feed is None or feed.pinned.config_hash != found.config_hash:
            return
        config, limits = self.settings(feed)
        state = FrozenPredictor.restore(self._reader.published(found), config)
        if state.n != found.n:
            raise InvalidPublication(f"the state {found.name} is of n = {state.n}")
        if self._unusable is not None:
            log.info("a published state can be used again", state=found.name)
        self._loaded, self._unusable = LoadedState(found, state, limits), None
        self.loads += 1

    def settings(self, feed: FeedState) -> tuple[PredictorConfig, Limits]:
        """Return the stored settings of a feed.

        Raises BadConfiguration for unsupported semantics, or a combination.
        """
        name = self._reader.keys.feed
        stored = stored_settings(name, feed.pinned)
        if stored is None:
            raise BadConfiguration(
                f"feed {name!r} is a combination: scorers answer feeds of an SVM"
            )
        return stored

    def _mark_unusable(self, status: QueueStatus, reason: str) -> None:
        name = Publication.shown(status.newest)
        if self._unusable is None or self._unusable[0] != name:
            log.warning("a published state cannot be used", state=name, reason=reason)
        self._unusable = name, time.monotonic()
