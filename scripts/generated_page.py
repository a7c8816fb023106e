"""Generated pages: write them, or check that they are current."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def write_or_check(
    target: Path, render: Callable[[], str], help: str | None, arguments: Sequence[str] | None
) -> int:
    """Write a page, or with --check return 1 if it is not up to date."""
    parser = argparse.ArgumentParser(description=help)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if it differs")
    is_check, wanted = parser.parse_args(arguments).check, render()
    if is_check:
        return int(not target.exists() or target.read_text("utf-8") != wanted)
    target.write_text(wanted, "utf-8")
    return 0
