"""The pinned configuration of a feed, which never changes, and its checks."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from online_svm.config import semantics
from online_svm.errors import InvalidConfig
from workers.config.text_values import option
from workers.errors import BadConfiguration, ConfigurationChanged, StateLost, way_back
from workers.feed.state import PinnedConfig

Groups = Mapping[str, Mapping[str, Any]]  # JSON values of settings, by group and name


def pinned_config(predictor: BaseModel, limits: BaseModel) -> PinnedConfig:
    """Return the configuration of a new feed with these settings."""
    parts = {"predictor": predictor, "limits": limits}
    groups = {name: part.model_dump(mode="json") for name, part in parts.items()}
    config = json.dumps(groups, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return PinnedConfig(config, sha256(config.encode()).hexdigest())


def stored_groups(feed: str, stored: PinnedConfig) -> Groups:
    """Return all settings of a stored configuration, by group.

    Raises BadConfiguration if this version does not implement its semantics; StateLost if it is
    damaged.
    """
    check_hash(feed, stored)
    check_supported(feed, stored)
    groups = _read(stored)
    if groups is None:
        raise StateLost(f"feed {feed!r}: its configuration is damaged; {way_back(feed)}")
    try:
        semantics.check(semantics.of(groups))
    except InvalidConfig as error:
        raise BadConfiguration(f"feed {feed!r}: {error}, or: {_restart_commands(feed)}") from error
    return groups


def check_supported(feed: str, stored: PinnedConfig) -> None:
    """Raise BadConfiguration, with the remedy, if only earlier versions implement the semantics."""
    groups = _read(stored)
    number = None if groups is None else semantics.of(groups)
    if not isinstance(number, int) or not semantics.is_earlier(number):
        return
    raise BadConfiguration(
        f"feed {feed!r} was begun under semantics {number}, which is no longer computed "
        f"({semantics.SEMANTICS} is). Go on with: online-svm fork {feed} --to NEW (a new feed with "
        f"its kept input and today's defaults); or: online-svm reset {feed}"
    )


def check_names(feed: str, stored: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Raise BadConfiguration unless the stored names are the model's fields."""
    names = sorted(model.model_fields.keys() ^ stored.keys())
    if names:
        shown = ", ".join(name[:80] for name in names[:5])
        raise BadConfiguration(
            f"feed {feed!r} was begun by another version, with other settings ({shown}): go on "
            f"with that version, or: {_restart_commands(feed)}"
        )


def check_config(feed: str, stored: PinnedConfig, ours: PinnedConfig) -> None:
    """Raise ConfigurationChanged, with every difference, unless the settings are the same."""
    if stored.config == ours.config:  # nearly always; saves the parsing
        check_hash(feed, stored)
        return
    check_settings(feed, stored_groups(feed, stored), json.loads(ours.config))


def check_settings(feed: str, before: Groups, now: Groups) -> None:
    """Raise ConfigurationChanged, with every difference, unless groups of settings are equal."""
    if before == now:
        return
    raise ConfigurationChanged(
        f"feed {feed!r} was begun with another configuration: {changes(before, now)}. Use the "
        f"stored one{_options(before, now)}, or: {_restart_commands(feed)}"
    )


def changes(before: Groups, now: Groups) -> str:
    """Return a text with every setting that differs; empty if none does."""
    old, new = _settings(before), _settings(now)
    return "; ".join(
        f"{name}: feed {old.get(name)!r}, here {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def check_hash(feed: str, stored: PinnedConfig) -> None:
    """Raise StateLost unless the stored configuration has the stored hash."""
    if sha256(stored.config.encode()).hexdigest() != stored.config_hash:
        raise StateLost(
            f"feed {feed!r}: its state is damaged: field 'config_hash' is not the SHA-256 of field "
            f"'config'; {way_back(feed)}"
        )


def _restart_commands(feed: str) -> str:
    return (
        f"online-svm fork {feed} --to NEW (a new feed over the kept input, for other settings), "
        f"or: online-svm reset {feed}"
    )


def _read(stored: PinnedConfig) -> Groups | None:
    """Return the groups of a stored configuration; None if it is damaged."""
    try:
        groups = json.loads(stored.config)
    except ValueError:
        return None
    is_whole = isinstance(groups, dict) and all(isinstance(part, dict) for part in groups.values())
    return groups if is_whole else None


def _settings(config: Groups) -> dict[str, Any]:
    return {name: value for part in config.values() for name, value in part.items()}


def _options(before: Groups, now: Groups) -> str:
    """Return, in parentheses, the options that give a worker the settings of the feed."""
    stored, ours = _settings(before), _settings(now)
    options = [
        option(name, stored[name])
        for name in sorted(stored.keys() & ours.keys())
        if stored[name] != ours[name]
    ]
    return f" ({' '.join(options)})" if options else ""
