import pytest

from workers.lab.bench.solver import run
from workers.push.datasets import DataNotFound, data_directory


@pytest.fixture(scope="module")
def report():
    try:
        data_directory()
    except DataNotFound as missing:
        pytest.skip(str(missing))
    return run(n=120, stride=16, windows={60: 5}, refits=1)


def test_every_row_is_a_ratio_of_two_times_of_the_same_run(report):
    assert len(report.rows) == 3 * 2 + 1 + 2
    assert all(row.ratio == row.peer / row.ours > 0 for row in report.rows)


def test_the_solver_decides_as_svc_does_at_every_checkpoint(report):
    assert len(report.agreements) == 3
    assert max(agreement.decision for agreement in report.agreements) < 5e-3
    assert max(agreement.objective for agreement in report.agreements) < 1e-6


def test_results_are_printed_with_their_ratio(report):
    row = report.rows[0]
    assert f"{row.ratio:.1f} x" in str(row)
    assert "decision" in str(report.agreements[0])
