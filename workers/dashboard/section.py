"""A section of sentences and a table, and its forms: HTML for page, report and card, and Markdown.

All text in a section is plain; the forms escape it, because it may come from any program.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workers.dashboard.text import Markup, safe
from workers.text import printable

_MAX_CHARS = 800  # characters of a cell or an item


Cell = str | Markup


class Section(NamedTuple):
    """Sentences, and a table below them.

    A heading that begins with "<" marks a column of text, which is aligned left and shortened if
    too wide; with "<<" it is wrapped. The last cell of a short row spans the remaining columns.
    """

    items: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()

    def html(self) -> str:
        """Return the section as HTML."""
        items = "".join(f"<li>{safe(text, _MAX_CHARS)}</li>" for text in self.items)
        return (f"<ul>{items}</ul>" if items else "") + (self._table() if self.rows else "")

    def _table(self) -> str:
        heads = "".join(
            f'<th scope="col" class="left">{safe(name.lstrip("<"))}</th>'
            if name[:1] == "<"
            else f'<th scope="col">{safe(name)}</th>'
            for name in self.columns
        )
        body = "".join(f"<tr>{self._cells(row)}</tr>" for row in self.rows)
        return f'<div class="scroll" tabindex="0"><table><tr>{heads}</tr>{body}</table></div>'

    def _cells(self, row: Sequence[Cell]) -> str:
        wide = len(self.columns) - len(row) + 1
        kinds = [_KINDS[name.count("<", 0, 2)] for name in self.columns]
        if wide > 1:
            kinds[len(row) - 1] = f' class="left soft" colspan="{wide}"'
        cells = (
            cell.html if isinstance(cell, Markup) else safe(cell, _MAX_CHARS if kind else 60)
            for cell, kind in zip(row, kinds, strict=False)
        )
        return "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, cells, strict=False))

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the section as Markdown, in which its text has no effect as markup."""
        yield from (f"- {_escaped(text)}" for text in self.items)
        if self.rows:
            yield from [""] if self.items else []
            yield _row([name.lstrip("<") for name in self.columns])
            yield "|" + "---|" * len(self.columns)
            for row in self.rows:
                cells = [cell.text if isinstance(cell, Markup) else cell for cell in row]
                yield _row([*cells, *[""] * (len(self.columns) - len(row))])


_KINDS = ("", ' class="text"', ' class="words"')


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#&~])", r"\\\1", printable(text)[:_MAX_CHARS])
