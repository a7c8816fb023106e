"""`python -m online_svm` is the command `online-svm`.

The library does not import the service. It finds the command by its entry point, as an installer
does that writes `bin/online-svm`.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution

NAME = "online-svm"
"""Of the distribution and of its command."""


def main() -> None:
    """Run the command.

    Raises
    ------
    SystemExit
        With the exit code of the command; with 2 and a line on standard error where the
        distribution is not installed.
    """
    try:
        entry_points = distribution(NAME).entry_points
    except PackageNotFoundError:
        print(f"{NAME}: not installed: run python -m pip install -e .", file=sys.stderr)
        sys.exit(2)
    entry_points.select(group="console_scripts")[NAME].load()()


if __name__ == "__main__":
    main()
