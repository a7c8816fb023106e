"""`bench latency`, `bench soak`, `bench start`: the real worker command, from outside."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import Json

if TYPE_CHECKING:
    from workers.lab.bench.report import Check


def register(group: typer.Typer) -> None:
    """Add the commands to the group `bench`."""
    group.command("latency")(latency)
    group.command("soak")(soak)
    group.command("start")(start)


def latency(
    examples: Annotated[int, typer.Option(min=100, help="Answered by each worker.")] = 20_000,
    json: Json = False,
) -> None:
    """Measure one example at a time against a null worker; and the same while refits run."""
    from workers.lab.bench.latency import run

    found = run(examples)
    _show(found.lines(), {"seconds": found.quantiles()}, found.checks, json)


def soak(
    entries: Annotated[int, typer.Option(min=10_000, help="Examples to feed.")] = 2_000_000,
    curve: Annotated[
        Path | None,
        typer.Option(help="Draw memory and rate: a picture for .png, else a table."),
    ] = None,
    json: Json = False,
) -> None:
    """Feed millions of drifting examples: memory, keys and rate must stay level (else exit 1)."""
    from workers.lab.bench.soak import run

    found = run(entries, curve)
    _show(found.lines(), found.plain(), found.checks, json)
    if not all(check.holds for check in found.checks):
        raise typer.Exit(1)


def start(
    cold: Annotated[
        bool, typer.Option("--cold", help="Also start with an empty numba cache (a minute).")
    ] = False,
    json: Json = False,
) -> None:
    """Measure from the command to the first answer on a window of 5,000 against bare imports."""
    from workers.lab.bench.start import run

    found = run(cold=cold)
    _show(found.lines(), found.plain(), found.checks, json)


def _show(
    lines: Iterable[str], plain: Mapping[str, Any], checks: "Iterable[Check]", json: bool
) -> None:
    """Print what was measured, then every figure that has a bound."""
    if json:
        import orjson

        print(orjson.dumps({**plain, "checks": [check.plain() for check in checks]}).decode())
        return
    for line in (*lines, *map(str, checks)):
        print(line)
