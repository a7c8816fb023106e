"""Turn what a terminal shows, with its colours, into an SVG picture.

tmux capture-pane -e -p -t SESSION | sed -n '/╭/,/^$/p' |
    python scripts/picture_of_terminal.py docs/images/demo.svg

while `online-svm demo` runs there, in a pane 100 columns wide; tests/docs/test_pictures.py fails
if the picture is out of date.
"""

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text


def main() -> None:
    """Read ANSI text from standard input and write the SVG that the first argument names."""
    if len(sys.argv) != 2:
        sys.exit("usage: picture_of_terminal.py FILE.svg < captured text")
    text = Text.from_ansi(sys.stdin.read().rstrip())
    width = max(line.cell_len for line in text.split())
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(text)
    Path(sys.argv[1]).write_text(console.export_svg(title="online-svm demo"), encoding="utf-8")


if __name__ == "__main__":
    main()
