"""The newest published state of a feed, read again when there is another one."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.answering_state import AnsweringState
from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import QueueStatus
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InvalidPublication
from workers.feed.agreement import agreement, check_environment
from workers.feed.publication import Publication
from workers.feed.state import FeedState
from workers.feed.stored_settings import stored_settings
from workers.log import Logger
from workers.trouble import Trouble

AGAIN = 1.0
"""Seconds after which a state that could not be used is tried again."""

_ACCEPTING = (
    "let the worker go on in this one first; or use --accept-environment, and answers may differ "
    "from the worker's in their last digits"
)

log = Logger("online_svm.scorer")


@dataclass(frozen=True, slots=True)
class Held:
    """A state that was read and passed its checks.

    Attributes
    ----------
    publication : Publication
    state : AnsweringState
    limits : Limits
        Of an entry of the feed.
    """

    publication: Publication
    state: AnsweringState
    limits: Limits


class NewestState:
    """Holds the newest state of a feed that can be used.

    Parameters
    ----------
    reader : FeedReader
    accept_environment : bool
        Use it even where another version of numba computed the feed: the answers may then differ
        from the worker's in their last digits.
    clock : callable
        Seconds.

    Attributes
    ----------
    loaded : int
        States read so far.
    """

    def __init__(
        self,
        reader: FeedReader,
        accept_environment: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader, self._accepts, self._clock = reader, accept_environment, clock
        self._held: Held | None = None
        self._refused: tuple[str, float] | None = None  # a state, and when it could not be used
        self.loaded = 0

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not give a state; None where the last attempt succeeded."""
        return self._reader.trouble

    def of(self, standing: QueueStatus) -> Held | None:
        """Return the state to answer with; None if the feed has none.

        A newer state that cannot be used leaves the one before, which grows stale.

        Raises
        ------
        BadConfiguration
            If this software or machine cannot answer as the feed's worker does.
        """
        if standing.n is None or not standing.newest:
            self._held = None
            return None
        key = self._reader.keys.published
        try:
            found = Publication.parse(standing.newest, key)
            if self._held is None or found != self._held.publication:
                self._load(found, standing)
        except (InvalidPublication, InvalidSnapshot) as error:
            self._refuse(standing, str(error))
        # After a reset another feed has this name; a state of the old one answers nothing.
        held = self._held
        if held is None or held.publication.config_hash != standing.config_hash:
            return None
        return held if held.publication.n <= standing.n else None

    def _load(self, found: Publication, standing: QueueStatus) -> None:
        if found.config_hash != standing.config_hash:
            return  # of a feed that had this name; its worker publishes the next one
        if self._refused is not None:
            name, when = self._refused
            if name == found.name and self._clock() < when + AGAIN:
                return
        feed = self._reader.state()
        if feed is None or feed.agreement.config_hash != found.config_hash:
            return
        config, limits = self.settings(feed)
        state = AnsweringState.restore(self._reader.published(found), config)
        if state.n != found.n:
            raise InvalidPublication(f"the state {found.name} is of n = {state.n}")
        _compile(state)
        if self._refused is not None:
            log.info("a published state can be used again", state=found.name)
        self._held, self._refused = Held(found, state, limits), None
        self.loaded += 1

    def settings(self, feed: FeedState) -> tuple[PredictorConfig, Limits]:
        """Return the settings of a feed, if this software and machine can answer for it.

        Raises
        ------
        BadConfiguration
            If they cannot: another environment, other semantics, or a combination.
        """
        name = self._reader.keys.feed
        stored = stored_settings(name, feed.agreement)
        if stored is None:
            raise BadConfiguration(
                f"feed {name!r} is a combination: scorers answer feeds of an SVM"
            )
        if not self._accepts:
            check_environment(name, feed.agreement, agreement(*stored), _ACCEPTING)
        return stored

    def _refuse(self, standing: QueueStatus, reason: str) -> None:
        name = Publication.shown(standing.newest)
        if self._refused is None or self._refused[0] != name:
            log.warning("a published state cannot be used", state=name, reason=reason)
        self._refused = name, self._clock()


def _compile(state: AnsweringState) -> None:
    """Answer a row, so that what this state needs is compiled before requests are in hand.

    With cold kernels that takes longer than `claim_after`: other scorers, which compile as well,
    would take the requests over from one another until they are given up.
    """
    if state.schema.dimension is not None:
        state.answer(np.zeros((1, state.schema.dimension)))
