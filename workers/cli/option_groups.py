"""Groups of options: a dataclass stands for one option a field, ``**settings`` for settings."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

Command = Callable[..., None]


def with_settings(command: Command) -> Command:
    """Give a command that takes ``**settings`` one option for each setting, and `--help-all`."""
    return with_some_settings()(command)


def with_some_settings(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that does so for some settings; see `workers.cli.options`."""

    def marked(command: Command) -> Command:
        # The options are made where the command is asked for: the settings take long to load.
        command.settings = names  # type: ignore[attr-defined]
        return command

    return marked


def with_groups(command: Command) -> Command:
    """Return a command that takes the fields of its groups of options one by one, as typer wants.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int = 0
    ...     y: int = 0
    >>> def show(name: str, at: Point) -> None:
    ...     print(name, at)
    >>> with_groups(show)(name="a", x=3, y=4)
    a Point(x=3, y=4)
    """
    declared = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    named = (p for p in declared if p.kind is not p.VAR_KEYWORD)
    return with_parameters(called, [one for p in named for one in _options_of(p, groups)])


def _options_of(
    parameter: inspect.Parameter, groups: dict[str, Any]
) -> Iterator[inspect.Parameter]:
    """Yield a parameter, or in place of a group one for each of its fields."""
    if parameter.name not in groups:
        yield parameter.replace(kind=parameter.KEYWORD_ONLY)
        return
    for field in fields(groups[parameter.name]):
        yield inspect.Parameter(
            field.name, parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )


def with_parameters(command: Command, parameters: list[inspect.Parameter]) -> Command:
    """Declare the parameters of a command that takes ``**given``; return it."""
    # typer reads a signature and its annotations; both are plain attributes of a function.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command
