"""Scorers are measured as the command runs them, beside a worker that only moves messages."""

import pytest

from scripts.bench import scorers


@pytest.mark.slow
def test_a_small_run_has_a_line_for_each_number_of_scorers_and_one_for_single_requests(
    embedded_url,
):
    found = list(scorers.run(1000, url=embedded_url, counts=(1, 2), repeats=1, warm_up=600))
    assert [line.scorers for line in found[:-1]] == [1, 2]
    for line in found[:-1]:
        assert min(line.ours.rate, line.null.rate, line.ours.of_scorers, line.ours.of_redis) > 0
        assert "microseconds an answer" in str(line)
    assert found[-1].name == "a request alone / null worker"
    assert 0 < found[-1].ours < 1


def test_medians_are_taken_of_each_figure_alone():
    runs = [scorers.Figures(1.0, 5.0, 9.0), scorers.Figures(2.0, 4.0, 8.0)]
    runs.append(scorers.Figures(3.0, 6.0, 7.0))
    assert scorers.Figures.median(runs) == scorers.Figures(2.0, 5.0, 8.0)
    assert scorers.Figures(2.0, 0.25, 0.5).processors == 1.5
