"""A feed of earlier semantics: refused in one line, and forked to one that is computed."""

import json
from hashlib import sha256

import pytest
from session_steps import assembled, refitter
from world import drain

from online_svm.config import PredictorConfig
from online_svm.config.semantics import SEMANTICS
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.config.settings import Limits, WorkerSettings, load
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.feed.stored_settings import stored_settings
from workers.session import preflight
from workers.session.answer import process
from workers.session.preflight import open_store
from workers.stop import Stop

NAME, ENTRIES = "earlier", 160
SETTINGS = {
    "classes": "a,b",
    "window": 80,
    "refit_every": 40,
    "split": "oldest",
    "dedupe_window": 60,
}


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


def answer(url, name, given):
    """Let a worker answer all input of a feed, and leave a snapshot; return its settings."""
    stop = Stop()
    with open_store(name, given, url, stop) as store:
        found, used = preflight.run(store, given)
        with refitter(used, stop) as refits:
            session = assembled(store, used, refits, stop, found.state is None, writer="test")
            drain(session, store.length(store.keys.input))
            session.snapshot()
        return used


def numbered(store, number):
    """Give a feed another number of the semantics, and a setting that is no more."""
    config = json.loads(store.state().pinned.config)
    config["predictor"] |= {"semantics": number, "feature_map": "none"}
    reconfigured(store, config)


@pytest.fixture
def earlier(redis_url, capsys):
    """The store of a feed of earlier semantics, answered."""
    with Store(redis_url, NAME) as store:
        for key in store.call("KEYS", f"osvm:{{{NAME}}}:*"):
            store.call("DEL", key)
        for i in range(1, ENTRIES + 1):
            fields = ("x", json.dumps([i % 7, i % 3]), "y", "ab"[i % 7 > 3], "id", f"e{i % 150}")
            store.call("XADD", store.keys.input, f"{i}-0", *fields)
        answer(redis_url, NAME, load(SETTINGS))
        numbered(store, SEMANTICS - 1)
        store.register()
        capsys.readouterr()  # what the worker logged
        yield store


def contents(store):
    """Return everything of a feed that a command could have changed."""
    keys = store.keys
    streams = (keys.input, keys.out, keys.met, keys.dlq)
    return [store.call("XRANGE", stream, "-", "+") for stream in streams] + [
        store.call("HGETALL", keys.state), sorted(store.snapshot_keys())
    ]  # fmt: skip


def reconfigured(store, config):
    """Store other groups of settings as the configuration."""
    text = json.dumps(config)
    hashed = sha256(text.encode()).hexdigest()
    store.call("HSET", store.keys.state, "config", text, "config_hash", hashed)


@pytest.mark.parametrize(
    "command",
    [
        ("worker",), ("check",), ("verify",), ("verify", "--repair"), ("status",), ("tail",),
        ("export", "-"), ("backup", "OUT"), ("backtest",),
    ],
    ids="".join,
)  # fmt: skip
def test_it_is_refused_in_one_line_that_names_fork(run, earlier, tmp_path, command):
    before = contents(earlier)
    first, *rest = (str(tmp_path / "saved") if part == "OUT" else part for part in command)
    code, out, err = run(first, NAME, *rest)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    older = f"semantics {SEMANTICS - 1}, which is no longer computed ({SEMANTICS} is)"
    assert f"feed {NAME!r} was begun under {older}" in line
    assert f"online-svm fork {NAME} --to NEW (a new feed with its kept input and today's" in line
    assert f"online-svm reset {NAME}" in line
    assert contents(earlier) == before
    assert not list(tmp_path.iterdir())


def test_the_table_shows_the_other_feeds_and_answers_are_printed_as_they_are_stored(
    run, earlier, redis_url, feed
):
    with Store(redis_url, feed) as other:
        other.call("XADD", other.keys.input, "*", "x", "[1]")
        other.register()
    code, out, err = run("status")
    assert (code, feed in out) == (0, True)
    assert f"{NAME}: feed '{NAME}' was begun under semantics {SEMANTICS - 1}" in err


def test_its_fork_has_the_kept_input_and_todays_defaults(run, earlier, redis_url, feed):
    before = contents(earlier)
    assert run("fork", NAME, "--to", feed)[:2] == (0, f"{feed}\n")
    assert contents(earlier) == before
    with Store(redis_url, feed) as fork:
        assert contents(fork)[0] == before[0]
        used = answer(redis_url, feed, WorkerSettings(batch=45))
        stored = stored_settings(feed, fork.state().pinned)
        assert stored == (PredictorConfig(), Limits()) == (used.predictor, used.limits)
        # The answers are those of a new predictor over the kept input.
        entries = contents(fork)[0]
        alone = process(
            OnlinePredictor(used.predictor), used.limits, Position(), entries, RecentIds(0)
        )
        assert [fields[-1] for _, fields in contents(fork)[1]] == alone.out
        assert verify(fork).is_identical
