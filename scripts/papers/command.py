"""`reproduce`: the papers' tables beside what is measured, with their figures."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from scripts import papers
from scripts.papers import PAPERS, Run, data_of
from scripts.papers.summary import Line, summary
from workers.cli.common import DataDir, Json, note, wide_console, writing

FETCH = (
    "python scripts/download_data.py --out DIR fetches the data; then --data-dir DIR, or "
    "ONLINE_SVM_DATA=DIR"
)
"""How to come by the data."""


ALL = "all"

Paper = StrEnum("Paper", [*PAPERS, ALL])  # type: ignore[misc]  # its members are the registry's
"""What the command line takes: the keys of `PAPERS`, and all of them."""


app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper; all runs them in turn.")],
    quick: Annotated[bool, typer.Option("--quick", help="Smaller runs: minutes in all.")] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where JSON and PNG files go.")
    ] = Path("reproduction"),
    data_dir: DataDir = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="First seed.")] = 0,
    json: Json = False,
) -> None:
    """Repeat a paper's experiments: its tables beside what is measured, and its figures.

    `all` leaves out the papers whose data is not there, and says so; the last page is a summary.
    """
    wanted = list(PAPERS) if paper == ALL else [str(paper)]
    absent = _absent(wanted, data_dir, quick, is_one=paper != ALL)
    asked = Run(data_dir, quick, seed, lambda line: note(f"  {line}"))
    done: dict[str, Line] = {}
    for name in wanted:
        if name in absent:
            continue
        note(f"{name}: {PAPERS[name].title}")
        began = time.monotonic()
        result = papers.repeat(name, asked)
        written = _write(name, result, out)
        done[name] = Line.of(result, len(written), time.monotonic() - began)
        if json:
            print(_as_json(result))
        else:
            _show(result)
        note(f"{name}: wrote {', '.join(map(str, written))}")
    if not json:
        _show_summary(done, absent, out)


def _absent(
    wanted: list[str], data_dir: Path | None, quick: bool, is_one: bool
) -> dict[str, list[str]]:
    """Return the files that the papers lack, by paper, and say it before anything is computed.

    Raises
    ------
    DataNotFound
        If the one paper that was asked for lacks any.
    """
    from workers.push.datasets import DataNotFound, missing

    files = {name: missing(data_of(name, quick), data_dir) for name in wanted}
    absent = {name: lacks for name, lacks in files.items() if lacks}
    for name, lacks in absent.items():
        lacking = f"{name}: no data ({', '.join(lacks)})"
        if is_one:
            raise DataNotFound(f"{lacking}: {FETCH}")
        note(f"{lacking}: left out")
    if absent:
        note(FETCH)
    return absent


def _write(name: str, result: dict[str, Any], out: Path) -> list[Path]:
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{name}.json"
        path.write_text(_as_json(result) + "\n", encoding="utf-8")
        return [path, *papers.draw(name, result, out)]


def _as_json(result: dict[str, Any]) -> str:
    import json

    return json.dumps(result, allow_nan=False)


def _show(result: dict[str, Any]) -> None:
    from scripts.papers.report import report

    console = wide_console()
    for part in report(result):
        console.print(part)
        console.print()


def _show_summary(done: "dict[str, Line]", absent: dict[str, list[str]], out: Path) -> None:
    console = wide_console()
    console.print(summary(done, absent))
    if absent:
        console.print(FETCH, soft_wrap=True, highlight=False, markup=False)
    console.print(f"JSON and figures: {out}", soft_wrap=True, highlight=False, markup=False)
