"""The options of `worker`, generated from the models of the settings."""

import functools
import inspect
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer import Option
from typer.core import TyperCommand
from typing_extensions import override

from online_svm.config import PredictorConfig
from workers.cli.common import Command, with_parameters
from workers.config.settings import Limits, WorkerSettings
from workers.config.text_values import has_rows

COMMON = (
    "classes", "missing", "horizon", "slices", "window", "refit_every", "on_drift", "dedupe_window",
    "keep_input", "retain_bytes", "metrics", "alarm_url",
)  # fmt: skip
"""Settings that `--help` shows; `--help-all` shows all."""

_RARE = frozenset((*WorkerSettings.model_fields, "name", "shard"))
_RARE -= {*COMMON, "redis"}
_ALL = "online-svm.help-all"


class SettingsCommand(TyperCommand):
    """A command whose `--help` shows only common options, and `--help-all` every option."""

    @override
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; rare options are hidden only here, so that shells complete them."""
        rare: list[Any] = [] if ctx.meta.get(_ALL) else [p for p in self.params if p.name in _RARE]
        for option in rare:
            option.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for option in rare:
                option.hidden = False


def _show_all(ctx: typer.Context, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HelpAll = Annotated[
    bool,
    Option(
        "--help-all",
        callback=_show_all,
        is_eager=True,
        expose_value=False,
        help="Show every option and setting, and exit.",
    ),
]


def settings_added(command: Command) -> Command:
    """Return a command with `--help-all`, and an option a setting in place of ``**settings``.

    The values are texts or None; `workers.config.settings.load` converts them.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(name, kind, default=None, annotation=_option(name, field))
        for name, field in WorkerSettings.model_fields.items()
        if name != "redis"  # commands declare it
    ]
    options.append(inspect.Parameter("help_all", kind, default=False, annotation=HelpAll))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        given.pop("help_all", None)  # its callback has run
        command(**given)

    declared = inspect.signature(command).parameters.values()
    fixed = [p.replace(kind=p.KEYWORD_ONLY) for p in declared if p.kind is not p.VAR_KEYWORD]
    return with_parameters(called, fixed + options)


def _option(name: str, field: FieldInfo) -> Any:
    flag = "--" + name.replace("_", "-")
    kind: Any = str
    if field.annotation is bool:
        flag, kind = f"{flag}/--no-{name.replace('_', '-')}", bool
    option = Option(
        flag, help=_help(field), metavar=None if kind is bool else metavar(field),
        autocompletion=_completion(field), rich_help_panel=_panel(name),
    )  # fmt: skip
    return Annotated[kind | None, option]


def metavar(field: FieldInfo) -> str:
    """Return the placeholder of a setting's value in the help, or its choices.

    Examples
    --------
    >>> fields = WorkerSettings.model_fields
    >>> [metavar(fields[name]) for name in ("kernel", "gamma", "window", "classes", "costs")]
    ['<rbf|linear>', '<VALUE|scale>', '<VALUE|none>', 'A,B,...', 'A:B=1,B:A=2']
    """
    forms = dict.fromkeys(form for kind in _members(field.annotation) for form in _forms(kind))
    if field.get_default() is None:
        forms.pop("none", None)  # None is the default, without the option
    shown = "|".join(forms)
    return f"<{shown}>" if len(forms) > 1 else shown


def _completion(field: FieldInfo) -> Callable[[str], list[str]]:
    kinds = _members(field.annotation)
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def _forms(kind: Any) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if kind is NoneType:
        return ("none",)
    if has_rows(kind):
        return ("A:B=1,B:A=2",)
    return ({tuple: "A,B,...", dict: "A=1,B=2"}.get(get_origin(kind), "VALUE"),)


def _members(annotation: Any) -> list[Any]:
    """Return the types in a union, or the single type, without their constraints."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return [member for part in parts for member in _members(part)]
    return _members(parts[0]) if origin is Annotated else [annotation]


def _names(field: FieldInfo) -> str:
    """Return a sentence with the names that a list may contain; "" if it may contain any."""
    lists = [get_args(kind)[0] for kind in _members(field.annotation) if get_origin(kind) is tuple]
    names = [name for item in lists if get_origin(item) is Literal for name in get_args(item)]
    return f" Of {', '.join(names)}; separated by commas." if names else ""


def _panel(name: str) -> str:
    if name in PredictorConfig.model_fields:
        return "Predictor"
    return "Limits of an entry" if name in Limits.model_fields else "Service"


def _help(field: FieldInfo) -> str:
    description = (field.description or "") + _names(field)
    default = field.get_default()
    if default in (None, PydanticUndefined):
        return description
    text = ",".join(default) if isinstance(default, tuple) else str(default)
    # Rich would read a bare [default: ...] as a style.
    return f"{description} (default {text})"
