"""Run the command `online-svm` with `python -m online_svm`.

The library does not import the service. It finds the command through its entry point, as the
installed script `bin/online-svm` does.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution

NAME = "online-svm"  # name of the distribution and of its command


def main() -> None:
    """Run the command.

    Raises SystemExit with the exit code of the command, or with 2 and a line on standard error if
    the distribution is not installed.
    """
    try:
        entry_points = distribution(NAME).entry_points
    except PackageNotFoundError:
        print(f"{NAME}: not installed: run python -m pip install -e .", file=sys.stderr)
        sys.exit(2)
    entry_points.select(group="console_scripts")[NAME].load()()


if __name__ == "__main__":
    main()
