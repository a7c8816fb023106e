"""The last page of `reproduce`: a line a paper, on one screen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from scripts.papers import PAPERS

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one paper.

    Attributes
    ----------
    rows : int
        Printed figures that stand beside a measured one.
    hold, hold_in_part, fail : int
        Statements that hold in every setting tried, in some, in none.
    files : int
        Written.
    seconds : float
    """

    rows: int
    hold: int
    hold_in_part: int
    fail: int
    files: int
    seconds: float

    @classmethod
    def of(cls, result: Mapping[str, Any], files: int, seconds: float) -> Self:
        """Return the line of a result; a statement that was tried nowhere is left out.

        Examples
        --------
        >>> claims = [{"holds": 2, "of": 2}, {"holds": 1, "of": 2}, {"holds": 0, "of": 0}]
        >>> Line.of({"rows": [{}], "claims": claims}, files=3, seconds=1.5)
        Line(rows=1, hold=1, hold_in_part=1, fail=0, files=3, seconds=1.5)
        """
        tried = [claim for claim in result["claims"] if claim["of"]]
        hold = sum(claim["holds"] == claim["of"] for claim in tried)
        fail = sum(claim["holds"] == 0 for claim in tried)
        in_part = len(tried) - hold - fail
        return cls(len(result["rows"]), hold, in_part, fail, files, seconds)


def summary(done: Mapping[str, Line], absent: Mapping[str, object]) -> "Table":
    """Return the table of what was done and what was left out; it fits 80 columns.

    Parameters
    ----------
    done, absent : mapping
        By key of `PAPERS`: what was run, and what lacked its data.
    """
    from rich.table import Table

    table = Table(title="Summary", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("paper", no_wrap=True)
    for heading in ("figures", "hold", "in part", "fail", "files", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, paper in PAPERS.items():
        authors = paper.title.split(":")[0]
        if name in done:
            line = done[name]
            counts = (line.rows, line.hold, line.hold_in_part, line.fail, line.files)
            table.add_row(name, authors, *map(str, counts), _clock(line.seconds))
        elif name in absent:
            table.add_row(name, authors, *["-"] * 5, "no data")
    table.caption = (
        "figures: beside the paper's own; hold, in part, fail: its statements, in all, some or "
        "none of the settings tried"
    )
    table.caption_justify = "left"
    return table


def _clock(seconds: float) -> str:
    """Return minutes and seconds.

    Examples
    --------
    >>> _clock(754.6)
    '12:35'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
