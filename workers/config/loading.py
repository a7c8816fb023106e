"""Load the settings of one feed or of many, from flags, environment, file and defaults."""

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError
from pydantic_settings import SettingsConfigDict

from workers.config.setting_sources import (
    EnvironmentSource,
    FileSource,
    feed_sections,
    matching_sections,
    merged_sections,
    parsed,
    refuse_unknown,
    refuse_unknown_variables,
    settings_file,
)
from workers.config.settings import WorkerSettings
from workers.config.text_values import explain
from workers.errors import BadConfiguration


def load(
    flags: Mapping[str, Any],
    config: Path | None = None,
    is_whole: bool = True,
    feed: str | None = None,
) -> WorkerSettings:
    """Return the settings from flags, environment, file and defaults.

    The file is `config`, or else the one that ``ONLINE_SVM_CONFIG`` names. `feed` selects the
    sections of the file for that feed. `is_whole` checks that the predictor's settings work
    together; pass False if the stored settings of a feed may complete them. BadConfiguration names
    the setting and the reason; for an unknown name also the nearest known one.
    """
    file = settings_file(config)
    sections = feed_sections(file)
    section = {} if feed is None else merged_sections(sections, matching_sections(sections, feed))
    return load_with(flags, file, is_whole, section)


def load_with(
    flags: Mapping[str, Any], file: Path | None, is_whole: bool, section: Mapping[str, Any]
) -> WorkerSettings:
    """Return the settings like `load`; `section` takes precedence over the rest of the file."""
    refuse_unknown_variables(WorkerSettings.model_fields)
    refuse_unknown(flags, WorkerSettings.model_fields, "setting")

    class Loaded(WorkerSettings):
        model_config = SettingsConfigDict(toml_file=file)
        feed_section: ClassVar[Mapping[str, Any]] = section

    try:
        loaded = Loaded(**parsed(flags, WorkerSettings.model_fields))
    except ValidationError as error:
        raise BadConfiguration(explain(error)) from None
    if is_whole:
        _ = loaded.predictor  # raises BadConfiguration
    return loaded


def origins(flags: Mapping[str, Any], config: Path | None = None) -> dict[str, str]:
    """Return the source of each setting in `load`: "option", "environment", "file" or "default"."""
    given = {
        "option": flags,
        "environment": EnvironmentSource(WorkerSettings)(),
        "file": FileSource(WorkerSettings, settings_file(config))(),
    }
    first = ChainMap(*(dict.fromkeys(values, origin) for origin, values in given.items()))
    return {name: first.get(name, "default") for name in WorkerSettings.model_fields}


class FeedSettings:
    """The settings of a process that serves many feeds: `general` ones, and those of each feed.

    BadConfiguration is raised as by `load`, for every section of the file.
    """

    def __init__(self, flags: Mapping[str, Any], config: Path | None = None) -> None:
        self._flags, self._file = flags, settings_file(config)
        self._sections = feed_sections(self._file)
        self._loaded: dict[tuple[str, ...], WorkerSettings] = {}
        self.general = load(flags, config, is_whole=False)
        self._loaded[()] = self.general
        for name in self._sections:
            self._of((name,))

    def of(self, feed: str) -> WorkerSettings:
        """Return the settings of a feed.

        The section with its name takes precedence over patterns, a later pattern over an earlier.
        """
        return self._of(matching_sections(self._sections, feed))

    def every(self) -> list[WorkerSettings]:
        """Return the general settings, those of each section, and those returned by `of`."""
        return list(self._loaded.values())

    def _of(self, names: tuple[str, ...]) -> WorkerSettings:
        if names not in self._loaded:
            given = merged_sections(self._sections, names)
            self._loaded[names] = load_with(self._flags, self._file, False, given)
        return self._loaded[names]
