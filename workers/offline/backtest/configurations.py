"""The configurations to compare: sections of a TOML file, and texts ``NAME:key=value,...``.

The first configuration is the base, from which the others inherit.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.config.files import read_toml
from workers.config.setting_sources import parsed, refuse_unknown
from workers.config.settings import Limits, WorkerSettings
from workers.config.text_values import explain
from workers.errors import BadConfiguration
from workers.offline.backtest.prequential import Configuration

BASE_NAME = "base"  # name of the first configuration without a file

Sections = dict[str, dict[str, Any]]

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,23}", re.ASCII)
_SEPARATOR = re.compile(r",(?=\s*\w+\s*=)")
_FIELDS = (*PredictorConfig.model_fields, *Limits.model_fields)


def sections_of(path: Path | None, texts: Sequence[str] = (), *, has_base: bool = True) -> Sections:
    """Return the settings of each configuration by name, the base first.

    The file has a table for each; without a file the base is `BASE_NAME`, with no settings, or
    without `has_base` the first text. A text ``NAME:key=value,...`` adds a configuration, or
    settings to one. Raises BadConfiguration if the file cannot be read, or a text or a name is
    invalid.
    """
    if path is not None:
        sections = read_sections(path)
    else:
        sections = {BASE_NAME: {}} if has_base or not texts else {}
    for text in texts:
        name, changes = _split(text)
        sections[name] = sections.get(name, {}) | changes
    for name in sections:
        if not _NAME.fullmatch(name):
            raise BadConfiguration(
                f"configuration {name[:80]!r}: a name has 1 to 24 letters, digits and _ . + -, and "
                "begins with a letter or digit"
            )
    return sections


def configurations(given: WorkerSettings, sections: Sections) -> list[Configuration]:
    """Return the configurations, checked as a worker checks its settings.

    `given` supplies the settings that no section has. Raises BadConfiguration, which names the
    configuration, the setting and the reason.
    """
    base = next(iter(sections.values()))
    return [_configured(name, given, base | own) for name, own in sections.items()]


def _configured(name: str, given: WorkerSettings, changes: Mapping[str, Any]) -> Configuration:
    try:
        refuse_unknown(changes, _FIELDS, "setting")
        values = {field: getattr(given, field) for field in _FIELDS} | parsed(
            changes, WorkerSettings.model_fields
        )
        predictor = PredictorConfig.model_validate(_part(values, PredictorConfig.model_fields))
        limits = Limits.model_validate(_part(values, Limits.model_fields))
    except ValidationError as error:
        raise BadConfiguration(f"configuration {name}: {explain(error)}") from None
    except BadConfiguration as error:
        raise BadConfiguration(f"configuration {name}: {error}") from None
    whole = predictor.model_dump(mode="json") | limits.model_dump(mode="json")
    return Configuration(name, predictor, limits, {field: whole[field] for field in changes})


def _part(values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names}


def read_sections(path: Path) -> Sections:
    """Return the sections of a TOML file by name.

    Raises BadConfiguration if it cannot be read, is not TOML, or has a key outside of sections.
    """
    found = read_toml(path)
    if not found:
        raise BadConfiguration(f"{path}: no configuration; write [name] and its settings below")
    for name, section in found.items():
        if not isinstance(section, dict):
            raise BadConfiguration(
                f"{path}: {name[:80]!r} stands outside a configuration; write [name] above it"
            )
    return found


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of ``NAME:key=value,...``.

    A comma ends a value only if ``key=`` follows, so that lists need no quotes.

    Examples
    --------
    >>> _split('b:classes=no,yes,C=2,class_weight={"no":1,"yes":3}')
    ('b', {'classes': 'no,yes', 'C': '2', 'class_weight': '{"no":1,"yes":3}'})
    """
    name, colon, rest = text.partition(":")
    changes: dict[str, str] = {}
    for part in _SEPARATOR.split(rest):
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (colon and key and equals):
            raise BadConfiguration(f"--set {text[:200]}: write NAME:setting=value,setting=value")
        if key in changes:
            raise BadConfiguration(f"--set {text[:200]}: {key[:80]} is given twice; keep one")
        changes[key] = value
    return name.strip(), changes
