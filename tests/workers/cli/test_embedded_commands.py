"""The embedded server from the command line: who starts it, and how it ends."""

import pytest

from workers.broker import embedded
from workers.broker.embedded_directory import state_directory
from workers.broker.store import Store


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without an embedded server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    embedded.stop(state_directory())


@pytest.fixture
def run(run_command, home):
    """Run a command without an option of Redis."""
    return run_command


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("u,v,y\n1,2,a\n3,4,b\n")
    return str(path)


LOOKING = [
    ("status", "f"), ("status", "--check"), ("tail", "f"), ("export", "f"), ("verify", "f"),
    ("check", "f"), ("fork", "f"), ("reset", "f", "--yes"), ("backup", "f", "/dev/null"),
    ("backtest", "f"),
]  # fmt: skip


@pytest.mark.parametrize("command", LOOKING, ids="-".join)
def test_a_command_that_needs_a_feed_starts_no_server_and_says_what_does(run, home, command):
    code, out, err = run(*command)
    would = "f: no such file or data set, so it would be a feed; " * (command[0] == "backtest")
    gone = f"online-svm: {would}no embedded Redis runs in {home}/online-svm: online-svm "
    assert (code, out, err[: len(gone)], err.count("\n")) == (2, "", gone, 1)
    assert "worker FEED, or online-svm push FEED SOURCE, starts it" in err
    assert not (home / "online-svm").exists()


def test_an_empty_machine_has_no_feeds_and_nothing_to_stop(run, home):
    none = f"no embedded Redis runs in {home}/online-svm"
    code, out, err = run("status")
    assert (code, out.startswith(f"no feeds: {none}"), err) == (0, True, "")
    code, out, err = run("status", "--json")
    assert (code, out, err.startswith(f"no feeds: {none}")) == (0, "", True)
    assert run("redis", "stop")[:2] == (0, f"{none}\n")
    assert not (home / "online-svm").exists()


def test_push_starts_the_server_which_stays_until_redis_stop(run, home, source):
    code, _, err = run("push", "f", source, "--label", "y")
    assert code == 0
    assert "embedded Redis started" in err
    code, out, err = run("status", "f")
    assert code == 0
    assert "waiting    2" in out
    assert "embedded Redis started" not in err
    assert "its data: " in run("redis", "status")[1]
    assert run("redis", "stop")[:2] == (
        0, f"embedded Redis stopped; its data stays in {home}/online-svm\n",
    )  # fmt: skip
    assert embedded.running() is None
    gone = f"no embedded Redis runs in {home}/online-svm; its data is there\n"
    assert run("redis", "stop")[:2] == (0, gone)
    assert run("redis", "status")[:2] == (0, gone)
    assert "where its data is" in run("status")[1]
    assert run("push", "f", source, "--label", "y")[0] == 0
    with Store(embedded.running().url, "f") as store:
        assert store.length(store.keys.input) == 4


def test_redis_stop_ends_a_server_whose_socket_was_removed(run, home, source, monkeypatch):
    monkeypatch.setattr(embedded, "_LISTEN_SECONDS", 0.5)
    run("push", "f", source, "--label", "y")
    (home / "online-svm" / "redis.sock").unlink()
    code, _, err = run("status", "f")
    assert code == 2
    assert "its socket is gone: online-svm redis stop" in err
    assert run("redis", "stop")[0] == 0
    assert run("push", "f", source, "--label", "y")[0] == 0
    assert "waiting    4" in run("status", "f")[1]
