"""Feeds of semantics that are no longer computed: refused in one line, and forked to new ones."""

import json
import re
from itertools import chain

import orjson
import pytest
import stored_feeds

from online_svm import semantics
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin import fork as forking
from workers.admin.backup import Backup
from workers.admin.restore import restore
from workers.admin.verify import verify
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.engine.answer import process
from workers.engine.assembly import assemble, refitter
from workers.engine.service import open_store, run_preflight
from workers.errors import BadConfiguration, ConfigurationChanged
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.feed.stored_settings import stored_settings
from workers.stop import Stop

GIVEN_UP = stored_feeds.given_up()
FORKED = [(directory, name) for directory, name in GIVEN_UP if name != "combination"]
SAME = 0.9
"""Share of answers that must be as before: the first ones may begin at another example."""


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


@pytest.fixture
def run(run_command, redis_url):
    """Return a function that runs a command, and returns its code, output and errors."""
    return lambda *arguments: run_command(*arguments, "--redis", redis_url)


def loaded(url, directory, name):
    """Load a stored feed; return its content and its store."""
    content, store = stored_feeds.read(directory, name), Store(url, name)
    stored_feeds.load(store, content)
    return content, store


def contents(store):
    """Return everything of a feed that a command could have changed."""
    streams = ("input", "out", "met", "dlq")
    return [stored_feeds.found(store, stream) for stream in streams] + [
        store.call("HGETALL", store.keys.state), sorted(store.snapshot_keys())
    ]  # fmt: skip


def test_feeds_of_each_kind_are_there():
    assert set(stored_feeds.FIRST) == {name for _, name in GIVEN_UP}


