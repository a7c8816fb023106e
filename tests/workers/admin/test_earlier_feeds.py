"""A feed of earlier semantics: refused in one line, and forked to one that is computed."""

import gzip
import json
from hashlib import sha256
from itertools import chain

import kept_feeds
import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.backup import Backup
from workers.admin.restore import restore
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.config.loading import load
from workers.config.settings import Limits, WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.feed.stored_settings import stored_settings
from workers.session.answer import process

NAME = "dedupe"
"""Of the stored feed, which its snapshots hold."""


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


@pytest.fixture
def content():
    file = kept_feeds.FOLDER / "semantics-2.json.gz"
    return json.loads(gzip.decompress(file.read_bytes()))


@pytest.fixture
def earlier(redis_url, content):
    """The store of the stored feed."""
    with Store(redis_url, NAME) as store:
        stored = content["stored"]
        kept = {
            "in": content["entries"],
            "st": {"hash": [*chain.from_iterable(stored["st"].items())]},
        }
        kept |= {stream: stored[stream] for stream in ("out", "met", "dlq")}
        kept |= {name: {"base64": data} for name, data in stored["snapshots"].items()}
        kept_feeds.restored(store, kept)
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
        ("export", "-"), ("backup", "--out", "OUT"), ("combine", "other", "--into", "both"),
        ("backtest",),
    ],
    ids="".join,
)  # fmt: skip
def test_it_is_refused_in_one_line_that_names_fork(run, earlier, tmp_path, command):
    before = contents(earlier)
    first, *rest = (str(tmp_path / "saved") if part == "OUT" else part for part in command)
    code, out, err = run(first, NAME, *rest)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert (
        f"feed {NAME!r} was begun under semantics 2, which is no longer computed (4, 5 and 6 are)"
        in line
    )
    assert f"online-svm fork {NAME} --to NEW (a new feed with its kept input and today's" in line
    assert f"online-svm reset {NAME}" in line
    assert contents(earlier) == before
    assert not list(tmp_path.iterdir())


def test_a_configuration_from_before_there_was_a_number_is_refused_too(run, earlier):
    reconfigured(earlier, {"predictor": {"window": 60}, "limits": {}})
    code, _, err = run("worker", NAME)
    assert (code, "semantics 1, which is no longer computed" in err) == (2, True), err


@pytest.mark.parametrize("command", ["status", "tail", "verify", "fork", "worker"])
def test_a_combination_is_refused_with_the_sources_to_fork(run, earlier, command):
    reconfigured(
        earlier,
        {
            "combination": {"classes": ["a", "b"], "semantics": 2},
            "join": {"feeds": ["one", "two"], "join_window": 20},
        },
    )
    code, _, err = run(command, NAME)
    way = "online-svm fork each of one, two, and combine the new feeds; or: online-svm reset"
    assert (code, way in err, len(err.splitlines())) == (2, True, 1), err


def test_the_table_shows_the_other_feeds_and_answers_are_printed_as_they_are_stored(
    run, earlier, redis_url, feed, content
):
    with Store(redis_url, feed) as other:
        other.call("XADD", other.keys.input, "*", "x", "[1]")
        other.register()
    code, out, err = run("status")
    assert (code, feed in out) == (0, True)
    assert f"{NAME}: feed '{NAME}' was begun under semantics 2" in err
    code, out, _ = run("tail", NAME, "--raw", "-n", "1")
    assert (code, out.strip()) == (0, content["stored"]["out"][-1][2])


def test_its_backup_is_not_restored(earlier):
    state = earlier.state()
    data = earlier.get_snapshot(state.snapshot)
    backup = Backup(NAME, state.epoch, state.pinned, state.snapshot, data)
    before = contents(earlier)
    with pytest.raises(BadConfiguration, match="online-svm fork"):
        restore(earlier, backup, overwrite=True)
    assert contents(earlier) == before


def test_its_fork_has_the_kept_input_and_todays_defaults_and_says_so(run, earlier, redis_url, feed):
    before = contents(earlier)
    code, out, err = run("fork", NAME, "--to", feed)
    assert (code, out) == (0, f"{feed}\n")
    told = f"{feed!r} has its kept input and today's defaults; {NAME!r} was set to "
    assert told in err
    assert "--dedupe-window 60 --classes a,b " in err
    assert "--feature-map" not in err  # no longer a setting
    assert contents(earlier) == before
    with Store(redis_url, feed) as fork:
        assert contents(fork)[0] == before[0]
        used = kept_feeds.answer(redis_url, feed, WorkerSettings(batch=45))
        stored = stored_settings(feed, fork.state().pinned)
        assert stored == (PredictorConfig(), Limits()) == (used.predictor, used.limits)
        # The answers are those of a new predictor over the kept input.
        entries = contents(fork)[0]
        alone = process(
            OnlinePredictor(used.predictor), used.limits, Position(), entries, RecentIds(0)
        )
        assert [fields[-1] for _, fields in contents(fork)[1]] == alone.out
        assert verify(fork).is_identical


def test_the_options_that_it_names_give_the_fork_the_settings_of_before(
    run, earlier, redis_url, feed, tmp_path
):
    theirs = json.loads(earlier.state().pinned.config)
    _, _, err = run("fork", NAME, "--to", feed)
    options = err.partition("was set to ")[2].splitlines()[0].split()
    file = tmp_path / "settings.toml"
    file.write_text('classes = ["a", "b"]\nwindow = 80\n')
    _, _, err = run("fork", NAME, "--to", f"{feed}-2", "--config", file)
    named = [name in err for name in ("--classes", "--window", "--split oldest")]
    assert named == [False, False, True]  # what a file gives is not named
    names = [option.removeprefix("--").replace("-", "_") for option in options[::2]]
    given = load(dict(zip(names, options[1::2], strict=True)))
    ours = kept_feeds.answer(redis_url, feed, given).agreed
    for group, settings in theirs.items():
        for name in settings.keys() & ours[group].keys() - {"semantics"}:
            assert ours[group][name] == settings[name]
