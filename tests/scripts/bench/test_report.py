"""What all benchmarks share: how they are asked for JSON, and how bounds are printed."""

from typing import Any

import pytest
from typer.main import get_command

from scripts.bench.commands import app
from scripts.bench.report import Check, Checked


def benchmarks() -> dict[str, Any]:
    return get_command(app).commands


@pytest.mark.parametrize("name", list(benchmarks()))
def test_every_benchmark_takes_json(name):
    options = [option for made in benchmarks()[name].params for option in made.opts]
    assert "--json" in options


def test_a_run_prints_what_it_measured_and_then_each_bound():
    checks = [Check("memory", 1.2, 1.05), Check("rate", 1.0, 0.95, is_least=True)]
    run = Checked({"examples": 2}, checks, ["2 examples"])
    assert [line.split()[-1] for line in str(run).splitlines()] == ["examples", "BROKEN", "ok"]
    plain = run.plain()
    assert plain["examples"] == 2
    assert [check["ok"] for check in plain["checks"]] == [False, True]
    assert not run.holds
