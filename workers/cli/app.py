"""The command `online-svm`."""

import errno
import functools
import inspect
import os
import re
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer
from typer import Option
from typer.main import get_command

from workers.cli.common import Command, with_parameters
from workers.python_process import importing

if TYPE_CHECKING:
    from typer.core import TyperCommand, TyperGroup

GROUPS = {
    "Try it": ("demo",),
    "Run a feed": ("worker", "push", "gateway", "fleet"),
    "Look at it": ("tail", "status", "dashboard", "report", "note"),
    "Ask why": ("explain", "verify", "backtest"),
    "Keep it": ("export", "backup", "restore"),
    "Take care of it": ("check", "fork", "reset", "erase", "redis"),
}
"""Commands by section of the help page, in its order.

Each is a module of this folder with a function, or a `typer.Typer`, of the same name.
"""

COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_WITH_RARE_OPTIONS = ("worker", "check")
"""Commands whose rare options are shown only by `--help-all`."""

INTERRUPTED = 130

_MARKUP = re.compile(r"\[[a-z#/@][^\[]*?\]")

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_STDOUT = 1  # file descriptor

_COMPLETE = "_ONLINE_SVM_COMPLETE"
"""Environment variable that the completion script of a shell sets."""

_MUST_FINISH = frozenset(
    ("worker", "push", "verify", "backup", "restore", "fork", "reset", "erase")
)
"""Commands that must not exit with 0 after a broken pipe, because they may be unfinished.

`export --to`, which writes files, is another.
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; exit with 0, or with the code of its error (see errors.py)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Import only the named command, so that it starts faster.
    named = (_words_to_complete() or given)[:1]
    with importing():
        is_known = bool(named) and named[0] in COMMANDS
        command = application(named) if is_known else application(COMMANDS, is_overview=True)
    sys.exit(_run(command, given))


def application(commands: Sequence[str] = COMMANDS, is_overview: bool = False) -> "TyperGroup":
    """Return the command line with these commands; an overview lacks their settings."""
    app = typer.Typer(
        name="online-svm",
        help="Answer a live stream with calibrated SVM probabilities and intervals, before each "
        "label is learned.",
        no_args_is_help=True,
        # Pretty tracebacks show local variables, which include the URL with the password.
        pretty_exceptions_enable=False,
    )
    # The callback makes typer keep the command's name even if only one command is loaded.
    app.callback()(_online_svm)
    for name in commands:
        _add(app, name, is_overview)
    command = cast("TyperGroup", get_command(app))  # because of the callback
    for group, names in GROUPS.items():
        for name in command.commands.keys() & set(names):
            command.commands[name].rich_help_panel = group  # type: ignore[attr-defined]
    _fix_help(command)
    return command


def _add(app: typer.Typer, name: str, is_overview: bool) -> None:
    found = getattr(import_module(f"workers.cli.{name}"), name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
        return
    kind = None
    if getattr(found, "takes_settings", False) and not is_overview:
        from workers.cli.options import SettingsCommand, settings_added

        found = settings_added(found)
        kind = SettingsCommand if name in _WITH_RARE_OPTIONS else None
    app.command(name, cls=kind)(_with_groups(found))


def _with_groups(command: Command) -> Command:
    """Return a command that takes the fields of its dataclass parameters one by one, for typer."""
    declared = inspect.signature(command).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in declared if is_dataclass(p.annotation)}

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    options: list[inspect.Parameter] = []
    for parameter in declared:
        key = parameter.KEYWORD_ONLY
        if parameter.name in groups:
            options += [
                inspect.Parameter(field.name, key, default=field.default, annotation=field.type)
                for field in fields(groups[parameter.name])
            ]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            options.append(parameter.replace(kind=key))
    return with_parameters(called, options)


def _fix_help(command: "TyperGroup | TyperCommand") -> None:
    """Remove ``<bool>`` after flags, which take no value; escape ``[name]``, which is no markup."""
    command.help = _without_markup(command.help)
    for option in command.get_params(typer.Context(command)):
        if getattr(option, "is_flag", False):
            option.metavar = ""
        if hasattr(option, "help"):
            option.help = _without_markup(option.help)
    for subcommand in getattr(command, "commands", {}).values():
        _fix_help(subcommand)


def _without_markup(text: str | None) -> str | None:
    """Escape the markup of rich like its own `escape`, which takes long to import."""
    return None if text is None else _MARKUP.sub(r"\\\g<0>", text)


def _words_to_complete() -> list[str]:
    """Return the words after the program's name if a shell requests completions."""
    if _COMPLETE not in os.environ:
        return []
    # bash sets COMP_WORDS, the other shells the other variable.
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return line.split()[1:]


def _print_version(wanted: bool) -> None:
    if wanted:
        from online_svm.version import __version__

        print(__version__)
        raise typer.Exit


def _online_svm(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Handle the options before a command."""


def _run(command: "TyperGroup", given: list[str]) -> int:
    code = 0
    with _private_files(), _duplicate_of_stdout() as output:
        try:
            code = _call(command, given)
            print(end="", flush=True)  # flush here, where an error can be handled
        except BrokenPipeError:
            if _must_finish(given):
                code = code or 1
            elif output is None or not _reader_is_gone(output):
                raise
            # The reader ended first, as in `tail | head`. Discard the rest of the output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


@contextmanager
def _private_files() -> Iterator[None]:
    """Let only this user read the files that are made within the block."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _must_finish(given: list[str]) -> bool:
    if not given or "--help" in given:
        return False
    return given[0] in _MUST_FINISH


def _call(command: "TyperGroup", given: list[str]) -> int:
    from online_svm.errors import OnlineSVMError
    from workers.errors import BadConfiguration, WorkerError, exit_code
    from workers.text import printable

    try:
        command.main(args=given, prog_name="online-svm")
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # typer turns it into exit code 1
            raise ended.__context__ from None
        return ended.code if isinstance(ended.code, int) else 0
    except (WorkerError, OnlineSVMError) as error:
        with suppress(BrokenPipeError):  # the exit code reports the error too
            _print_error(printable(" ".join(str(error).split())))
        return exit_code(error)
    except OSError as error:
        is_full = error.errno in _NO_SPACE
        if error.filename is None and not is_full:
            raise
        way_on = "; make room" if is_full else ""
        _print_error(printable(f"{error.filename or 'a file'}: {error.strerror}{way_on}"))
        return BadConfiguration.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _print_error(error: str) -> None:
    """Print the error that ends the command, in the format of the log."""
    if "structlog" in sys.modules:  # else nothing was logged, and its import would take a while
        from workers.log import log_if_json

        if log_if_json(error):
            return
    print(f"online-svm: {error}", file=sys.stderr, flush=True)


@contextmanager
def _duplicate_of_stdout() -> Iterator[int | None]:
    """Yield a duplicate of the descriptor of standard output; None if that is closed.

    The duplicate still refers to a broken pipe after rich redirected standard output to the null
    device.
    """
    try:
        output = os.dup(_STDOUT)
    except OSError:
        yield None
        return
    try:
        yield output
    finally:
        os.close(output)


def _reader_is_gone(output: int) -> bool:
    """Return whether a descriptor is a pipe without a reader."""
    watch = select.poll()
    watch.register(output, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in watch.poll(0))
