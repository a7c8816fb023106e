"""The benchmarks as commands; every one takes `--json`.

A benchmark is a module of this folder. Its `run` yields results (`report.Result`); its parameters
are the options of the command, and its docstring the help.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

import typer

from scripts.bench.report import Result
from scripts.command_line import stage_progress
from workers.cli.common import Json, show_json

IN_FOLDERS = {
    "feeds": "feeds.run", "quality": "quality.run", "kinds": "quality.kinds",
    "monitors": "monitors.run", "river": "quality.river_track", "calibration": "quality.own_score",
}  # fmt: skip
MODULES = {
    name: IN_FOLDERS.get(name, name)
    for name in (
        "pairs", "worker", "profile", "solver", "latency", "start", "soak", "scorers", "gateway",
        "feeds", "nodes", "quality", "kinds", "river", "calibration", "monitors", "policies", "svc",
    )
}  # fmt: skip


def app(*names: str) -> typer.Typer:
    """Return the command line of some benchmarks, by default of all; only theirs are imported."""
    made = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(lambda: None)  # a group, also of one command
    for name in names or MODULES:
        module = import_module(f"scripts.bench.{MODULES[name]}")
        settings = getattr(module, "CONTEXT", None)
        made.command(name, context_settings=settings)(_command(module.run))
    return made


def _command(run: Callable[..., Iterable[Result]]) -> Callable[..., None]:
    """Return a command with the parameters of a benchmark and `--json`."""

    def command(json: bool, **options: Any) -> None:
        with stage_progress():
            for result in run(**options):
                if json and result.values:
                    show_json(result.plain())
                elif not json and result.lines:
                    print(result, flush=True)

    own = signature(run).parameters.values()
    flag = Parameter("json", Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=Json)
    command.__signature__ = signature(run).replace(parameters=[*own, flag])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in (*own, flag)}
    command.__doc__ = run.__doc__
    return command
