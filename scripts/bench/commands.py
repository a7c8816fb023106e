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

MODULES = {
    "pairs": "pairs",
    "worker": "worker",
    "profile": "profile",
    "solver": "solver",
    "latency": "latency",
    "start": "start",
    "soak": "soak",
    "scorers": "scorers",
    "gateway": "gateway",
    "feeds": "feeds.run",
    "nodes": "nodes",
    "quality": "quality.run",
    "kinds": "quality.kinds",
    "monitors": "monitors.run",
    "policies": "policies",
    "svc": "svc",
}


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

    own = list(signature(run).parameters.values())
    own.append(Parameter("json", Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=Json))
    command.__signature__ = signature(run).replace(parameters=own)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in own}
    command.__doc__ = run.__doc__
    return command
