"""The command line: a file for each command, and files with shared options and texts.

A command parses options, calls a function of another folder, and prints its result. This folder may
import every other one. Slow imports are inside the functions that need them.
"""

import sys
from collections.abc import Sequence
from typing import NoReturn

from workers.python_process import shut_out_current_directory

__all__ = ["main"]

_OWN = {"online_svm", "workers"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; exit with 0, or with the code of its error (see errors.py).

    If the service's packages are missing, print the extra that installs them.
    """
    shut_out_current_directory()
    try:
        from workers.cli.app import main as run

        run(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in _OWN or package in sys.stdlib_module_names:
            raise
        _end_without(package, list(sys.argv[1:] if arguments is None else arguments))


def _end_without(package: str, given: Sequence[str]) -> NoReturn:
    """Print the version if it was requested, else a line that names the extra to install."""
    if list(given) == ["--version"]:
        from online_svm.version import __version__

        print(__version__)
        sys.exit(0)
    is_command = given and not given[0].startswith("-")
    part = f"the command {given[0]}" if is_command else "the command line"
    print(f"online-svm: {part} needs {package}: pip install 'online-svm[service]'", file=sys.stderr)
    sys.exit(2)
