"""The stored settings of a feed, and the effective settings of its worker.

Apart from `pinned_config`, which small commands import without the machinery of settings.
"""

from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.config.settings import Limits, WorkerSettings
from workers.config.text_values import explain
from workers.errors import BadConfiguration
from workers.feed.pinned_config import Groups, check_names, check_settings, stored_groups
from workers.feed.state import FeedState, PinnedConfig


def stored_settings(feed: str, stored: PinnedConfig) -> tuple[PredictorConfig, Limits]:
    """Return the stored settings of a feed.

    Raises BadConfiguration if this version does not implement the feed's semantics, or these
    settings together; StateLost if the stored settings are damaged.
    """
    return _validated(feed, stored_groups(feed, stored))


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
    settings = given.over(*stored, *kept)
    check_settings(feed, stored_groups(feed, state.pinned), settings.agreed)
    return settings
