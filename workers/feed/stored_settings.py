"""The settings that a feed has stored, and those in force for its worker."""

from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.config.explain import explain
from workers.config.settings import Limits, WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.agreement import check_settings, stored_groups
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
    if "predictor" not in groups:
        return None
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
