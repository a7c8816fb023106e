"""Costs of a feed: its answers, status and metrics tell them, and `backtest --costs` compares."""

import json

import pytest
from world import World

from workers.monitor.metrics import of_report
from workers.reading.answers import answer
from workers.reading.facts import cost_text

COSTS = {"a": {"a": 0, "b": 2, "review": 0.2}, "b": {"a": 1, "b": 0, "review": 0.2}}

FILE = """
[same.a]
a = 0
b = 2
review = 0.2
[same.b]
a = 1
b = 0
review = 0.2

[even.a]
a = 0
b = 1
[even.b]
a = 1
b = 0
"""


@pytest.fixture
def world(redis_url, feed, run_command, capsys):
    """A feed with costs that was answered in this process, with some unlabelled entries."""
    with World(redis_url, feed, run_command, costs=COSTS, monitors="off") as made:
        sent = [fields[:2] if i % 9 == 4 else fields for i, fields in enumerate(made.entries)]
        learned = [i for i, fields in enumerate(sent) if fields[2:] and fields[1] != "[1,2]"]
        made.push(sent[: learned[199] + 1])  # the last report, at 200, is of all
        made.answer()
        capsys.readouterr()
        yield made


def costs_file(tmp_path, text=FILE):
    path = tmp_path / "costs.toml"
    path.write_text(text)
    return str(path)


def test_a_matrix_on_recorded_answers_comes_to_what_the_feed_itself_reports(world, tmp_path):
    report = answer(world.store.last_entries(world.store.keys.met, 1)[0])
    code, said, _ = world.run("backtest", world.feed, "--costs", costs_file(tmp_path), "--json")
    found = json.loads(said)["costs"]
    assert (code, list(found)) == (0, ["same", "even"])
    assert found["same"] == report["costs"]
    assert found["same"]["scored"] > 100
    assert found["even"]["mean"] == found["even"]["by_label"]
    code, said, _ = world.run("backtest", world.feed, "--costs", costs_file(tmp_path))
    assert (code, said.splitlines()[0]) == (0, f"same: {cost_text(found['same'])}")


def test_status_and_metrics_tell_what_decisions_cost_beside_simple_rules(world):
    report = answer(world.store.last_entries(world.store.keys.met, 1)[0])
    code, said, _ = world.run("status", world.feed)
    assert code == 0
    assert f"costs      {cost_text(report['costs'])}" in said
    (family,) = [one for one in of_report({"f": report}) if one.name.endswith("example_cost")]
    told = {sample.labels["rule"]: sample.value for sample in family.samples}
    costs = report["costs"]
    assert told == {"answers": costs["mean"], "most probable label": costs["by_label"]} | {
        f"always {action}": mean for action, mean in costs["always"].items()
    }


REFUSED = {
    "other labels": ("[m.a]\na = 0\nc = 1\n[m.c]\na = 1\nc = 0\n", "those of the feed"),
    "a missing cost": ("[m.a]\na = 0\nb = 1\n[m.b]\na = 1\n", "same actions"),
    "no matrix": ("", "no configuration"),
    "no TOML": ("[m", "not TOML"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_costs_that_cannot_be_used_are_refused_with_the_reason(world, tmp_path, text, why):
    code, _, said = world.run("backtest", world.feed, "--costs", costs_file(tmp_path, text))
    assert (code, why in said) == (2, True), said


def test_costs_answer_nothing_so_options_of_an_answer_are_refused(world, tmp_path):
    given = ("--costs", costs_file(tmp_path), "--set", "b:C=2")
    code, _, said = world.run("backtest", world.feed, *given)
    assert (code, "leave out the other options" in said) == (2, True)
