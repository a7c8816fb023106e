"""Command line of `scripts/bench` and `scripts/papers`: their errors and their progress."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Annotated, NoReturn

import typer
from typer import Option
from typer.main import get_command

from online_svm.errors import OnlineSVMError
from workers.cli.common import note
from workers.errors import BadConfiguration, WorkerError, exit_code

DataDir = Annotated[
    Path | None,
    Option("--data-dir", metavar="DIR", help="Where the data files are; default $ONLINE_SVM_DATA."),
]

STAGE_SECONDS = 2.0  # A stage is printed if it lasts longer

INTERRUPTED_CODE = 130


def main(app: typer.Typer, name: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command, by default with the arguments of this process; exit with 0 or its code."""
    try:
        get_command(app).main(
            args=None if arguments is None else list(arguments), prog_name=f"python scripts/{name}"
        )
    except (WorkerError, OnlineSVMError) as error:
        note(f"{name}: {' '.join(str(error).split())}")
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_CODE)
    sys.exit(0)


def chosen(
    option: str, given: str | None, separator: str, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the names that an option gives, or all that are known."""
    names = known if given is None else tuple(name.strip() for name in given.split(separator))
    for name in names:
        if name not in known:
            raise BadConfiguration(f"{option} {name}: unknown; one of {separator.join(known)}")
    return names


_teller: Callable[[str], None] | None = None


def tell(stage: str) -> None:
    """Print the next stage if it lasts two seconds; print nothing outside of `stage_progress`."""
    if _teller is not None:
        _teller(stage)


@contextmanager
def stage_progress() -> Iterator[None]:
    """Let `tell` write to standard error in the block."""
    global _teller
    timer: Timer | None = None

    def tell_later(stage: str) -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
        timer = Timer(STAGE_SECONDS, note, (stage,))
        timer.daemon = True
        timer.start()

    _teller = tell_later
    try:
        yield
    finally:
        _teller = None
        if timer is not None:
            timer.cancel()
