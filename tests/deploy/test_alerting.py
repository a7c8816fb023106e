"""Prometheus really scrapes a worker, the shipped rules fire, and the alert reaches a receiver."""

import json
import re
import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import yaml
from alarm_receiver import receiving
from processes import LIMIT, Process, free_port
from system_tools import tool
from world import Worker, wait_until

from workers.broker.store import Store

DEPLOY = Path(__file__).parents[2] / "deploy"
BEFORE, AFTER = 600, 1200
WORKER = ["--classes", "a,b", "--window", "600", "--refit-every", "200", "--committee", "single"]


def run(*command, cwd=None):
    told = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=cwd)
    return told.returncode, told.stdout + told.stderr


def test_each_rule_fires_when_it_should():
    promtool, folder = tool("promtool", "prometheus"), DEPLOY / "prometheus"
    for command in (("check", "config", "prometheus.yml"), ("test", "rules", "rules_test.yml")):
        code, said = run(promtool, *command, cwd=folder)
        assert (code, "SUCCESS" in said) == (0, True), said


def test_each_alert_has_a_test_and_a_severity_that_is_routed():
    rules = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())
    tests = yaml.safe_load((DEPLOY / "prometheus/rules_test.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"] if "alert" in rule]
    fired = {
        case["alertname"]
        for test in tests["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert {rule["alert"] for rule in alerts} == fired
    assert {rule["labels"]["severity"] for rule in alerts} == {"page", "ticket"}


def test_amtool_takes_the_configuration_and_pages_go_to_the_pages():
    amtool = tool("amtool", "prometheus-alertmanager")
    path = str(DEPLOY / "alertmanager/alertmanager.yml")
    code, said = run(amtool, "check-config", path)
    assert code == 0, said
    for severity in ("page", "ticket"):
        routed = ("config", "routes", "test", f"--config.file={path}", f"severity={severity}")
        code, said = run(amtool, *routed)
        assert (code, said.splitlines()[0]) == (0, f"{severity}s")


def got(url):
    with urllib.request.urlopen(url, timeout=LIMIT) as reply:
        return reply.read()


def is_ready(address):
    try:
        return got(f"http://{address}/-/ready")
    except OSError:
        return False


@pytest.fixture
def watched(tmp_path, embedded_url, feed):
    """A worker, Prometheus and Alertmanager with the shipped files, at a quick pace."""
    with ExitStack() as opened:
        received = opened.enter_context(receiving())
        posted = opened.enter_context(receiving())
        store = opened.enter_context(Store(embedded_url, feed))
        more = ("--metrics", 0, "--log-format", "json", "--quiet", "--alarm-url", posted.url)
        command = ("worker", feed, "--redis", embedded_url, *WORKER, *more)
        worker = opened.enter_context(Worker(*command))
        wait_until(lambda: "metrics are served" in worker.said, LIMIT)
        endpoint = re.search(r"http://([0-9.:]+)/metrics", worker.said)[1]
        alertmanager, prometheus = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        _start_alertmanager(opened, tmp_path, alertmanager, received.url)
        _start_prometheus(opened, tmp_path, prometheus, endpoint, alertmanager)
        yield store, received, posted, f"http://{prometheus}"


def _start_alertmanager(opened, folder, address, receiver):
    config = yaml.safe_load((DEPLOY / "alertmanager/alertmanager.yml").read_text())
    for found in config["receivers"]:
        found["webhook_configs"][0]["url"] = receiver
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    program = tool("prometheus-alertmanager", "prometheus-alertmanager")
    _start(
        opened, folder, "alertmanager", program, f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alerts'}", f"--web.listen-address={address}",
        "--cluster.listen-address=",
    )  # fmt: skip
    wait_until(lambda: is_ready(address), LIMIT, "Alertmanager is ready")


def _start_prometheus(opened, folder, address, endpoint, alertmanager):
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    config["global"] = dict.fromkeys(config["global"], "500ms")
    config["rule_files"] = [str(DEPLOY / "prometheus/rules.yml")]
    config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [endpoint]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    _start(
        opened, folder, "prometheus", tool("prometheus", "prometheus"),
        f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address={address}",
    )  # fmt: skip
    wait_until(lambda: is_ready(address), LIMIT, "Prometheus is ready")


def _start(opened, folder, name, *command):
    log = opened.enter_context((folder / f"{name}.log").open("w"))
    opened.enter_context(Process(command, stdout=log, stderr=log, cwd=folder))


def push(store, begin, end, is_drifted):
    """Push examples of two classes; after the drift, the labels are turned round."""
    generator = np.random.default_rng(begin)
    for _ in range(begin, end):
        x = generator.normal(size=2).round(6)
        is_b = x[0] + 0.3 * generator.normal() > 0
        is_b ^= is_drifted
        text = json.dumps(x.tolist())
        store.call("XADD", store.keys.input, "*", "x", text, "y", "b" if is_b else "a")


def value(prometheus, query):
    answer = json.loads(got(f"{prometheus}/api/v1/query?query={quote(query)}"))
    return [float(found["value"][1]) for found in answer["data"]["result"]]


@pytest.mark.timeout(150)
def test_a_drift_is_scraped_fires_the_shipped_rule_and_reaches_the_receiver(watched):
    store, received, posted, prometheus = watched
    push(store, 0, BEFORE, is_drifted=False)
    answers = "online_svm_answers_total"
    wait_until(lambda: value(prometheus, answers) == [BEFORE], LIMIT, pause=0.1)
    assert value(prometheus, "sum(online_svm_alarms_total)") == [0.0]
    assert value(prometheus, 'up{job="online-svm"}') == [1.0]
    assert received.requests == []
    push(store, BEFORE, AFTER, is_drifted=True)
    message = received.wait(1, LIMIT)[0]
    labels = message["groupLabels"]
    assert message["status"] == "firing"
    assert labels["alertname"] in ("OnlineSvmCalibrationOff", "OnlineSvmDrift")
    assert labels["feed"] == store.keys.feed
    alarms = store.call("XRANGE", store.keys.alarms, "-", "+")
    first = json.loads(alarms[0][1][1])["alarms"][0]
    assert first["n"] > BEFORE
    assert posted.wait(1, LIMIT)[0]["alarm"] == first
    assert value(prometheus, "online_svm_webhook_delivered_total")
