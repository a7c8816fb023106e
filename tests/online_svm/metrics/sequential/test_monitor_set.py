"""MonitorSet: what it finds, whatever the cuts, and from a state."""

from itertools import pairwise

import numpy as np
import pytest

from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.monitor_config import MonitorConfig
from online_svm.stream.scored_rows import ScoredRows


def rows_of(rng, m, announced, true, first=0):
    """Rows of two classes: the second is announced with one probability, and true with another."""
    p = np.broadcast_to(announced, m).astype(float)
    point = np.column_stack([1 - p, p])
    columns = (rng.random(m) < true).astype(np.int64)
    return ScoredRows(
        first + np.arange(m),
        ("a", "b"),
        columns,
        point,
        point,
        point,
        point,
        p[:, None],
        (p > 0.5).astype(np.int64),
        model=1,
    )


def found_in(rows, cuts=()):
    monitors, found = MonitorSet(MonitorConfig()), []
    edges = [0, *cuts, len(rows)]
    for begin, stop in pairwise(edges):
        found += [
            (finding.since, begin + finding.row, finding.monitor, finding.log_wealth)
            for finding in monitors.update(rows.part(begin, stop))
        ]
        monitors = MonitorSet.from_state(monitors.state(), MonitorConfig())
    return found


def test_labels_that_are_inverted_are_found_within_sixty_examples():
    rng = np.random.default_rng(0)
    good = rows_of(rng, 5000, 0.75, 0.75)
    bad = rows_of(rng, 250, 0.75, 0.25, first=5000)
    monitors = MonitorSet(MonitorConfig())
    assert monitors.update(good) == []
    first = monitors.update(bad)[0]
    assert first.row < 60
    assert (first.kind, first.scope, first.since) == ("calibration", "overall", 0)
    assert first.log_wealth >= first.threshold


@pytest.mark.parametrize("cuts", [(1,), (100, 101, 500), tuple(range(1, 700))])
def test_findings_do_not_depend_on_how_rows_are_cut(cuts):
    rows = rows_of(np.random.default_rng(1), 700, 0.4, 0.7)
    assert len(found_in(rows)) > 1
    assert found_in(rows, cuts) == found_in(rows)
