"""`online-svm worker --metrics` and `--log-format json`, in a process of its own."""

import json
import os
import socket
import sys
import urllib.request

import pytest
from monitored_feed import COUNT, push
from processes import LIMIT, Process
from world import wait_until

from workers.broker.store import Store

SETTINGS = ["--classes", "a,b", "--window", "60", "--refit-every", "20", "--committee", "single"]


def scraped(address):
    with urllib.request.urlopen(address, timeout=LIMIT) as reply:
        return reply.read().decode()


@pytest.fixture
def manager(tmp_path):
    """A socket in place of that of systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        server.settimeout(LIMIT)
        yield server


def test_systemd_is_told_when_a_worker_answers_and_that_it_stops(embedded_url, feed, manager):
    command = [sys.executable, "-m", "workers.cli", "worker", feed, "--redis", embedded_url]
    environment = os.environ | {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "300000"}
    with Process([*command, *SETTINGS, "--quiet"], stderr=-3, env=environment) as worker:
        told = set()
        wait_until(
            lambda: told.update(manager.recv(4096).decode().splitlines()) or "READY=1" in told
        )
        assert {"STATUS=feeds: the worker is starting", "STATUS=answers", "WATCHDOG=1"} <= told
        worker.terminate()
        assert worker.wait() == 0
        wait_until(
            lambda: told.update(manager.recv(4096).decode().splitlines()) or "STOPPING=1" in told
        )


def test_a_worker_is_scraped_and_every_line_it_logs_is_a_json_object(embedded_url, feed):
    command = [sys.executable, "-m", "workers.cli", "worker", feed, "--redis", embedded_url]
    more = ["--metrics", "0", "--log-format", "json"]
    with Store(embedded_url, feed) as store:
        push(store)
        with Process([*command, *SETTINGS, *more], stderr=-1, text=True) as worker:
            first = json.loads(worker.stderr.readline())
            assert first["event"] == "metrics are served"
            assert first["address"].startswith("http://127.0.0.1:")
            answers = f'online_svm_answers_total{{feed="{feed}"}} {COUNT}.0'
            wait_until(lambda: answers in scraped(first["address"]))
            lag = f'online_svm_lag_entries{{feed="{feed}"}} 0.0'
            wait_until(lambda: lag in scraped(first["address"]))  # it is read twice a second
            worker.terminate()
            _, rest = worker.communicate()
        lines = [json.loads(line) for line in rest.splitlines()]
        assert worker.returncode == 0
        assert {"level", "event", "timestamp"} <= set.intersection(*map(set, lines))
        assert lines[-1]["event"] == "stopped"
        assert (lines[-1]["feed"], lines[-1]["answered"]) == (feed, COUNT)


def test_the_error_that_ends_a_worker_is_a_json_object_too(embedded_url, run_command):
    command = ("worker", "no name", "--redis", embedded_url, "--log-format", "json")
    code, _, said = run_command(*command)
    said = json.loads(said.splitlines()[-1])
    assert (code, said["level"]) == (2, "error")
    assert said["event"].startswith("feed name 'no name'")


def test_an_address_that_is_none_ends_the_command_in_one_line(embedded_url, feed, run_command):
    code, _, said = run_command("worker", feed, "--redis", embedded_url, "--metrics", "nowhere")
    assert code == 2
    assert said.splitlines()[-1].startswith(
        "online-svm: setting metrics: 'nowhere' is no address: write a port"
    )
