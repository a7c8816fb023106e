"""Generated pages: their tables and sections; write them, or check that they are current."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path


def write_or_check(
    target: Path,
    render: Callable[[], str],
    help: str | None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Write a page, or with --check return 1 if it is not up to date."""
    parser = argparse.ArgumentParser(description=help)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if it differs")
    is_check, wanted = parser.parse_args(arguments).check, render()
    if is_check:
        return int(not target.exists() or target.read_text("utf-8") != wanted)
    target.write_text(wanted, "utf-8")
    return 0


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for cells in (heading, ["---"] * len(heading), *rows):
        yield f"| {' | '.join(cells)} |"


def sections(texts: Mapping[str, Iterable[str]]) -> str:
    """Return sections of a page, each a title and its lines."""
    return "\n".join(f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in texts.items())


def decimals(value: float) -> str:
    """Return a figure with four decimals, and without the zero before the point."""
    return f"{value:.4f}".removeprefix("0")
