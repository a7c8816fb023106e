"""The command line: one file for each command."""

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]

_OWN = {"online_svm", "workers"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; exit with 0, or with the code of its error (see errors.py).

    Where the library is installed alone, name the extra that brings what the command needs.
    """
    try:
        from workers.cli.app import main as run

        run(arguments)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package in _OWN or package in sys.stdlib_module_names:
            raise
        _end_without(package, list(sys.argv[1:] if arguments is None else arguments))


def _end_without(package: str, given: Sequence[str]) -> NoReturn:
    """Print the version, if that is asked, or one line that says what to install."""
    if list(given) == ["--version"]:
        from online_svm import __version__

        print(__version__)
        sys.exit(0)
    who = (
        f"the command {given[0]}" if given and not given[0].startswith("-") else "the command line"
    )
    print(f"online-svm: {who} needs {package}: pip install 'online-svm[service]'", file=sys.stderr)
    sys.exit(2)
