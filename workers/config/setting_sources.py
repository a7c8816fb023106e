"""Sources of settings: the environment and the file, and how their text is read."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource, TomlConfigSettingsSource

from workers.config.environment import PREFIX, PROCESS_ENVIRONMENT
from workers.config.feed_sections import TABLE
from workers.config.text_values import parse_text
from workers.errors import BadConfiguration

_TABLES = ("predictor", "limits", "worker")


class EnvironmentSource(EnvSettingsSource):
    """The variables ONLINE_SVM_*, with lists written `a,b,c` and None written `none`."""

    def __call__(self) -> dict[str, Any]:
        """Return the settings that variables give."""
        # The inherited method drops None, which is the value of a variable set to "none".
        found: dict[str, Any] = {}
        for name, field in self.settings_cls.model_fields.items():
            text, _, _ = self.get_field_value(field, name)
            if text is not None:
                found[name] = parse_text(name, field, text)
        return found


class FileSource(TomlConfigSettingsSource):
    """The TOML file: keys at the top, or in the tables [worker], [predictor] and [limits].

    Parameters
    ----------
    settings_cls, toml_file
        As for the library's source.
    section : mapping, optional
        What the sections about one feed give; it takes precedence.
    """

    def __init__(
        self, *arguments: Any, section: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._section = section or {}

    def __call__(self) -> dict[str, Any]:
        """Return the settings that the file gives."""
        values: dict[str, Any] = {}
        for key, value in super().__call__().items():
            if key == TABLE:
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
    """Return settings with the text of flags and files turned into lists, maps and None."""
    return {
        name: parse_text(name, fields[name], value) if isinstance(value, str) else value
        for name, value in values.items()
    }


def settings_file(config: Path | None) -> Path | None:
    """Return the settings file: the given one, or the one that the environment names."""
    named = os.environ.get("ONLINE_SVM_CONFIG")
    path = config or (Path(named) if named else None)
    if path is not None and not path.is_file():
        raise BadConfiguration(f"{path}: no such file; give --config the path of a TOML file")
    return path


def refuse_unknown_variables(settings: Iterable[str]) -> None:
    """Raise BadConfiguration for a variable ONLINE_SVM_* that is no setting."""
    known = {PREFIX + name.upper() for name in settings} | {*PROCESS_ENVIRONMENT}
    ours = [name for name in os.environ if name.startswith(PREFIX)]
    refuse_unknown(ours, known, "environment variable")


def refuse_unknown(given: Iterable[str], known: Iterable[str], kind: str) -> None:
    """Raise BadConfiguration for the first unknown name, and suggest the nearest known one."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else "see online-svm check"
            raise BadConfiguration(f"unknown {kind} {name[:80]!r}: {hint}")
