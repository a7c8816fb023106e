"""The agreement of a feed and its workers: the configuration, and the environment."""

import json
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

from online_svm.config import semantics
from online_svm.errors import InvalidConfig
from workers.config.text_values import option
from workers.errors import BadConfiguration, ConfigurationChanged, EnvironmentChanged, StateLost
from workers.feed.state import Agreement

Groups = Mapping[str, Mapping[str, Any]]
"""Settings by name, in groups by name, as JSON has them."""

COMPUTING = ("numba",)
"""Libraries whose version can change a byte of an answer.

numba compiles every kernel. What is asked of numpy has one right result: IEEE operations element by
element, sorts that keep the order of equals, integers, copies. scipy and scikit-learn compute
nothing that enters an answer, nor do BLAS and the C library.
"""


def agreement(predictor: BaseModel, limits: BaseModel) -> Agreement:
    """Return the agreement of a feed that begins now, with these settings.

    The limits are part of it because they decide which entries are learned.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> one = agreement(PredictorConfig(), PredictorConfig())
    >>> one.config_hash == agreement(PredictorConfig(C=2), PredictorConfig()).config_hash
    False
    """
    return bound_to({"predictor": predictor, "limits": limits})


def bound_to(parts: Mapping[str, BaseModel]) -> Agreement:
    """Return the agreement of a feed that begins now, with these named groups of settings."""
    config = _canonical({name: part.model_dump(mode="json") for name, part in parts.items()})
    return Agreement(config, sha256(config.encode()).hexdigest(), _canonical(environment()))


def environment() -> dict[str, str]:
    """Return the library versions for which the bytes are guaranteed, on any machine.

    Examples
    --------
    >>> list(environment())
    ['numba']
    """
    return {name: _version(name) for name in COMPUTING}


_version = cache(version)  # it reads a file, and a process may begin a thousand feeds


def stored_groups(feed: str, stored: Agreement) -> Groups:
    """Return all settings of a stored configuration, by group.

    Raises
    ------
    BadConfiguration
        If this version does not compute its semantics.
    StateLost
        If it is damaged.
    """
    check_whole(feed, stored)
    check_computed(feed, stored)
    groups = _read(stored)
    if groups is None:
        raise StateLost(
            f"feed {feed!r}: its configuration is damaged: restore it from a backup, or: "
            f"online-svm reset {feed}"
        )
    try:
        semantics.check(semantics.of(groups))
    except InvalidConfig as error:
        raise BadConfiguration(f"feed {feed!r}: {error}, or: {_anew(feed)}") from error
    return groups


def given_up(stored: Agreement) -> int | None:
    """Return the semantics of a stored configuration if an earlier version computed them.

    None also where they cannot be read: what reads the configuration then says so.
    """
    groups = _read(stored)
    number = None if groups is None else semantics.of(groups)
    return number if isinstance(number, int) and semantics.is_earlier(number) else None


def check_computed(feed: str, stored: Agreement) -> None:
    """Raise BadConfiguration, with the way on, for the semantics of an earlier version."""
    number = given_up(stored)
    if number is None:
        return
    sources = json.loads(stored.config).get("join", {}).get("feeds")
    way = (
        f"online-svm fork {feed} --to NEW (a new feed with its kept input and today's defaults)"
        if sources is None
        else f"online-svm fork each of {', '.join(sources)}, and combine the new feeds"
    )
    raise BadConfiguration(
        f"feed {feed!r} was begun under semantics {number}, which is no longer computed "
        f"({semantics.SEMANTICS} is). Go on with: {way}; or: online-svm reset {feed}"
    )


def check_names(feed: str, stored: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Raise BadConfiguration, with every name, unless stored settings are those of the model."""
    names = sorted(stored.keys() ^ model.model_fields.keys())
    if names:
        shown = ", ".join(name[:80] for name in names[:5])
        raise BadConfiguration(
            f"feed {feed!r} was begun by another version, with other settings ({shown}): go on "
            f"with that version, or: {_anew(feed)}"
        )


def check_config(feed: str, stored: Agreement, ours: Agreement) -> None:
    """Raise ConfigurationChanged, with every difference, unless the settings are the same.

    Raises
    ------
    BadConfiguration, StateLost
        As `stored_groups`.
    """
    if stored.config == ours.config:  # as nearly always: nothing has to be read
        check_whole(feed, stored)
        return
    check_settings(feed, stored_groups(feed, stored), json.loads(ours.config))


def check_settings(feed: str, before: Groups, now: Groups) -> None:
    """Raise ConfigurationChanged, with every difference, unless groups of settings are equal."""
    if before == now:
        return
    raise ConfigurationChanged(
        f"feed {feed!r} was begun with another configuration: {changes(before, now)}. Use the "
        f"stored one{_options(before, now)}, or: {_anew(feed)}"
    )


def changes(before: Groups, now: Groups) -> str:
    """Return every setting that differs between groups; an empty text if none does."""
    return "; ".join(_differences(_settings(before), _settings(now)))


def check_whole(feed: str, stored: Agreement) -> None:
    """Raise StateLost unless the stored configuration has the stored hash."""
    if sha256(stored.config.encode()).hexdigest() != stored.config_hash:
        raise StateLost(
            f"feed {feed!r}: its state is damaged: field 'config_hash' is not the SHA-256 of field "
            f"'config'; restore it from a backup, or: online-svm reset {feed}"
        )


_ACCEPTING = (
    "use --accept-environment, which recomputes what is kept and compares the bytes "
    "before it goes on"
)


def check_environment(
    feed: str, stored: Agreement, ours: Agreement, accepting: str = _ACCEPTING
) -> None:
    """Raise EnvironmentChanged, with every difference, unless the environments are equal.

    `accepting` says what to do where that is wanted.
    """
    if stored.environment == ours.environment:
        return
    before, now = json.loads(stored.environment), json.loads(ours.environment)
    changes = [
        f"{name}: feed {before.get(name)}, here {now.get(name)}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    raise EnvironmentChanged(
        f"feed {feed!r} was computed in another environment: {'; '.join(changes)}. Go back to that "
        f"one, or {accepting}"
    )


def _anew(feed: str) -> str:
    """Return the commands that begin a feed again."""
    return (
        f"online-svm fork {feed} --to NEW (a new feed over the kept input, for other settings), "
        f"or: online-svm reset {feed}"
    )


def _read(stored: Agreement) -> Groups | None:
    """Return what a stored configuration says; None if it is none."""
    try:
        groups = json.loads(stored.config)
    except ValueError:
        return None
    is_whole = isinstance(groups, dict) and all(isinstance(part, dict) for part in groups.values())
    return groups if is_whole else None


def _settings(config: Groups) -> dict[str, Any]:
    """Return all settings of a configuration by name."""
    return {name: value for part in config.values() for name, value in part.items()}


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return each setting that differs, as "name: feed X, here Y"."""
    return [
        f"{name}: feed {before.get(name)!r}, here {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def _options(before: Groups, now: Groups) -> str:
    """Return, in brackets, the options that give a worker the settings of the feed."""
    if not ("predictor" in before and "predictor" in now):
        return ""  # some settings of a combination are not options
    stored, ours = _settings(before), _settings(now)
    options = [
        option(name, stored[name])
        for name in sorted(stored.keys() & ours.keys())
        if stored[name] != ours[name]
    ]
    return f" ({' '.join(options)})" if options else ""


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
