"""`online-svm worker --metrics` and `--log-format json`, in a process of its own."""

import json
import urllib.request

import pytest
from processes import LIMIT
from world import wait_until

pytestmark = pytest.mark.servers("embedded")


def test_a_worker_is_scraped_and_every_line_it_logs_is_a_json_object(world):
    count, feed = world.push(120), world.feed
    worker = world.worker("--metrics", "0", "--log-format", "json")
    wait_until(lambda: "\n" in worker.said)
    first = json.loads(worker.said.splitlines()[0])
    assert first["event"] == "metrics are served"
    assert first["address"].startswith("http://127.0.0.1:")

    def is_shown(text):
        with urllib.request.urlopen(first["address"], timeout=LIMIT) as reply:
            return f"online_svm_{text}" in reply.read().decode()

    assert is_shown('build_info{numba="')
    wait_until(lambda: is_shown(f'answers_total{{feed="{feed}"}} {count}.0'))
    wait_until(lambda: is_shown(f'lag_entries{{feed="{feed}"}} 0.0'))  # it is read twice a second
    lines = [json.loads(line) for line in worker.stopped().splitlines()]
    assert {"level", "event", "timestamp"} <= set.intersection(*map(set, lines))
    assert lines[-1]["event"] == "stopped"
    assert (lines[-1]["feed"], lines[-1]["answered"]) == (feed, count)


@pytest.mark.parametrize(("feed_name", "option", "told"), [
    ("no name", ("--log-format", "json"), "feed name 'no name'"),
    ("f", ("--log-format", "json", "--metrics", "nowhere"),
     "setting metrics: 'nowhere' is no address: write a port"),
])  # fmt: skip
def test_the_error_that_ends_a_worker_is_a_json_object_too(run, feed_name, option, told):
    code, _, said = run("worker", feed_name, *option)
    found = json.loads(said.splitlines()[-1])
    assert (code, found["level"], told in found["event"]) == (2, "error", True)
