"""The settings that a feed has stored, and those in force for its worker."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from online_svm import semantics
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidConfig
from workers.config.explain import explain
from workers.config.settings import Limits, WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.agreement import (
    Groups,
    check_computed,
    check_settings,
    check_whole,
    given_up,
    stored_groups,
)
from workers.feed.state import Agreement, FeedState


def stored_settings(feed: str, stored: Agreement) -> tuple[PredictorConfig, Limits] | None:
    """Return the settings of a feed; None for a combination.

    Raises
    ------
    BadConfiguration
        If this version does not compute the feed's semantics, or not these settings together.
    StateLost
        If what is stored is damaged.
    """
    groups = stored_groups(feed, stored)
    return None if "predictor" not in groups else _validated(feed, groups)


class Changed(NamedTuple):
    """A default that is another now; both as JSON has them."""

    then: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Renewed:
    """The settings of a feed whose semantics were given up, for a feed that begins now.

    Attributes
    ----------
    settings : WorkerSettings
    kept : dict of str to Changed
        Those that have the default of then, where the default is another now.
    """

    settings: WorkerSettings
    kept: dict[str, Changed]


def renewed_settings(given: WorkerSettings, feed: str, stored: Agreement) -> Renewed | None:
    """Return the stored settings with their old meaning; None if their semantics are computed.

    What was given, by file or environment, is taken instead.

    Raises
    ------
    BadConfiguration
        If the feed is a combination, or the settings cannot work together.
    StateLost
        If what is stored is damaged.
    """
    number = given_up(stored)
    if number is None:
        return None
    check_whole(feed, stored)
    try:
        groups = semantics.meaning(json.loads(stored.config))
    except InvalidConfig as error:
        raise BadConfiguration(f"feed {feed!r}: {error}") from error
    if "predictor" not in groups:
        check_computed(feed, stored)
    groups["predictor"]["semantics"] = semantics.SEMANTICS
    settings = given.over(*_validated(feed, groups))
    _ = settings.predictor  # raises if they cannot work with what was given
    now = {"predictor": PredictorConfig(), "limits": Limits()}
    kept = {
        name: Changed(value, new)
        for group, model in now.items()
        for name, new in model.model_dump(mode="json").items()
        if name not in given.model_fields_set
        if (value := settings.agreed[group][name]) == semantics.DEFAULTS[number][group][name]
        if value != new
    }
    return Renewed(settings, kept)


def _validated(feed: str, groups: Groups) -> tuple[PredictorConfig, Limits]:
    try:
        return (
            PredictorConfig.model_validate(groups["predictor"]),
            Limits.model_validate(groups["limits"]),
        )
    except ValidationError as error:
        raise BadConfiguration(
            f"feed {feed!r} was begun with settings that this version does not take: "
            f"{explain(error)}: go back to the version that began it, or: online-svm reset {feed}"
        ) from None


def effective_settings(given: WorkerSettings, feed: str, state: FeedState | None) -> WorkerSettings:
    """Return the settings in force: the given ones, and the stored ones for the rest.

    Parameters
    ----------
    given : WorkerSettings
        Whose `model_fields_set` says which were given, by flag, environment or file.
    feed : str
    state : FeedState or None
        None for a feed that does not exist yet: the rest then has its defaults.

    Raises
    ------
    ConfigurationChanged
        If a given setting differs from the stored one.
    BadConfiguration, StateLost
        As `stored_settings`, or if the settings for a new feed cannot work.
    """
    if state is None:
        _ = given.predictor  # raises if the settings cannot work
        return given
    stored = stored_settings(feed, state.agreement)
    settings = given if stored is None else given.over(*stored)
    check_settings(feed, stored_groups(feed, state.agreement), settings.agreed)
    return settings
