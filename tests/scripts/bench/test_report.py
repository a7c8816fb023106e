"""What all benchmarks share: what they are asked for, and how bounds are printed."""

from typing import Any

import pytest
from typer.main import get_command

from scripts.bench.commands import app
from scripts.bench.report import Check, Checked
from scripts.command_line import main


def benchmarks() -> dict[str, Any]:
    return get_command(app).commands


@pytest.mark.parametrize("name", list(benchmarks()))
def test_every_benchmark_takes_json(name):
    options = [option for made in benchmarks()[name].params for option in made.opts]
    assert "--json" in options


CLUSTER = ["nodes", "--redis", "redis+cluster://localhost:1", "--feeds"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["quality", "--streams", "phising"], "phising: unknown; one of phishing,bananas,"),
        (["quality", "--streams", "digits"], "--streams digits: unknown"),  # it is held out
        (["quality", "--rows", "river"], "--rows river: unknown; one of headline;"),
        (["policies", "--streams", "elec"], "--streams elec: unknown; one of elec2,"),
        (["policies", "--rows", "resett"], "unknown; one of none,report,refit,reset,river ARF"),
        (["monitors", "--detectors", "river KSWIN"], "--detectors river KSWIN: unknown; one of"),
        (["feeds", "--parts", "idling"], "unknown; one of idle,learning,busy,new,sizes"),
        *(
            ([*CLUSTER, feeds], "numbers from 1 to 10,000")
            for feeds in ("", "200,", "0", "many", "20000", "-5")
        ),
    ],
)
def test_an_option_that_cannot_be_is_named(capsys, options, told):
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", options)
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_run_prints_what_it_measured_and_then_each_bound():
    checks = [Check("memory", 1.2, 1.05), Check("rate", 1.0, 0.95, is_least=True)]
    run = Checked({"examples": 2}, checks, ["2 examples"])
    assert [line.split()[-1] for line in str(run).splitlines()] == ["examples", "BROKEN", "ok"]
    plain = run.plain()
    assert plain["examples"] == 2
    assert [check["ok"] for check in plain["checks"]] == [False, True]
    assert not run.holds
