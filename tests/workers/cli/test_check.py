"""`check` prints the settings in force, and refuses what `worker` refuses; it writes nothing."""

import json
import os
import socket
import subprocess
import sys
import tomllib

import pytest
from answered_feed import FLAGS, ROWS
from processes import LIMIT

from online_svm.compiled.kernel import LEVELS, LIBRARY
from online_svm.config import PredictorConfig
from workers.broker.store import Store
from workers.config.settings import Limits, WorkerSettings
from workers.feed.pinned_config import pinned_config
from workers.session.preflight import KnownFeeds

REFUSED = [
    *[("alarm_url", url) for url in (
        "", "ftp://x/", "http://", "https://me:secret@h/x", "http://h/x#part", "http://h:x/",
        "http://h/a b", "http://h/\nb", "http://a..b/", f"http://{'a' * 64}.de/",
    )],
    ("alarm_secret_file", "/nothing/there"),
    ("metrics", "here"),
    ("metrics", "no-such-host.invalid:0"),
    ("metrics", "192.0.2.1:9464"),
    ("window", "-1"),
    ("classes", "a,a"),
]  # fmt: skip
"""Settings of which one value cannot be used."""


def said_by(run_command, command, *arguments):
    code, _, err = run_command(command, *arguments)
    return code, [line for line in err.splitlines() if "embedded Redis started" not in line]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_setting_that_a_worker_refuses_is_refused_in_the_same_words(
    run_command, embedded_url, feed, monkeypatch, name, value
):
    monkeypatch.setenv(f"ONLINE_SVM_{name.upper()}", value)
    given = (feed, "--redis", embedded_url)
    told = said_by(run_command, "check", *given)
    assert told[0] == 2
    assert name in " ".join(told[1])
    assert "me:secret" not in " ".join(told[1])
    assert told == said_by(run_command, "worker", *given)


def test_the_section_of_the_feed_in_the_settings_file_is_checked_too(
    run_command, embedded_url, feed, tmp_path
):
    path = tmp_path / "worker.toml"
    path.write_text(f'[feed."{feed}"]\nalarm_url = "ftp://x/"\n')
    given = ("--redis", embedded_url, "--config", path)
    assert run_command("check", feed, *given)[0] == 2
    assert run_command("check", f"{feed}-other", *given)[0] == 0


def test_the_port_of_a_worker_that_runs_is_no_reason_to_refuse(run_command, embedded_url, feed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run_command("check", feed, "--redis", embedded_url, "--metrics", port)
    assert (code, "a worker may begin (a new feed" in err) == (0, True)


@pytest.mark.parametrize(
    ("kind", "named"), [("embedded", "Valkey 9."), ("oldest", "Redis 6.2."), ("system", "Redis 7.")]
)
def test_it_names_the_server_and_its_version(request, run_command, feed, kind, named):
    url = request.getfixturevalue(f"{kind}_url")
    assert f"(a new feed, {named}" in run_command("check", feed, "--redis", url)[2]


def test_a_feed_that_redis_lost_is_told_as_a_worker_tells_it(run_command, own_redis):
    KnownFeeds.of_user(own_redis.url).add("f")
    code, lines = said_by(run_command, "check", "f", "--redis", own_redis.url)
    assert (code, "online-svm reset f" in lines[-1]) == (4, True)
    assert said_by(run_command, "worker", "f", "--redis", own_redis.url) == (code, lines)


def test_it_leaves_nothing_for_later_processes(run_command, own_redis):
    with Store(own_redis.url, "f") as store:
        store.fence("w", pinned_config(PredictorConfig(), Limits()))
    assert run_command("check", "f", "--redis", own_redis.url)[0] == 0
    assert "f" not in KnownFeeds.of_user(own_redis.url)


def test_the_settings_are_shown_as_a_file_that_can_be_read_back(run_command, tmp_path):
    flags = ("--classes", "b,a", "--window", "none", "--class-weight", "a=2,b=1", "--C", "3")
    code, out, _ = run_command("check", *flags)
    path = tmp_path / "settings.toml"
    path.write_text(out)
    shown = json.loads(run_command("check", "--json", *flags)[1])
    read_back = json.loads(run_command("check", "--json", "--config", str(path))[1])
    assert (code, read_back) == (0, shown)
    assert shown["class_weight"] == {"a": 2.0, "b": 1.0}


def test_the_settings_are_shown_with_where_each_comes_from_and_without_the_password(
    run_command, tmp_path, monkeypatch
):
    path = tmp_path / "settings.toml"
    path.write_text("[worker]\nredis = 'redis://me:hunter2@h/0'\nbatch = 8\n")
    monkeypatch.setenv("ONLINE_SVM_CLASSES", "a,b")
    code, out, _ = run_command("check", "--config", path, "--window", "none")
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    assert {
        'redis = "redis://h/0"  # file', 'classes = ["a", "b"]  # environment',
        'window = "none"  # option', 'features = "none"  # default',
    } <= set(lines)  # fmt: skip
    assert (code, len(lines)) == (0, len(WorkerSettings.model_fields))
    shown = "".join(map(str, run_command("check", "--config", path, "--json")))
    assert "redis://h/0" in shown
    assert "hunter2" not in out + shown


def test_the_level_of_the_kernels_and_their_compiler_are_shown():
    level = LEVELS[0]

    def said(*more):
        return subprocess.run(
            [sys.executable, "-m", "workers.cli", "check", *more], check=True, timeout=LIMIT,
            env=os.environ | {"ONLINE_SVM_LEVEL": level}, stdout=subprocess.PIPE, text=True,
        ).stdout  # fmt: skip

    assert said().endswith(f"\n# Compiled kernels: level {level}, by {LIBRARY.compiler}\n")
    shown = json.loads(said("--json"))["compiled"]
    assert shown == {"level": level, "compiler": LIBRARY.compiler}


def test_a_feed_has_the_settings_of_its_section_and_stored_ones(run_command, own_redis, tmp_path):
    with Store(own_redis.url, "f") as store:
        store.fence("w", pinned_config(PredictorConfig(window=60, classes=("a", "b")), Limits()))
    path = tmp_path / "settings.toml"
    path.write_text('[feed."f*"]\nbatch = 8\n')
    given = ("--redis", own_redis.url, "--config", path)
    code, out, err = run_command("check", "f", *given)
    assert (code, err.startswith("feed f: a worker may begin (0 answered")) == (0, True)
    assert "\nbatch = 8  # file\n" in out
    assert "\nwindow = 60  # stored with the feed\n" in out
    assert '\nmetrics = "none"  # default\n' in out
    shown = json.loads(run_command("check", "f", *given, "--json")[1])
    assert {name: tomllib.loads(out)[name] for name in ("window", "batch", "classes")} == {
        name: shown[name] for name in ("window", "batch", "classes")
    }
    assert "\nbatch = 256  # default\n" in run_command("check", *given)[1]


def test_it_says_what_a_worker_would_find(answered, answered_url, run_command):
    def run(*more):
        return run_command("check", answered[0], *more, "--redis", answered_url)

    code, out, err = run(*FLAGS, "--json")
    assert code == 0
    assert f"{ROWS + 1} answered" in err
    assert run("--json") == (0, out, err)  # what is not given is as stored
    code, _, err = run("--refit-every", "250")
    assert code == 2
    assert "refit_every: feed 50, here 250. Use the stored one (--refit-every 50), or: " in err
