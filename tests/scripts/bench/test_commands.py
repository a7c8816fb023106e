"""Every benchmark runs, small, and prints the figures and bounds that docs/measured.md names."""

import json
from importlib import import_module

import pytest
from redis_cluster import running_cluster
from system_tools import package
from typer.main import get_command

from scripts.bench import nodes, policies
from scripts.bench.commands import MODULES, app
from scripts.bench.report import Result, check
from scripts.command_line import main

RIVER = "default / river StandardScaler | "
# Options, sizes in place of those of the module, and how the lines begin.
RUNS = {
    "worker": (
        {"examples": 600},
        {"REPEATS": 1},
        ["engine / null worker", "engine / reads and commits alone", "default / null worker",
         "default / one refit after the other", f"{RIVER}LogisticRegression",
         f"{RIVER}PAClassifier"],
    ),
    "solver": (
        {"examples": 120},
        {"STRIDE": 16, "WINDOWS": {60: 5}, "REFITS": 1},
        [*(f"Car, {gamma}, {part}" for gamma in ("gamma 0.2", "sigma 0.6", "sigma 0.2")
           for part in ("progressive_interval", "solver")),
         "window 60, one in, one out", "refit, 250 in and out of 2000, 0 since",
         "refit, 250 in and out of 2000, 249 since"],
    ),
    # Two refits of 250 examples each at least.
    "latency": (
        {"examples": 600},
        {"TURNS": 2, "WARM_UP": 2300},
        ["milliseconds", "null worker", "worker, no refit under way", "worker while a refit runs",
         "median / null worker's median", "p99 while a refit runs / idle p99"],
    ),
    "start": (
        {},
        {"REPEATS": 1, "REPLAYED": 300, "WINDOW": 300},
        ["bare imports", "command to first answer, window 300",
         "the same, 300 entries to replay", "300 entries answered live",
         "first answer / bare imports", "with replay / allowed", "replay's rate / live rate"],
    ),
    "scorers": (
        {"requests": 1000, "repeats": 1},
        {"COUNTS": (1, 2), "WARM_UP": 600},
        ["1 scorer / null worker", "2 scorers / null worker", "a request alone / null worker"],
    ),
    "gateway": (
        {"requests": 200},
        {"TURNS": 2, "WARM_UP": 300},
        ["gateway", "endpoint", "rate / endpoint's rate", "median / endpoint's median"],
    ),
    "quality": (
        {"streams": "phishing", "rows": "rolling LR;river AMF", "shuffles": 1,
         "examples": 500},
        {},
        ["phishing: 2 classes, 500 examples, 1 shuffle, scored from example 250",
         "two classes: means over 1 streams"],
    ),
    "river": (
        {"streams": "AGR_a,LED_g", "rows": "online-svm;river Stacking", "examples": 120},
        {},
        ["AGR_a", "LED_g", "AGR_a", "LED_g"],
    ),
    "monitors": (
        {"streams": 2, "worlds": "season", "detectors": "CUSUM (Page);of them, calibration"},
        {},
        ["season", "season"],
    ),
    "policies": (
        {"streams": "swap,rare", "rows": "report,river ARF", "draws": 1, "examples": 500},
        {},
        ["swap", "swap", "rare", "rare"],
    ),
    "svc": (
        {"sets": "circles,rings", "splits": 1},
        {"MAX_FITTED": 100, "MAX_ANSWERED": 100, "TIMED": 200},
        ["circles", "rings", "mean of 2", "log_loss", "brier", "auc", "log loss / that of SVC",
         "Brier score / that of SVC", "AUC / that of SVC", "fit, 200 rows of 2 classes",
         "fit time / that of SVC", "fit, 200 rows of 4 classes", "fit time / that of SVC"],
    ),
}  # fmt: skip


