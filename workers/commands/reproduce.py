"""`reproduce`: the papers' tables beside what is measured, with their figures."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.commands.common import Json, note, writing
from workers.reproduce import PAPERS, reproduction

if TYPE_CHECKING:
    from rich.console import Console

NARROW = 120  # columns of a table where the output is no terminal


class Paper(StrEnum):
    """The keys of `PAPERS`, and all of them."""

    PLATT = "platt"
    VENN = "venn"
    IMPLIED = "implied"
    PSVM = "psvm"
    EVIDENTIAL = "evidential"
    ALL = "all"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce")(reproduce)


def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper; all runs them in turn.")],
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs: minutes in all.")] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where JSON and PNG files go.")
    ] = Path("reproduction"),
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where the data files are; default $ONLINE_SVM_DATA.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="First seed.")] = 0,
    json: Json = False,
) -> None:
    """Repeat a paper's experiments: its tables beside what is measured, and its figures."""
    for name in PAPERS if paper is Paper.ALL else [str(paper)]:
        note(f"{name}: {PAPERS[name]}")
        result = reproduction(name).run(data_dir, quick, seed, lambda line: note(f"  {line}"))
        written = _write(name, result, out)
        if json:
            print(_as_json(result))
        else:
            _show(result)
        note(f"{name}: wrote {', '.join(map(str, written))}")


def _write(name: str, result: dict[str, Any], out: Path) -> list[Path]:
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{name}.json"
        path.write_text(_as_json(result) + "\n", encoding="utf-8")
        return [path, *reproduction(name).draw(result, out)]


def _as_json(result: dict[str, Any]) -> str:
    import json

    return json.dumps(result, allow_nan=False)


def _show(result: dict[str, Any]) -> None:
    from workers.reproduce.report import report

    console = _console()
    for part in report(result):
        console.print(part)
        console.print()


def _console() -> "Console":
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=NARROW)
