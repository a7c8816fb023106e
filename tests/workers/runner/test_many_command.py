"""`online-svm worker` with several feeds: the command, its metrics, its log and its settings."""

import json
import re
import urllib.error
import urllib.request

import pytest
from many_feeds import alone, contents, fill, wait_for
from processes import LIMIT
from world import Worker, rows, wait_until

FILE = """
[predictor]
classes = ["a", "b"]
refit_every = 20
metrics_every = 10
gamma = 0.5
window = 60
[feed."*-big"]
window = 80
alarm_url = "http://127.0.0.1:1/alarms"
"""


@pytest.mark.servers("embedded")
def test_one_process_answers_feeds_with_settings_of_their_own_and_tells_of_them(
    feeds, redis_url, feed, tmp_path
):
    small, big, bad = stores = feeds("small", "big", "bad")
    names = [store.keys.feed for store in stores]
    (tmp_path / "settings.toml").write_text(FILE)
    fill(rows(90, 0), *stores)
    bad.call("SET", bad.keys.dlq, "no stream")
    command = ("worker", f"{feed}-*", names[0], "--redis", redis_url, "--metrics", "0",
               "--config", tmp_path / "settings.toml", "--log-format", "json", "--max-feeds", "5",
               "--dashboard", "0")  # fmt: skip
    shown = (
        f'online_svm_answers_total{{feed="{names[0]}"}} 90.0',
        f'online_svm_stage{{feed="{names[1]}",stage="answering"}} 1.0',
        f'online_svm_stage{{feed="{names[2]}",stage="aside"}} 1.0',
        f'online_svm_lag_entries{{feed="{names[1]}"}} 0.0',
        f'online_svm_batch_seconds_count{{feed="{names[1]}"}}',
        f'online_svm_webhook_delivered_total{{feed="{names[1]}"}} 0.0',
    )
    with Worker(*command) as worker:
        wait_for(90, small, big, seconds=90.0)
        address = next(line["address"] for line in logged(worker.said) if "address" in line)
        wait_until(lambda: all(line in get(address) for line in shown))
        told = get(address)
        assert get(address.replace("metrics", "readyz")) == "ok\n", "the others are answered"
        wait_until(lambda: "the page is at" in worker.said)
        page = re.search(r"the page is at (\S+)", worker.said)[1]
        assert "online-svm" in get(page)
        lines = logged(worker.stopped())
    with pytest.raises(urllib.error.URLError):
        get(page)
    ended = next(line for line in lines if line["event"] == "feeds stopped")
    assert (ended["feeds"], ended["with_snapshot"]) == (3, 2)
    assert f'online_svm_webhook_delivered_total{{feed="{names[0]}"}}' not in told
    aside = next(line for line in lines if line["event"] == "feed set aside")
    assert aside["feed"] == names[2]
    assert bad.keys.dlq in aside["reason"]
    assert (lines[-1]["event"], lines[-1]["answered"]) == ("stopped", 180)
    assert contents(big) == alone(redis_url, rows(90, 0), window=80)
    assert contents(small) == alone(redis_url, rows(90, 0))


def logged(said):
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def get(address):
    try:
        with urllib.request.urlopen(address, timeout=LIMIT) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("f-*", "g h"), "feed name 'g h'"),
        (("f", "g", "--alarm-url", "ftp://localhost/a"), "setting alarm_url"),
        (("f", "g", "--max-feeds", "1"), "2 feeds are named, and max_feeds is 1"),
        (("f", "g"), "does not answer"),
    ],
)
def test_what_a_process_of_many_feeds_cannot_do_is_refused_at_once(run_command, arguments, said):
    code, _, err = run_command("worker", *arguments, "--redis", "redis://127.0.0.1:1")
    assert (code, said in err) == (2, True)
