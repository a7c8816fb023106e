"""Platt (1999) on the printed line that trains in a second, and how its table is put together."""

import pytest

from scripts.papers import Run, platt
from scripts.papers.platt import TASKS, Job, claims, measure, rows

ADULT = TASKS[0]


@pytest.fixture(scope="module")
def adult(data_set):
    data_set("a1a")  # or skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platt, "PARTITIONS", 3)
        return measure(Job(ADULT, None, 0))


def test_adult_quadratic_is_within_fifteen_of_the_printed_counts(adult):
    sigmoid = adult["sigmoids"]["three-fold"]
    raw, errors, loss, threshold = ADULT.printed
    assert abs(adult["raw_errors"] - raw) <= 15
    assert abs(sigmoid["errors"] - errors) <= 15
    assert abs(sigmoid["loss"] - loss) <= 15
    assert sigmoid["threshold"] == pytest.approx(threshold, abs=0.02)
    assert adult["spread"]["loss"][0] <= sigmoid["loss"] <= adult["spread"]["loss"][1]


def test_a_task_that_was_not_run_says_why(adult):
    table = {row["what"]: row for row in rows([adult])}
    assert len(table) == 3 * len(TASKS) + 1
    assert table["Adult quadratic: errors of the raw machine"]["measured"] == adult["raw_errors"]
    assert table["Adult linear: -log p"]["measured"] is None
    assert "--quick" in table["Adult linear: -log p"]["reason"]
    assert "Reuters" in table["Reuters linear: -log p"]["reason"]
    # Counts of the Web are scaled to the paper's test set.
    web = adult | {"name": "Web quadratic", "raw_errors": 25_057}
    row = next(r for r in rows([web]) if r["what"] == "Web quadratic: errors of the raw machine")
    assert row["reason"].endswith("scaled to the paper's size 21489")


def test_the_papers_statements_hold_on_adult(adult):
    tried = {claim["claim"]: (claim["holds"], claim["of"]) for claim in claims([adult])}
    assert sorted(tried.values()) == [(0, 0), (1, 1), (1, 1), (1, 1)]


def test_a_quick_run_leaves_the_linear_tasks_out(monkeypatch):
    ran = []
    monkeypatch.setattr(platt, "each", lambda _, jobs, __: ran.extend(map(str, jobs)) or [])
    assert platt.run(Run(quick=True))["tasks"] == []
    assert ran == ["Adult quadratic: a1a -> a9a.t", "Web quadratic: w1a -> w7a.t"]
    platt.run(Run())
    assert len(ran) == 6
