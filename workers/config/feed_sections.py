"""Sections of the settings file for some feeds: [feed."sensors-*"], [feed.returns]."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from workers.errors import BadConfiguration

TABLE = "feed"
"""Table of the file that holds the sections, by names and patterns of feeds."""

OF_PROCESS = frozenset(
    (
        *("redis", "redis_password_file", "redis_sentinel_password_file"),
        *("redis_ca_file", "redis_cert_file", "redis_key_file"),
        *(
            "wait_redis",
            "wait_replicas",
            "max_feeds",
            "lease",
            "refit_processes",
            "refit_memory",
            "replay_budget",
        ),
        *("metrics", "log_format", "grace"),
    )
)
"""Settings that all feeds of a process share."""

Sections = Mapping[str, Mapping[str, Any]]


def sections(path: Path | None) -> Sections:
    """Return the sections of a settings file, by name or pattern, in the order of the file.

    Raises
    ------
    BadConfiguration
        If a section is no table, or gives a setting that all feeds share.
    """
    if path is None:
        return {}
    try:
        found = tomllib.loads(path.read_text("utf-8")).get(TABLE, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{path}: not TOML: {error}") from None
    if not isinstance(found, dict):
        raise BadConfiguration(f'{path}: [{TABLE}] holds sections, as [{TABLE}."sensors-*"]')
    for name, section in found.items():
        if not isinstance(section, dict):
            raise BadConfiguration(
                f"{path}: {TABLE}.{name} is no section: write the settings of feeds under "
                f'[{TABLE}."sensors-*"]'
            )
        shared = sorted(OF_PROCESS.intersection(section))
        if shared:
            raise BadConfiguration(
                f'{path}: setting {shared[0]} in [{TABLE}."{name}"] is of the whole process: give '
                "it at the top"
            )
    return found


def matching(found: Sections, feed: str) -> tuple[str, ...]:
    """Return the names of the sections that are about a feed; the later ones take precedence.

    Examples
    --------
    >>> matching({"a-1": {}, "a-*": {}, "b": {}}, "a-1")
    ('a-*', 'a-1')
    """
    patterns = tuple(name for name in found if name != feed and fnmatchcase(feed, name))
    return (*patterns, feed) if feed in found else patterns


def merged(found: Sections, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that these sections give together.

    Examples
    --------
    >>> merged({"a-*": {"C": 1, "window": 60}, "a-1": {"C": 2}}, ("a-*", "a-1"))
    {'C': 2, 'window': 60}
    """
    values: dict[str, Any] = {}
    for name in names:
        values |= found[name]
    return values
