"""The settings that a feed has stored, and those in force for its worker."""

import json
from typing import Any

from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.config.explain import explain
from workers.config.settings import Limits, WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.agreement import (
    Groups,
    check_computed,
    check_names,
    check_settings,
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


def lost_settings(feed: str, stored: Agreement, given: WorkerSettings) -> dict[str, Any] | None:
    """Return what a feed of earlier semantics was set to and its fork is not.

    None for a feed whose semantics are computed. Settings that are no more are left out.

    Parameters
    ----------
    feed : str
    stored : Agreement
    given : WorkerSettings
        For the fork.

    Raises
    ------
    BadConfiguration
        If the feed is a combination, which has no input.
    """
    if given_up(stored) is None:
        return None
    theirs, ours = json.loads(stored.config), given.agreed
    if theirs.keys() != ours.keys():
        check_computed(feed, stored)
    return {
        name: value
        for group, settings in theirs.items()
        for name, value in settings.items()
        if name in ours[group] and value != ours[group][name] and name != "semantics"
    }


def _validated(feed: str, groups: Groups) -> tuple[PredictorConfig, Limits]:
    check_names(feed, groups["predictor"], PredictorConfig)
    check_names(feed, groups.get("limits", {}), Limits)
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
