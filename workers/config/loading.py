"""Load settings from flags, environment, file and defaults; for one feed, or for many."""

import tomllib
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

    The file is `config`, by default the one that ``ONLINE_SVM_CONFIG`` names. `feed` adds the
    sections about that feed. `is_whole` checks that the settings work together; without it, the
    stored settings of a feed may complete them later. Raises BadConfiguration: the message names
    the setting and what is wrong; for an unknown name, also the nearest known one.
    """
    chosen = settings_file(config)
    found = feed_sections(chosen)
    given = {} if feed is None else merged_sections(found, matching_sections(found, feed))
    return load_with(flags, chosen, is_whole, given)


def load_with(
    flags: Mapping[str, Any], chosen: Path | None, is_whole: bool, section: Mapping[str, Any]
) -> WorkerSettings:
    """Return the settings like `load`; `section` takes precedence over the rest of the file."""
    refuse_unknown_variables(WorkerSettings.model_fields)
    refuse_unknown(flags, WorkerSettings.model_fields, "setting")

    class Loaded(WorkerSettings):
        model_config = SettingsConfigDict(toml_file=chosen)
        feed_section: ClassVar[Mapping[str, Any]] = section

    try:
        loaded = Loaded(**parsed(flags, WorkerSettings.model_fields))
    except ValidationError as error:
        raise BadConfiguration(explain(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{chosen}: not TOML: {error}") from None
    if is_whole:
        _ = loaded.predictor
    return loaded


def origins(flags: Mapping[str, Any], config: Path | None = None) -> dict[str, str]:
    """Return the origin of each setting that `load` took: option, environment, file or default."""
    given = {
        "option": flags,
        "environment": EnvironmentSource(WorkerSettings)(),
        "file": FileSource(WorkerSettings, settings_file(config))(),
    }
    first = ChainMap(*(dict.fromkeys(values, origin) for origin, values in given.items()))
    return {name: first.get(name, "default") for name in WorkerSettings.model_fields}


class FeedSettings:
    """The `general` settings of a process that serves many feeds, and the settings of each feed.

    Raises BadConfiguration like `load`, also for a section of the file.
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
        """Return the settings of a feed; sections later in the file take precedence.

        A section with the name of the feed takes precedence over patterns.
        """
        return self._of(matching_sections(self._sections, feed))

    def every(self) -> list[WorkerSettings]:
        """Return the general settings, and those of each section."""
        return list(self._loaded.values())

    def _of(self, names: tuple[str, ...]) -> WorkerSettings:
        if names not in self._loaded:
            given = merged_sections(self._sections, names)
            self._loaded[names] = load_with(self._flags, self._file, False, given)
        return self._loaded[names]
