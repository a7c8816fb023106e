"""What it costs to be watched is measured on the real command, with and without."""

import pytest

from scripts.bench import watching
from workers.broker.store import Store


@pytest.mark.slow
def test_a_small_run_compares_a_watched_worker_with_one_that_is_not(embedded_url):
    served = (watching.SERVED,)
    found = list(watching.run(1000, pairs=2, url=embedded_url, warm_up=300, compared=served))
    assert [row.name for row in found] == [
        f"{watching.SERVED}: rate", f"{watching.SERVED}: rate by processor time"
    ]  # fmt: skip
    assert all(row.pairs == 2 and row.low <= row.ratio <= row.high for row in found)
    # The last run was one without endpoint and page, with the monitors of a new feed.
    with Store(embedded_url, "bench-watching") as store:
        assert b'"monitors":{' in store.call("XREVRANGE", store.keys.met, "+", "-")[0][1][1]


def test_the_worker_that_is_not_watched_has_neither_monitors_nor_windowed_figures(embedded_url):
    watching._measure(embedded_url, watching.stream(2000), 100, watching.OFF)
    with Store(embedded_url, "bench-watching") as store:
        report = store.call("XREVRANGE", store.keys.met, "+", "-")[0][1][1]
    assert b'"monitors"' not in report
    assert b'"windowed"' not in report
