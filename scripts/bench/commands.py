"""The benchmarks as commands; every one takes `--json`.

A figure is a module of this folder. Its `run` yields results (`report.Result`); its parameters are
the options of the command, and its docstring the help. A benchmark with several figures has an
option that chooses one of them.
"""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from inspect import Parameter, signature
from itertools import pairwise
from typing import Annotated, Any

import typer

from scripts.bench.report import Result
from scripts.command_line import chosen, stage_progress
from workers.cli.common import Json, show_json, with_parameters

FIGURES = {
    "worker": ("figure", {
        "rate": "worker.rate", "latency": "worker.latency", "gateway": "worker.gateway",
    }),
    "start": ("figure", {"start": "start"}),
    "quality": ("set", {
        "streams": "quality.run", "river": "quality.river_track", "score": "quality.own_score",
        "memory": "quality.memory", "nightly": "quality.nightly",
        "fit": "quality.fit",
    }),
    "monitors": ("figure", {"monitors": "monitors.run"}),
    "svc": ("figure", {"estimator": "svc.estimator", "solver": "svc.solver"}),
    "scale": ("figure", {"soak": "scale.soak", "nodes": "scale.nodes"}),
}  # fmt: skip
"""Of each benchmark the option that chooses a figure, and the module of each; the first is the
default."""


def module_of(benchmark: str, figure: str) -> Any:
    """Import the module of a figure."""
    return import_module(f"scripts.bench.{FIGURES[benchmark][1][figure]}")


def app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the command line; if `arguments` begin with a benchmark, only that is imported."""
    made = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    made.callback()(lambda: None)  # a group, also of one command
    for name in [name for name in arguments[:1] if name in FIGURES] or FIGURES:
        option, figures = FIGURES[name][0], tuple(FIGURES[name][1])
        figure = _chosen_figure(option, figures, arguments)
        made.command(name)(_command(module_of(name, figure).run, option, figures))
    return made


def _chosen_figure(option: str, figures: tuple[str, ...], arguments: Sequence[str]) -> str:
    flag = f"--{option}"
    given = [each.partition("=")[2] for each in arguments if each.startswith(f"{flag}=")]
    given += [after for each, after in pairwise(arguments) if each == flag]
    return given[-1] if given and given[-1] in figures else figures[0]


def _command(
    run: Callable[..., Iterable[Result]], option: str, figures: tuple[str, ...]
) -> Callable[..., None]:
    """Return a command with the parameters of a figure, its choice, and `--json`."""

    def command(json: bool, **options: Any) -> None:
        if len(figures) > 1:
            chosen(f"--{option}", options.pop(option), ";", figures)
        with stage_progress():
            for result in run(**options):
                if json:
                    for row in result.plain():
                        show_json(row)
                elif text := str(result):
                    print(text, flush=True)

    added = [_parameter("json", Json, False)]
    if len(figures) > 1:
        words = f"What is measured: {', '.join(figures)}; each has options of its own."
        added.append(_parameter(option, Annotated[str, typer.Option(help=words)], figures[0]))
    command.__doc__ = run.__doc__
    return with_parameters(command, [*signature(run).parameters.values(), *added])


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)
