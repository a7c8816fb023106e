import orjson
import pytest

from scripts.bench.report import Row
from scripts.bench.solver import Agreement, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report():
    return list(run(n=120, stride=16, windows={60: 5}, refits=1))


@pytest.fixture(scope="module")
def rows(report):
    return [result for result in report if isinstance(result, Row)]


@pytest.fixture(scope="module")
def agreements(report):
    return [result for result in report if isinstance(result, Agreement)]


def test_every_row_is_a_ratio_of_two_times_of_the_same_run(rows):
    assert len(rows) == 3 * 2 + 1 + 2
    assert all(row.ratio == row.peer / row.ours > 0 for row in rows)


def test_the_solver_decides_as_svc_does_at_every_checkpoint(agreements):
    assert len(agreements) == 3
    assert max(agreement.decision for agreement in agreements) < 5e-3
    assert max(agreement.objective for agreement in agreements) < 1e-6


def test_results_are_printed_with_their_ratio(rows, agreements):
    row = rows[0]
    assert f"{row.ratio:.1f} x" in str(row)
    assert "decision" in str(agreements[0])
    plain = [orjson.loads(orjson.dumps(result.plain())) for result in (row, agreements[0])]
    assert [plain[0]["ratio"], plain[1]["decision"]] == [row.ratio, agreements[0].decision]