BOUNDS = {
    "gateway": [0.9, 1.1],
    "latency": [2.0, 1.5],
    "start": [1.5, 1.0, 1.0],
    "svc": [1.0, 1.0, 0.9995, 1.25, 1.25],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_small_run_prints_each_figure_and_its_bounds(name, monkeypatch, tmp_path):
    options, sizes, begins = RUNS[name]
    if name == "gateway":
        for needed in ("starlette", "uvicorn"):
            package(needed, "pip install 'online-svm[http]'")
    module = import_module(f"scripts.bench.{MODULES[name]}")
    for constant, size in sizes.items():
        monkeypatch.setattr(module, constant, size)
    kept = tmp_path / "kept.jsonl"
    if name in ("quality", "policies", "monitors", "river"):
        options = options | {"results": kept}
    results = list(module.run(**options))
    lines = [line for result in results for line in str(result).splitlines()]
    if name == "quality":  # tables
        lines = [line.rstrip() for line in lines if line.startswith(("phishing", "two"))]
    assert [line.split("  ")[0] for line in lines] == begins
    for result in results:
        plain = json.loads(json.dumps(result.plain()))
        assert plain.get("ratio", 1) > 0
        assert all(one["measured"] > 0 for one in result.checks)
    checks = [one for result in results for one in result.checks]
    bounds = [one.get("at most", one.get("at least")) for one in checks]
    assert bounds == BOUNDS.get(name, [])


def test_every_benchmark_takes_json():
    for name, command in get_command(app()).commands.items():
        assert "--json" in [option for one in command.params for option in one.opts], name


CLUSTER = ["nodes", "--redis", "redis+cluster://localhost:1", "--feeds"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["quality", "--streams", "phising"], "phising: unknown; one of phishing,bananas,"),
        (["quality", "--streams", "digits"], "--streams digits: unknown"),  # it is held out
        (["quality", "--rows", "river"], "--rows river: unknown; one of headline;"),
        (["policies", "--streams", "elec"], "--streams elec: unknown; one of elec2,"),
        (["policies", "--rows", "resett"], "unknown; one of report,refit,reset,river ARF"),
        (["river", "--streams", "SMTP"], "--streams SMTP: unknown; one of Phishing,Bananas,"),
        (["river", "--rows", "river ARF"], "--rows river ARF: unknown; one of online-svm;"),
        (["calibration", "--streams", "phishing"], "--streams phishing: unknown; one of elec2,"),
        (["svc", "--sets", "iris"], "--sets iris: unknown; one of australian,"),
        (["monitors", "--detectors", "river KSWIN"], "--detectors river KSWIN: unknown; one of"),
        (["feeds", "--parts", "idling"], "unknown; one of idle,learning,busy,sizes"),
        (["nodes", "--redis", "redis://localhost/0"], "redis+cluster://"),
        *(
            ([*CLUSTER, feeds], "numbers from 1 to 10,000")
            for feeds in ("", "200,", "0", "many", "20000", "-5")
        ),
    ],
)
def test_an_option_that_cannot_be_is_named(capsys, options, told):
    with pytest.raises(SystemExit) as ended:
        main(app(options[0]), "bench", options)
    assert ended.value.code == 2
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("json_too", [False, True])
def test_a_command_prints_each_result_as_lines_or_as_json(monkeypatch, capsys, tmp_path, json_too):
    losses = policies.PolicyLosses(0.25, 0.5, 20, [5040])
    monkeypatch.setattr(policies, "measure", lambda _: losses)
    asked = ["--streams", "rare,swap", "--rows", "reset,river ARF", "--draws", "2"]
    kept = ["--results", str(tmp_path / "kept"), *(["--json"] if json_too else [])]
    with pytest.raises(SystemExit) as ended:
        main(app("policies"), "bench", ["policies", *asked, *kept])
    assert ended.value.code == 0
    out, error = capsys.readouterr()
    assert "1 of 8: rare, draw 0, reset" in error
    if json_too:
        found = [(one["stream"], one["method"]) for one in map(json.loads, out.splitlines())]
    else:
        found = [(line[:16].strip(), line[16:27].strip()) for line in out.splitlines()]
    assert found == [(s, m) for s in ("rare", "swap") for m in ("reset", "river ARF")]


def test_a_run_prints_what_it_measured_and_then_each_bound():
    checks = [check("memory", 1.2, 1.05), check("rate", 1.0, 0.95, is_least=True)]
    run = Result({"examples": 2}, ["2 examples"], checks)
    assert [line.split()[-1] for line in str(run).splitlines()] == ["examples", "BROKEN", "ok"]
    assert run.plain() == {"examples": 2, "checks": checks}
    assert [one["ok"] for one in checks] == [False, True]
    assert not run.holds


@pytest.mark.scale
def test_feeds_at_rest_on_a_cluster_are_measured_and_deleted(tmp_path):
    with running_cluster(tmp_path, replicas=0) as cluster:
        (rest,) = nodes.run(cluster.url, "80", 1.0)
        found = rest.plain()
        assert found["feeds"] == 80
        assert 0 < found["median"] <= found["longest"] < 5.0
        assert 0 < found["connections"] < 150
        assert "80 feeds" in str(rest)
        assert [node.client.dbsize() for node in cluster.primaries] == [0, 0, 0]