@pytest.mark.parametrize(("directory", "name"), FORKED)
@pytest.mark.parametrize(
    "command",
    [
        ("worker",), ("check",), ("verify",), ("repair",), ("status",), ("tail",), ("export", "-"),
        ("snapshot", "--out", "OUT"), ("combine", "other", "--into", "both"), ("backtest",),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_feed_is_refused_in_one_line_that_names_fork(
    run, redis_url, tmp_path, directory, name, command
):
    _, store = loaded(redis_url, directory, name)
    with store:
        before = contents(store)
        first, *rest = (str(tmp_path / "saved") if part == "OUT" else part for part in command)
        code, out, err = run(first, name, *rest)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        begun = "the software before the first release (semantics 1)"
        assert f"feed {name!r} was begun by {begun}" in line
        assert f"online-svm fork {name} --to NEW (a new feed with its window and settings)" in line
        assert f"online-svm reset {name}" in line
        assert contents(store) == before
    assert not list(tmp_path.iterdir())


def test_a_combination_is_refused_with_the_sources_to_fork(run, redis_url):
    for directory, name in GIVEN_UP:
        if name in ("combination", "crossfit", "linear"):
            loaded(redis_url, directory, name)[1].close()
    way = (
        "online-svm fork each of crossfit, linear, and combine the new feeds; or: online-svm reset"
    )
    for command in (
        ("status", "combination"), ("tail", "combination"), ("verify", "combination"),
        ("fork", "combination"), ("worker", "combination"),
    ):  # fmt: skip
        code, _, err = run(*command)
        assert (code, way in err, len(err.splitlines())) == (2, True, 1), err
    code, _, err = run("combine", "crossfit", "linear", "--into", "combination")
    assert (code, "feed 'crossfit' was begun by" in err) == (2, True)


def test_the_table_of_feeds_shows_the_others(run, redis_url, feed):
    loaded(redis_url, *FORKED[0])[1].close()
    with Store(redis_url, feed) as other:
        other.call("XADD", other.keys.input, "*", "x", "[1]")
        other.register()
    code, out, err = run("status")
    assert code == 0
    assert feed in out
    assert f"{FORKED[0][1]}: feed '{FORKED[0][1]}' was begun by" in err


def test_answers_are_still_printed_as_they_are_stored(run, redis_url):
    content, store = loaded(redis_url, *FORKED[0])
    store.close()
    code, out, _ = run("tail", FORKED[0][1], "--raw", "-n", "1")
    assert (code, out.strip()) == (0, content["stored"]["out"][-1][2])


def test_its_backup_is_not_restored(redis_url):
    _, store = loaded(redis_url, *FORKED[0])
    with store:
        state = store.state()
        data = store.get_snapshot(state.snapshot)
        backup = Backup(store.keys.feed, state.epoch, state.agreement, state.snapshot, data)
        before = contents(store)
        with pytest.raises(BadConfiguration, match="online-svm fork"):
            restore(store, backup, overwrite=True)
        assert contents(store) == before


def work(url, name, count):
    """Let a worker that is told nothing answer a feed up to `count` entries."""
    stop, given = Stop(), WorkerSettings(batch=45, keep_input=True)
    with open_store(name, given, url, stop) as store:
        found, used = run_preflight(store, given)
        with refitter(used, stop) as refits:
            engine = assemble(store, used, refits, stop, "later", begins=found.state is None)
            while engine.position.seq < count:
                engine.advance()
            engine.snapshot()
        return used


@pytest.mark.parametrize(("directory", "name"), FORKED)
def test_a_forked_feed_has_the_window_and_the_settings_and_is_answered_anew(
    run, redis_url, feed, directory, name
):
    content, store = loaded(redis_url, directory, name)
    with store, Store(redis_url, feed) as fork:
        before, kept = contents(store), content["stored"]["kept"]
        code, out, err = run("fork", name, "--to", feed)
        assert (code, out) == (0, f"{feed}\n")
        assert f"it has the settings of {name!r}" in err
        assert contents(store) == before
        assert stored_feeds.found(fork, "input") == stored_feeds.found(store, "input")
        used = work(redis_url, feed, kept)
        # 1. The settings are the stored ones, whole, but for the number.
        theirs = json.loads(content["stored"]["st"]["config"])
        begun = json.loads(fork.state().agreement.config)
        for group in ("predictor", "limits"):
            assert {key: begun[group][key] for key in theirs[group]} == theirs[group]
        assert begun["predictor"]["semantics"] == semantics.SEMANTICS
        # 2. The answers are those of a predictor of these settings over the kept input.
        recent = RecentIds(used.limits.dedupe_window)
        entries = [(entry[0], entry[1:]) for entry in stored_feeds.found(fork, "input")]
        predictor, start = OnlinePredictor(used.predictor), Position()
        alone = process(predictor, used.limits, start, entries, recent)
        assert [entry[-1] for entry in stored_feeds.found(fork, "out")] == alone.out
        assert verify(fork).is_identical
        # 3. What is said of Venn is what was said before, where the whole history is kept.
        if kept == content["pushed"]:
            assert agreement_of(content, stored_feeds.found(fork, "out")) > SAME, agreement_of(
                content, stored_feeds.found(fork, "out")
            )


def agreement_of(content, answers):
    """Return the share of stored answers whose Venn predictor said the same to 1e-3."""
    same = []
    for (_, _, old), (*_, new) in zip(content["stored"]["out"], answers, strict=True):
        then, now = orjson.loads(old), orjson.loads(new)
        if then["status"] != "ok":
            same.append(then["status"] == now["status"])
            continue
        said = now.get("venn") or [[2.0, 2.0]]
        gaps = (abs(a - b) for a, b in zip(flat(then["intervals"]), flat(said), strict=False))
        same.append(max(gaps) < 1e-3)
    return sum(same) / len(same)


def flat(pairs):
    return list(chain.from_iterable(pairs))


def test_what_a_file_gives_is_taken_in_place_of_what_is_stored(run, redis_url, feed, tmp_path):
    content, store = loaded(redis_url, "semantics-1", "dedupe")
    file = tmp_path / "settings.toml"
    file.write_text('[predictor]\nC = 4.0\ntaxonomy = "class-rank"\n')
    with store, Store(redis_url, feed) as fork:
        code, _, _ = run("fork", "dedupe", "--to", feed, "--config", str(file))
        assert code == 0
        config, limits = stored_settings(feed, fork.state().agreement)
        assert (config.C, config.taxonomy, config.split) == (4.0, "class-rank", "oldest")
        assert (config.window, limits.dedupe_window) == (80, 60)
        # Its worker is told nothing, and a different setting is refused as for any feed.
        assert work(redis_url, feed, content["pushed"]).predictor == config
        given = WorkerSettings(C=1.0)
        with pytest.raises(ConfigurationChanged, match=r"C: feed 4\.0, here 1\.0"):
            run_preflight(fork, given)


def test_the_defaults_that_have_changed_since_are_named_with_both_values(
    run, redis_url, feed, tmp_path
):
    _, store = loaded(redis_url, "semantics-1", "classes")
    with store:
        _, _, err = run("fork", "classes", "--to", feed)
        told = next(line for line in err.splitlines() if "it has the settings of" in line)
        before, _, after = told.partition("; ")
        assert "with the defaults of then: " in before
        assert "committee single" in before
        assert "max_classes none" in before
        assert "online-svm fork classes --to OTHER --config FILE with " in after
        assert 'committee = "default"' in after
        # What it names works: the file gives all of it, and nothing else is left to name.
        file = tmp_path / "settings.toml"
        file.write_text("\n".join(re.findall(r"\w+ = (?:\"[^\"]*\"|[\w.]+)", after)))
        code, _, err = run("fork", "classes", "--to", f"{feed}-now", "--config", str(file))
        assert (code, "the defaults of then" in err) == (0, False), err
        with Store(redis_url, f"{feed}-now") as other:
            config, limits = stored_settings(feed, other.state().agreement)
        assert (config.committee, config.taxonomy) == ("default", "class-quantile")
        assert limits.max_classes == 100


def test_settings_that_cannot_work_are_refused_before_anything_is_copied(
    run, redis_url, feed, tmp_path
):
    _, store = loaded(redis_url, "semantics-1", "psvm")
    file = tmp_path / "settings.toml"
    file.write_text('classes = ["a", "b", "c"]\n')
    with store, Store(redis_url, feed) as fork:
        code, _, err = run("fork", "psvm", "--to", feed, "--config", str(file))
        assert code == 2
        assert "psvm" in err
        assert fork.types() == {}


def test_a_copy_that_was_begun_is_continued_until_a_worker_starts_it(redis_url, feed):
    content, store = loaded(redis_url, "semantics-1", "dedupe")
    with store, Store(redis_url, feed) as fork:
        assert forking.fork(store, fork).total == content["pushed"]
        settings = WorkerSettings(window=80)
        forking.begin(fork, settings)
        stored_feeds.push_later(store, content)
        assert forking.fork(store, fork).total == len(content["entries"])
        before = fork.call("HGETALL", fork.keys.state)
        forking.begin(fork, settings)
        assert fork.call("HGETALL", fork.keys.state) == before
        with pytest.raises(ConfigurationChanged, match="window: feed 80, here 90"):
            forking.begin(fork, WorkerSettings(window=90))
        work(redis_url, feed, 10)
        with pytest.raises(BadConfiguration, match="exists and is no half-made copy"):
            forking.fork(store, fork)
