"""Options of `worker`, made from the settings themselves: a setting is declared once."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from online_svm.config import PredictorConfig
from workers.settings import Limits, WorkerSettings

_OWN_OPTIONS = frozenset(("redis",))
"""Settings that the command declares by hand, as every other command does."""


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes ``**settings`` one option for each setting.

    The options are text, or None where not given; `workers.settings.load` makes values of them.
    """
    declared = inspect.signature(command)
    fixed = [p for p in declared.parameters.values() if p.kind is not p.VAR_KEYWORD]
    made = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, field)
        )
        for name, field in WorkerSettings.model_fields.items()
        if name not in _OWN_OPTIONS
    ]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in fixed] + made
    # typer reads a signature and its annotations; both are plain attributes of a function.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _option(name: str, field: FieldInfo) -> Any:
    flag = "--" + name.replace("_", "-")
    kind: Any = str
    if field.annotation is bool:
        flag, kind = f"{flag}/--no-{name.replace('_', '-')}", bool
    option = typer.Option(
        flag,
        help=_help(field),
        metavar=None if kind is bool else "VALUE",
        rich_help_panel=_panel(name),
        show_default=False,
    )
    return Annotated[kind | None, option]


def _panel(name: str) -> str:
    if name in PredictorConfig.model_fields:
        return "Predictor"
    return "Limits of an entry" if name in Limits.model_fields else "Service"


def _help(field: FieldInfo) -> str:
    """Return the description with the default."""
    default = field.get_default()
    if default in (None, PydanticUndefined):
        return field.description or ""
    text = ",".join(default) if isinstance(default, tuple) else str(default)
    # Rich would read a bare [default: ...] as a style.
    return f"{field.description} (default {text})"
