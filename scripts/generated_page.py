"""Generated pages and their pictures: write them, or check that they are current."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: a tenth of the bytes
    "svg.hashsalt": "online-svm",  # the same identifiers at each run
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
OURS_COLOUR, OTHER_COLOUR = "#c2410c", "#94a3b8"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG of stored figures; it names their digest, since versions of matplotlib differ."""

    target: Path
    stored: Path
    draw: Callable[[], Any]  # returns a matplotlib figure

    def write(self) -> None:
        """Draw it."""
        with matplotlib.rc_context(STYLE):
            named = {"Date": None, "Description": self._digest}
            self.draw().savefig(self.target, metadata=named, bbox_inches="tight")

    @property
    def is_current(self) -> bool:
        """Whether the picture has the stored figures."""
        return self.target.exists() and self._digest in self.target.read_text("utf-8")

    @property
    def _digest(self) -> str:
        return sha256(self.stored.read_bytes()).hexdigest()


def write_or_check(
    target: Path,
    render: Callable[[], str],
    help: str | None,
    arguments: Sequence[str] | None = None,
    picture: Picture | None = None,
    tables: Callable[[], str] | None = None,
) -> int:
    """Write a page, or with --check return 1 if it is not up to date; --all prints its tables."""
    parser = argparse.ArgumentParser(description=help)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if it differs")
    if tables is not None:
        parser.add_argument("--all", action="store_true", help="only print every stored figure")
    given = parser.parse_args(arguments)
    if tables is not None and given.all:
        print(tables())
        return 0
    wanted = render()
    if given.check:
        is_current = target.exists() and target.read_text("utf-8") == wanted
        return int(not is_current or (picture is not None and not picture.is_current))
    target.write_text(wanted, "utf-8")
    if picture is not None:
        picture.write()
    return 0


def lines_of(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for cells in (heading, ["---"] * len(heading), *rows):
        yield f"| {' | '.join(cells)} |"


def decimals(value: float) -> str:
    """Return a figure with four decimals, and without the zero before the point."""
    return f"{value:.4f}".removeprefix("0")
