"""Figures of a window from cumulative reports, and payloads that are no reports."""

import math

import numpy as np
import pytest

from workers.dashboard.reports import Report, cumulative, parsed, windowed


def report(n, hits, said):
    """Return the message of a report over n scored examples."""
    own = {"accuracy": hits / n, "lower": 0.0, "probability": said / n, "upper": 1.0}
    return {"n": n, "scored": n, "headline": {"predicted": own, "log_loss": 0.5, "brier": 0.25}}


def test_a_window_holds_what_happened_between_two_reports():
    rng = np.random.default_rng(0)
    hits, said = rng.random(3000) < 0.7, rng.random(3000)
    at = range(100, 3001, 100)
    reports = parsed(
        (b"%d-0" % n, report(n, int(hits[:n].sum()), float(said[:n].sum()))) for n in at
    )
    figures = windowed(reports, "headline", window=500)
    expected = [hits[max(0, n - 500) : n].mean() for n in at]
    assert figures[:, 0] == pytest.approx(expected)
    assert figures[:, 2] == pytest.approx([said[max(0, n - 500) : n].mean() for n in at])
    assert cumulative(reports, "headline")[-1, 0] == pytest.approx(hits.mean())


def test_no_window_is_made_up_where_older_reports_are_not_known():
    reports = parsed((b"%d-0" % n, report(n, n, n)) for n in range(5000, 6100, 100))
    known = ~np.isnan(windowed(reports, "headline", window=500)[:, 0])
    assert known.tolist() == [False] * 5 + [True] * 6


@pytest.mark.parametrize(
    "message",
    [
        None, [], 3, "report", {}, {"n": "7", "scored": 3}, {"n": True, "scored": 1},
        {"n": -1, "scored": 0}, {"n": 1e400, "scored": 1}, {"n": 10**400, "scored": 1},
    ],
)  # fmt: skip
def test_what_is_no_report_is_left_out(message):
    assert parsed([(b"1-0", message)]) == []


@pytest.mark.parametrize(
    "odd", ["0.9", None, [], {"a": 1}, True, 10**400], ids=lambda odd: str(odd)[:9]
)
def test_a_figure_that_is_no_number_is_shown_as_none(odd):
    message = {"n": 1, "scored": 1, "headline": {"predicted": {"accuracy": odd}}, "maps": odd}
    found = Report.of(b"1-0", message)
    assert math.isnan(found.methods["headline"][0])
