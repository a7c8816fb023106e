"""`online-svm worker` with several feeds: the command, its metrics, its log and its settings."""

import json
import re
import signal
import sys
import urllib.error
import urllib.request

import pytest
from many_feeds import answer_alone, contents, has_answered, settings
from processes import Process
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.cli import app as cli

FILE = """
[predictor]
classes = ["a", "b"]
refit_every = 20
refit_lag = 0
metrics_every = 10
gamma = 0.5
window = 60
[feed."*-big"]
window = 80
alarm_url = "http://127.0.0.1:1/alarms"
"""


def test_one_process_answers_feeds_with_settings_of_their_own_and_tells_of_them(
    embedded_url, feed, tmp_path
):
    names = [f"{feed}-small", f"{feed}-big", f"{feed}-bad"]
    (tmp_path / "settings.toml").write_text(FILE)
    stores = [Store(embedded_url, name) for name in names]
    small, big, bad = stores
    for store in stores:
        push(store, rows(90, 0))
        store.register()
    bad.call("SET", bad.keys.dlq, "no stream")
    command = [
        *(sys.executable, "-m", "workers.cli", "worker", f"{feed}-*", names[0]),
        *("--redis", embedded_url, "--config", tmp_path / "settings.toml"),
        *("--metrics", "0", "--log-format", "json", "--max-feeds", "5", "--dashboard", "0"),
    ]
    log = tmp_path / "log"
    with log.open("w") as said, Process(command, stderr=said) as worker:
        wait_until(lambda: has_answered(small, 90) and has_answered(big, 90), seconds=90.0)
        address = next(line["address"] for line in logged(log) if "address" in line)
        wait_until(lambda: '"aside"' in get(address))
        told = get(address)
        assert get(address.replace("metrics", "readyz")) == "ok\n", "the others are answered"
        wait_until(lambda: "the page is at" in log.read_text())
        page = re.search(r"the page is at (\S+)", log.read_text())[1]
        assert "online-svm" in get(page)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=30) == 0, log.read_text()
    with pytest.raises(urllib.error.URLError):
        get(page)
    lines = logged(log)
    ended = next(line for line in lines if line["event"] == "feeds stopped")
    assert (ended["feeds"], ended["with_snapshot"]) == (3, 2)
    assert f'online_svm_answers_total{{feed="{names[0]}"}} 90.0' in told
    assert f'online_svm_stage{{feed="{names[1]}",stage="answering"}} 1.0' in told
    assert f'online_svm_stage{{feed="{names[2]}",stage="aside"}} 1.0' in told
    assert f'online_svm_lag_entries{{feed="{names[1]}"}} 0.0' in told
    assert f'online_svm_batch_seconds_count{{feed="{feed}-big"}}' in told
    assert f'online_svm_webhook_delivered_total{{feed="{names[1]}"}} 0.0' in told
    assert f'online_svm_webhook_delivered_total{{feed="{names[0]}"}}' not in told
    aside = next(line for line in lines if line["event"] == "feed set aside")
    assert aside["feed"] == names[2]
    assert bad.keys.dlq in aside["reason"]
    assert lines[-1]["event"] == "stopped"
    assert lines[-1]["answered"] == 180
    with Store(embedded_url, f"{feed}.alone") as alone:
        push(alone, rows(90, 0))
        answer_alone(alone, 90, settings(window=80))
        assert contents(alone) == contents(big)
    assert contents(small) != contents(big)
    for store in stores:
        store.close()


def logged(log):
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def get(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("f-*", "g h"), "feed name 'g h'"),
        (("f", "g", "--alarm-url", "ftp://localhost/a"), "setting alarm_url"),
        (("f", "g", "--max-feeds", "1"), "2 feeds are named, and max_feeds is 1"),
        (("f", "g", "--redis", "redis://127.0.0.1:1"), "does not answer"),
    ],
)
def test_what_a_process_of_many_feeds_cannot_do_is_refused_at_once(capsys, arguments, said):
    options = () if "--redis" in arguments else ("--redis", "redis://127.0.0.1:1")
    with pytest.raises(SystemExit) as ended:
        cli.main(["worker", *arguments, *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
