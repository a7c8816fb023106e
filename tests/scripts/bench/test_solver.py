"""The solver is timed beside SVC in the same run."""

import pytest

from scripts.bench.solver import run


@pytest.mark.slow
def test_every_row_is_a_ratio_of_two_times_of_the_same_run():
    rows = list(run(n=120, stride=16, windows={60: 5}, refits=1))
    assert len(rows) == 3 * 2 + 1 + 2
    assert all(row.plain()["ratio"] == row.peer / row.ours > 0 for row in rows)
    assert f"{rows[0].ratio:.1f} x" in str(rows[0])
