"""Sources of settings: the environment, and the TOML file with its sections for feeds.

The table [feed] of the file holds the sections, by name or pattern of feeds: [feed."sensors-*"].
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource
from typing_extensions import override

from workers.config.environment import PREFIX, PROCESS_ENVIRONMENT
from workers.config.files import read_toml
from workers.config.text_values import parse_text
from workers.errors import BadConfiguration

_TABLES = ("predictor", "limits", "worker")

FEED_TABLE = "feed"

PROCESS_SETTINGS = frozenset((
    "redis", "redis_password_file", "redis_sentinel_password_file", "redis_ca_file",
    "wait_redis", "wait_replicas", "max_feeds", "lease",
    "refit_processes", "refit_memory", "replay_budget", "metrics", "log_format", "grace",
))  # fmt: skip
"""Settings that all feeds of a process share."""

Sections = Mapping[str, Mapping[str, Any]]


class EnvironmentSource(EnvSettingsSource):
    """The variables ONLINE_SVM_*, with lists written `a,b,c` and None written `none`."""

    def __call__(self) -> dict[str, Any]:
        """Return the settings in the environment."""
        # Not the inherited method: it drops None, the value of a variable set to "none".
        found: dict[str, Any] = {}
        for name, field in self.settings_cls.model_fields.items():
            text, _, _ = self.get_field_value(field, name)
            if text is not None:
                found[name] = parse_text(name, field, text)
        return found


class FileSource(TomlConfigSettingsSource):
    """The TOML file: keys at the top, or in the tables [worker], [predictor] and [limits].

    The settings in `section`, which are for one feed, take precedence.
    """

    def __init__(
        self, *arguments: Any, section: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._section = section or {}

    @override
    def _read_file(self, file_path: Any) -> dict[str, Any]:
        return read_toml(Path(file_path))

    def __call__(self) -> dict[str, Any]:
        """Return the settings in the file."""
        values: dict[str, Any] = {}
        for key, value in super().__call__().items():
            if key == FEED_TABLE:
                continue
            found = value if key in _TABLES and isinstance(value, dict) else {key: value}
            refuse_unknown(found, self.settings_cls.model_fields, "setting")
            for name in found:
                if name in values:
                    raise BadConfiguration(
                        f"setting {name}: the file gives it twice, in two tables or in one and at "
                        "the top; keep one"
                    )
            values |= found
        refuse_unknown(self._section, self.settings_cls.model_fields, "setting")
        values |= self._section
        return parsed(values, self.settings_cls.model_fields)


def parsed(values: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Return settings with their texts parsed into lists, maps and None."""
    return {
        name: parse_text(name, fields[name], value) if isinstance(value, str) else value
        for name, value in values.items()
    }


def settings_file(config: Path | None) -> Path | None:
    """Return the settings file: the given one, or the one that the environment names."""
    named = os.environ.get("ONLINE_SVM_CONFIG")
    path = config or (Path(named) if named else None)
    if path is not None and not path.is_file():
        what = "it is no regular file" if path.exists() else "no such file"
        raise BadConfiguration(f"{path}: {what}; give --config the path of a TOML file")
    return path


def refuse_unknown_variables(settings: Iterable[str]) -> None:
    """Raise BadConfiguration for an unknown variable ONLINE_SVM_*."""
    known = {PREFIX + name.upper() for name in settings} | {*PROCESS_ENVIRONMENT}
    given = [name for name in os.environ if name.startswith(PREFIX)]
    refuse_unknown(given, known, "environment variable")


def refuse_unknown(given: Iterable[str], known: Iterable[str], kind: str) -> None:
    """Raise BadConfiguration for the first unknown name, and suggest the nearest known one."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else "see online-svm check"
            raise BadConfiguration(f"unknown {kind} {name[:80]!r}: {hint}")


def feed_sections(path: Path | None) -> Sections:
    """Return the sections of a settings file, by name or pattern, in the order of the file.

    Raises BadConfiguration if a section is no table, or has a setting of the whole process.
    """
    if path is None:
        return {}
    found = read_toml(path).get(FEED_TABLE, {})
    if not isinstance(found, dict):
        raise BadConfiguration(f'{path}: [{FEED_TABLE}] holds sections, as [feed."sensors-*"]')
    for name, section in found.items():
        if not isinstance(section, dict):
            raise BadConfiguration(
                f"{path}: feed.{name} is no section: write the settings of feeds under "
                f'[feed."sensors-*"]'
            )
        shared = sorted(PROCESS_SETTINGS.intersection(section))
        if shared:
            raise BadConfiguration(
                f'{path}: setting {shared[0]} in [feed."{name}"] is of the whole process: give '
                "it at the top"
            )
    return found


def matching_sections(sections: Sections, feed: str) -> tuple[str, ...]:
    """Return the names of the sections for a feed, in order of precedence; the last one wins."""
    patterns = tuple(name for name in sections if name != feed and fnmatchcase(feed, name))
    return (*patterns, feed) if feed in sections else patterns


def merged_sections(sections: Sections, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of several sections; the last one wins."""
    return {key: value for name in names for key, value in sections[name].items()}
