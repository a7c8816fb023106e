"""Columns with texts that are no numbers: all of a source are found at once, and named together."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from typing import Any

from workers.push.rows import BadSource, number

CELLS = 1_000_000
"""Largest number of cells that are looked at, in at most `ROWS` rows."""

ROWS = 1000

_TEXTS = 5  # different ones: a column of numbers with more holds more than missing values
_SHOWN = 6  # columns with their texts
_OPTIONS = 400  # characters of options
_LONGEST = 200  # characters of a name


class NotNumbers(BadSource):
    """Columns that cannot be features.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        What is no number, by column; at least one each.
    mixed : collection of str
        Those of the columns that have numbers as well.
    line : int
        Number of the line of the first text.

    Examples
    --------
    >>> print(NotNumbers({"name": ["Ann"], "age": ["n/a", "?"]}, {"age"}, 2))
    name is 'Ann', age is 'n/a', not numbers: encode them, or type --drop name --na n/a --na '?' \
(--drop leaves a column out, --na says that a text stands for a missing value)
    """

    def __init__(self, texts: Mapping[str, Sequence[str]], mixed: Iterable[str], line: int) -> None:
        self.line = line
        shown = [f"{name[:40]} is {found[0][:20]!r}" for name, found in texts.items()][:_SHOWN]
        more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
        what = "not a number: encode it" if len(texts) == 1 else "not numbers: encode them"
        super().__init__(
            f"{', '.join(shown)}{more}, {what}, or type {_options(texts, mixed)} (--drop leaves a "
            "column out, --na says that a text stands for a missing value)"
        )


def _options(texts: Mapping[str, Sequence[str]], mixed: Iterable[str]) -> str:
    """Return the options with which these columns are no features, or are numbers."""
    blank = {name for name in mixed if _may_be_missing(texts[name])}
    missing = dict.fromkeys(text for name in texts if name in blank for text in texts[name])
    options = [f"--drop {shlex.quote(name[:_LONGEST])}" for name in texts if name not in blank]
    options += [f"--na {shlex.quote(text)}" for text in missing]
    shown = sum(length <= _OPTIONS for length in accumulate(map(len, options)))
    more = [f"and {len(options) - shown:,} more"] if shown < len(options) else []
    return " ".join([*options[:shown], *more])


def not_numbers(
    first: Mapping[str, Any],
    later: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    missing: frozenset[str],
    line: int,
) -> NotNumbers:
    """Return the columns whose cells are no numbers.

    Parameters
    ----------
    first : mapping
        A row that has such a cell.
    later : iterable of mapping
        Rows after it.
    names : sequence of str
        Columns of features.
    missing : frozenset of str
        Texts that stand for a missing value.
    line : int
        Number of the line of the first row.
    """
    texts: dict[str, dict[str, None]] = {}
    mixed: set[str] = set()

    def look_at(row: Mapping[str, Any]) -> None:
        for name in names:
            try:
                if number(row.get(name), missing) is not None:
                    mixed.add(name)
            except ValueError:
                found = texts.setdefault(name, {})
                if len(found) <= _TEXTS:
                    found[row[name].strip()[:_LONGEST]] = None

    look_at(first)
    # What else is wrong with later rows is told when they are read.
    with suppress(Exception):
        for row in islice(later, min(ROWS, CELLS // len(names))):
            look_at(row)
    return NotNumbers({name: [*found] for name, found in texts.items()}, mixed & {*texts}, line)


def _may_be_missing(texts: Sequence[str]) -> bool:
    """Return whether the texts in a column of numbers may all stand for a missing value."""
    return len(texts) <= _TEXTS and all(len(text) < _LONGEST for text in texts)
