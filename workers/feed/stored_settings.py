"""The stored settings of a feed, and the effective settings of its worker."""

import json
from typing import Any

from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.config.settings import Limits, WorkerSettings
from workers.config.text_values import explain
from workers.errors import BadConfiguration
from workers.feed.pinned_config import (
    Groups,
    check_names,
    check_settings,
    check_supported,
    discontinued_semantics,
    stored_groups,
)
from workers.feed.state import FeedState, PinnedConfig


def stored_settings(feed: str, stored: PinnedConfig) -> tuple[PredictorConfig, Limits] | None:
    """Return the stored settings of a feed; None for a combination.

    Raises BadConfiguration if this version does not implement the feed's semantics, or these
    settings together; StateLost if the stored settings are damaged.
    """
    groups = stored_groups(feed, stored)
    return None if "predictor" not in groups else _validated(feed, groups)


def lost_settings(feed: str, stored: PinnedConfig, given: WorkerSettings) -> dict[str, Any] | None:
    """Return the settings that a feed with discontinued semantics loses in a fork.

    Return None for a feed with other semantics. Settings that no longer exist are left out; `given`
    are the settings of the fork. Raises BadConfiguration for a combination, which has no input.
    """
    if discontinued_semantics(stored) is None:
        return None
    theirs, ours = json.loads(stored.config), given.agreed
    if theirs.keys() != ours.keys():
        check_supported(feed, stored)
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
    """Return the given settings, completed by the stored ones.

    `given.model_fields_set` are those given by flag, environment or file; a new feed has no
    `state`. Raises ConfigurationChanged if a given setting differs from a stored one that is
    pinned; BadConfiguration, StateLost as `stored_settings`, or if a new feed's settings are
    invalid.
    """
    if state is None:
        _ = given.predictor  # raises if the settings are invalid
        return given
    stored = stored_settings(feed, state.pinned)
    kept = () if state.retention is None else (state.retention,)
    settings = given if stored is None else given.over(*stored, *kept)
    check_settings(feed, stored_groups(feed, state.pinned), settings.agreed)
    return settings
