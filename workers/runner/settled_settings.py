"""The settings in force of feeds, worked out once for all feeds with the same ones."""

from typing import NamedTuple

from workers.config.settings import WorkerSettings
from workers.feed.agreement import agreement
from workers.feed.state import Agreement, FeedState
from workers.feed.stored_settings import effective_settings

_MOST = 64
"""Kinds of feeds that are remembered; most processes have one or two."""


class Settled(NamedTuple):
    """What a feed is answered with.

    Attributes
    ----------
    settings : WorkerSettings
        In force; entries of a batch are bounded for a process of many feeds.
    agreement : Agreement
        That a feed has which begins now with these settings.
    """

    settings: WorkerSettings
    agreement: Agreement


class SettledSettings:
    """Remembers what settings that were given and settings that are stored come to.

    Parameters
    ----------
    batch : int
        Bound on this setting.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        # Kept with what was given, whose identity is part of the key.
        self._found: dict[tuple[int, str, str], tuple[WorkerSettings, Settled]] = {}

    def of(self, given: WorkerSettings, feed: str, state: FeedState | None) -> Settled:
        """Return the settings in force, and their agreement; see `effective_settings`.

        Raises
        ------
        ConfigurationChanged, BadConfiguration, StateLost
            As `effective_settings`.
        """
        stored = (
            ("", "") if state is None else (state.agreement.config, state.agreement.config_hash)
        )
        key = (id(given), *stored)
        if key not in self._found:
            if len(self._found) >= _MOST:
                self._found.clear()
            self._found[key] = given, self._settled(effective_settings(given, feed, state))
        return self._found[key][1]

    def _settled(self, used: WorkerSettings) -> Settled:
        bounded = used.model_copy(update={"batch": min(used.batch, self._batch)})
        return Settled(bounded, agreement(used.predictor, used.limits))
