"""Compare the papers' tables with measurements."""

import json as json_format
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scripts import papers
from scripts.command_line import DataDir
from scripts.papers import PAPERS, Result, Run
from scripts.papers.report import report
from scripts.tables import wide_console
from workers.cli.common import Json, note
from workers.errors import writing
from workers.push.datasets import DataNotFound, missing

ALL = "all"
FETCH = (
    "python scripts/download_data.py --out DIR fetches the data; then --data-dir DIR, or "
    "ONLINE_SVM_DATA=DIR"
)
"""How to come by the data."""

Paper = StrEnum("Paper", [*PAPERS, ALL])  # type: ignore[misc]  # its members are the registry's

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper; all runs them in turn.")],
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs: minutes in all.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the JSON files go.")] = Path(
        "reproduction"
    ),
    data_dir: DataDir = None,
    seed: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    json: Json = False,
) -> None:
    """Repeat a paper's experiments: compare its tables with measurements.

    `all` leaves out the papers whose data is not there, and names them before it computes anything.
    """
    asked = Run(data_dir, quick, seed)
    wanted = PAPERS if paper == ALL else (str(paper),)
    for name in _with_data(wanted, data_dir, is_one=paper != ALL):
        note(f"{name}: {papers.experiments(name).PAPER}")
        with writing(out):  # before hours are spent
            out.mkdir(parents=True, exist_ok=True)
        result, written = papers.repeat(name, asked), out / f"{name}.json"
        with writing(written):
            written.write_text(_as_json(result) + "\n", encoding="utf-8")
        if json:
            print(_as_json(result))
        else:
            console = wide_console()
            for part in report(result):
                console.print(part)
                console.print()
        note(f"{name}: wrote {written}")


def _with_data(wanted: tuple[str, ...], data_dir: Path | None, is_one: bool) -> list[str]:
    """Return the papers whose data is there; say what the others lack."""
    files = {name: missing(papers.experiments(name).DATA, data_dir) for name in wanted}
    absent = {name: lacks for name, lacks in files.items() if lacks}
    for name, lacks in absent.items():
        lacking = f"{name}: no data ({', '.join(lacks)})"
        if is_one:
            raise DataNotFound(f"{lacking}: {FETCH}")
        note(f"{lacking}: left out")
    if absent:
        note(FETCH)
    return [name for name in wanted if name not in absent]


def _as_json(result: Result) -> str:
    return json_format.dumps(result, allow_nan=False)
