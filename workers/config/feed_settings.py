"""The settings of many feeds: general ones, and those of the sections of a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.config import feed_sections
from workers.config.setting_sources import settings_file
from workers.config.settings import WorkerSettings, load, load_with


class FeedSettings:
    """The settings of a process of many feeds, and those of each feed.

    Parameters
    ----------
    flags, config
        As for `load`.

    Attributes
    ----------
    general : WorkerSettings
        Of the process, and of feeds that no section is about.

    Raises
    ------
    BadConfiguration
        As `load`, of any section.

    Examples
    --------
    >>> FeedSettings({"window": 60}).of("sensors-1").window
    60
    """

    def __init__(self, flags: Mapping[str, Any], config: Path | None = None) -> None:
        self._flags, self._file = flags, settings_file(config)
        self._sections = feed_sections.sections(self._file)
        self._loaded: dict[tuple[str, ...], WorkerSettings] = {}
        self.general = load(flags, config, is_whole=False)
        self._loaded[()] = self.general
        for name in self._sections:
            self._of((name,))

    def of(self, feed: str) -> WorkerSettings:
        """Return the settings of a feed; sections later in the file take precedence.

        A section with the name of the feed takes precedence over patterns.
        """
        return self._of(feed_sections.matching(self._sections, feed))

    def every(self) -> list[WorkerSettings]:
        """Return the general settings, and those of each section."""
        return list(self._loaded.values())

    def _of(self, names: tuple[str, ...]) -> WorkerSettings:
        if names not in self._loaded:
            given = feed_sections.merged(self._sections, names)
            self._loaded[names] = load_with(self._flags, self._file, False, given)
        return self._loaded[names]
