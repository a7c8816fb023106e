"""The command `online-svm`."""

import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from workers.starting import importing

COMMANDS = (
    "demo",
    "worker",
    "push",
    "tail",
    "status",
    "combine",
    "export",
    "verify",
    "check",
    "reset",
    "fork",
    "dlq",
    "snapshot",
    "config",
    "reproduce",
    "bench",
)
"""In the order of the help page. Each is a module of `workers.commands` with `register(app)`."""

INTERRUPTED = 130

_LASTING = ("worker", "combine")
"""Commands that are not done when nobody reads what they print."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; the exit code is 0, or says what went wrong (see errors.py)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # A command that only reads must not wait for the imports of the others.
    wanted = given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS
    with importing():
        app = application(wanted)
    sys.exit(_run(app, given))


def application(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the command-line application with these commands."""
    app = typer.Typer(
        name="online-svm",
        help="Answer a live stream with calibrated SVM probabilities and intervals, before each "
        "label is learned.",
        no_args_is_help=True,
        add_completion=False,
        # Its tracebacks show local variables, and these hold the URL with the password.
        pretty_exceptions_enable=False,
    )
    # With a callback typer keeps the command's name even where only one command is loaded.
    app.callback()(_online_svm)
    for name in commands:
        import_module(f"workers.commands.{name}").register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from online_svm import __version__

        print(__version__)
        raise typer.Exit


def _online_svm(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def _run(app: typer.Typer, given: list[str]) -> int:
    code = 0
    try:
        code = _call(app, given)
        print(end="", flush=True)  # here, where it can be told why it fails
    except BrokenPipeError:
        if given[:1] and given[0] in _LASTING:
            code = code or 1
        elif not _reader_is_gone():
            raise
        # As in `tail | head`: leave nothing to flush into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _call(app: typer.Typer, given: list[str]) -> int:
    from online_svm.errors import OnlineSVMError
    from workers.errors import WorkerError, exit_code

    try:
        app(args=given, prog_name="online-svm")
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # of which typer makes a bare 1
            raise ended.__context__ from None
        return ended.code if isinstance(ended.code, int) else 0
    except (WorkerError, OnlineSVMError) as error:
        with suppress(BrokenPipeError):  # the exit code tells it as well
            print(f"online-svm: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        return exit_code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _reader_is_gone() -> bool:
    """Return whether standard output goes to a pipe that nobody reads any more."""
    watch = select.poll()
    watch.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in watch.poll(0))


if __name__ == "__main__":
    main()
