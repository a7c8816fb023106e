"""Every benchmark runs, small, and prints the figures and bounds that docs/measured.md names."""

import json

import pytest
from system_tools import package
from typer.main import get_command

from scripts.bench.commands import FIGURES, app, module_of
from scripts.bench.report import Result, check
from scripts.command_line import main

# Options, sizes in place of those of the module, and the first value of each row.
RUNS = {
    ("worker", "rate"): (
        {"examples": 600},
        {"REPEATS": 1},
        ["single / null worker", "default / null worker",
         "default / null worker with one script call",
         "default / river StandardScaler | LogisticRegression",
         *(f"{name}: {process}" for name in ("single", "default")
           for process in ("worker", "Redis", "refit process", "all"))],
    ),
    ("svc", "solver"): (
        {},
        {"WINDOWS": {60: 5}, "REFITS": 1},
        ["window 60, one in, one out", "refit, 250 in and out of 2000"],
    ),
    # Two refits of 250 examples each at least.
    ("worker", "latency"): (
        {"examples": 600},
        {"TURNS": 2, "WARM_UP": 2300},
        ["null worker", "worker, no refit under way", "worker while a refit runs"],
    ),
    ("start", "start"): (
        {},
        {"REPEATS": 1, "WINDOW": 300},
        ["bare imports", "command to first answer, window 300"],
    ),
    ("worker", "gateway"): (
        {"requests": 200},
        {"TURNS": 2, "WARM_UP": 300},
        ["examples: gateway / endpoint", "scores: gateway / endpoint"],
    ),
    ("quality", "streams"): (
        {"streams": "phishing", "rows": "rolling LR;river AMF", "shuffles": 1,
         "examples": 500},
        {},
        ["phishing", "phishing", "two classes", "two classes"],
    ),
    ("quality", "river"): (
        {"streams": "AGR_a,LED_g", "rows": "online-svm;river Naive Bayes", "examples": 120},
        {},
        ["AGR_a", "AGR_a", "LED_g", "LED_g", *["AGR_a", "LED_g"] * 2],
    ),
    ("monitors", "monitors"): (
        {"streams": 2, "worlds": "gradual rotation",
         "detectors": "CUSUM (Page);default monitors, level .01"},
        {},
        ["gradual rotation", "gradual rotation"],
    ),
    ("svc", "estimator"): (
        {"sets": "circles,rings", "splits": 1},
        {"MAX_FITTED": 100, "MAX_ANSWERED": 100, "TIMED": 200},
        [*["circles"] * 3, *["rings"] * 3, "ProbabilitySVC", "SVC(probability=True)",
         "CalibratedClassifierCV", "log_loss", "brier", "auc", "milliseconds", 2, 4],
    ),
}  # fmt: skip


BOUNDS = {
    "rate": [0.3],
    "gateway": [0.9, 15_000],
    "latency": [2.0, 1.5],
    "start": [1.5],
    "estimator": [1.0, 1.0, 0.9995, 1.25, 1.25],
}


@pytest.mark.slow
@pytest.mark.parametrize(("benchmark", "name"), RUNS)
def test_a_small_run_prints_each_figure_and_its_bounds(benchmark, name, monkeypatch, tmp_path):
    options, sizes, begins = RUNS[benchmark, name]
    if name == "gateway":
        for needed in ("starlette", "uvicorn"):
            package(needed, "pip install 'online-svm[http]'")
    module = module_of(benchmark, name)
    for constant, size in sizes.items():
        monkeypatch.setattr(module, constant, size)
    kept = tmp_path / "kept.jsonl"
    if name in ("streams", "monitors", "river", "estimator"):
        options = options | {"results": kept}
    results = list(module.run(**options))
    assert [next(iter(row.values())) for result in results for row in result.rows] == begins
    for result in results:
        assert [json.loads(json.dumps(row)) for row in result.plain()] == [*result.plain()]
        assert len(str(result).splitlines()) >= 4 + len(result.rows)
    checks = [one for result in results for one in result.checks]
    assert all(one["measured"] > 0 for one in checks)
    bounds = [one.get("at most", one.get("at least")) for one in checks]
    assert bounds == BOUNDS.get(name, [])


def test_every_figure_takes_json_and_its_choice():
    for name, (option, figures) in FIGURES.items():
        for figure in figures:
            asked = [name, f"--{option}", figure]
            (command,) = get_command(app(asked)).commands.values()
            options = {option for one in command.params for option in one.opts}
            assert "--json" in options
            assert (f"--{option}" in options) is (len(figures) > 1)
            assert module_of(name, figure).run.__doc__.startswith(command.help.splitlines()[0])


RIVERS, SCORE = ["quality", "--set", "river"], ["quality", "--set=score"]
CLUSTER = ["scale", "--figure", "nodes", "--redis", "redis+cluster://localhost:1", "--feeds"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["quality", "--streams", "phising"], "phising: unknown; one of phishing,bananas,"),
        (["quality", "--streams", "digits"], "--streams digits: unknown"),  # it is held out
        (["quality", "--rows", "river"], "--rows river: unknown; one of headline;"),
        (["quality", "--set", "rivers"], "--set rivers: unknown; one of streams;river;score"),
        ([*RIVERS, "--streams", "SMTP"], "--streams SMTP: unknown; one of Phishing,Bananas,"),
        ([*RIVERS, "--rows", "river ARF"], "--rows river ARF: unknown; one of online-svm;"),
        ([*SCORE, "--streams", "phishing"], "--streams phishing: unknown; one of elec2,"),
        (["svc", "--sets", "iris"], "--sets iris: unknown; one of australian,"),
        (["monitors", "--detectors", "river KSWIN"], "--detectors river KSWIN: unknown; one of"),
        (["scale", "--figure", "nodes", "--redis", "redis://localhost/0"], "redis+cluster://"),
        *(([*CLUSTER, feeds], "'--feeds'") for feeds in ("", "0", "many", "20000", "-5")),
    ],
)
def test_an_option_that_cannot_be_is_named(capsys, options, told):
    with pytest.raises(SystemExit) as ended:
        main(app(options), "bench", options)
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_run_prints_what_it_measured_and_then_each_bound():
    checks = [check("memory", 1.2, 1.05), check("rate", 1.0, 0.95, is_least=True)]
    run = Result([{"examples": 2}], "a title", None, checks)
    lines = [line for line in str(run).splitlines() if line.startswith("│")]
    assert [line.split()[-2] for line in lines] == ["2", "BROKEN", "ok"]
    assert [*run.plain()] == [{"examples": 2}, *checks]
    assert [one["ok"] for one in checks] == [False, True]
    assert not run.holds
