"""Feeds that earlier software stored, under semantics still computed, are continued and verified.

Bytes and digests are compared in the environment that the feeds were stored in, anywhere else the
answers to rounding.
"""

import json
from functools import partial
from hashlib import sha256

import pytest
import stored_feeds

from online_svm import semantics
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin import fork as forking
from workers.admin.status import status
from workers.admin.verify import verify, verify_history
from workers.broker.store import Store
from workers.combine import service as combination
from workers.combine.sources import Source
from workers.config.settings import WorkerSettings, load
from workers.engine import snapshots
from workers.engine.answer import process
from workers.engine.assembly import assemble, refitter
from workers.engine.service import open_store, run_preflight
from workers.errors import BadConfiguration, ConfigurationChanged, StateLost
from workers.feed.agreement import environment
from workers.feed.recent_ids import RecentIds
from workers.feed.stored_settings import stored_settings
from workers.stop import Stop

STREAMS = ("out", "met", "dlq")
NEWEST = stored_feeds.NEWEST
STORED = stored_feeds.stored_feeds()
COMBINED = [(directory, name) for directory, name in STORED if name == "combination"]
ANSWERED = [stored for stored in STORED if stored not in COMBINED]
TRIMMED = ("default", "lagging")
KEPT = [(directory, name) for directory, name in ANSWERED if name not in TRIMMED]
each_feed = pytest.mark.parametrize(("directory", "name"), ANSWERED)


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


def needs_its_environment(content):
    """Skip, with the reason, where the bytes of a stored feed are not promised."""
    theirs, ours = json.loads(content["stored"]["st"]["environment"]), environment()
    if theirs != ours:
        pytest.skip(f"bytes are compared only where the feed was stored: {theirs}, here {ours}")


def given(**settings):
    """Return the settings of a worker that is told nothing about the feed."""
    return WorkerSettings(batch=45, keep_input=True, **settings)


def work(url, name, count, settings=None):
    """Let a worker answer the feed up to `count` entries, and leave a snapshot."""
    stop, settings = Stop(), settings or given()
    with open_store(name, settings, url, stop) as store:
        found, used = run_preflight(store, settings)
        with refitter(used, stop) as refits:
            begins = found.state is None
            engine = assemble(store, used, refits, stop, "later", begins=begins)
            while engine.position.seq < count:
                engine.advance()
            engine.snapshot()


def continued(url, directory, name):
    """Load a stored feed and answer the rest of its input; return its content."""
    content = stored_feeds.read(directory, name)
    needs_its_environment(content)
    with Store(url, name) as store:
        stored_feeds.load(store, content)
        stored_feeds.push_later(store, content)
        work(url, name, len(content["entries"]))
    return content


def test_there_is_a_stored_feed_of_each_kind():
    assert set(stored_feeds.KINDS) <= {name for _, name in STORED}


@each_feed
def test_a_stored_feed_is_continued_with_the_bytes_of_its_own_software_and_verified(
    redis_url, directory, name
):
    content = continued(redis_url, directory, name)
    with Store(redis_url, name) as store:
        for stream in STREAMS:
            assert stored_feeds.found(store, stream) == stored_feeds.expected(content, stream)
        position = store.state().position
        assert position.digest.hex() == content["later"]["st"]["digest"]
        assert position.cursor.decode() == content["later"]["st"]["cursor"]
        assert verify(store).is_identical
        whole = verify_history(store, stored_feeds.all_fields(content))
        assert whole.is_identical
        assert whole.answers == len(content["entries"])


@each_feed
def test_a_stored_feed_is_verified_as_it_was_stored(redis_url, directory, name):
    content = stored_feeds.read(directory, name)
    needs_its_environment(content)
    with Store(redis_url, name) as store:
        stored_feeds.load(store, content)
        kept = verify(store)
        assert kept.is_identical
        assert kept.answers > 0
        whole = verify_history(store, stored_feeds.all_fields(content))
        assert whole.is_identical
        assert whole.answers == content["pushed"]


@each_feed
def test_a_stored_feed_gives_the_same_answers_to_rounding_anywhere(redis_url, directory, name):
    content = stored_feeds.read(directory, name)
    with Store(redis_url, name) as store:
        stored_feeds.load(store, content)
        state = store.state()
        out, met = answered_since(store, state, content)
    begun = [entry[0] for entry in stored_feeds.expected(content, "out")]
    answers = stored_feeds.expected(content, "out")[begun.index(state.snapshot.cursor) + 1 :]
    assert len(out) == len(answers)
    for computed, (_, _, payload) in zip(out, answers, strict=True):
        assert json.loads(computed) == close_to(json.loads(payload))
    reports = stored_feeds.expected(content, "met")[-len(met) :]
    for computed, (_, _, payload) in zip(met, reports, strict=True):
        assert json.loads(computed) == close_to(json.loads(payload))


def answered_since(store, state, content):
    """Return what this machine answers and reports from the newest snapshot on."""
    config, limits = stored_settings(store.keys.feed, state.agreement)
    predictor, recent = OnlinePredictor(config), RecentIds(limits.dedupe_window)
    snapshot = snapshots.read(store, state.snapshot, state.agreement.config_hash)
    predictor.restore(recent.restore_from(snapshot.body))
    rest = [stored_feeds.unpacked(entry) for entry in content["entries"]][snapshot.position.seq :]
    entries = [(entry[0], entry[1:]) for entry in rest]
    outcome = process(predictor, limits, snapshot.position, entries, recent)
    return outcome.out, [payload for _, payload in outcome.met]


def close_to(value):
    """Return a value whose numbers compare to rounding, whatever it is made of."""
    if isinstance(value, dict):
        return {name: close_to(part) for name, part in value.items()}
    if isinstance(value, list):
        return [close_to(part) for part in value]
    return pytest.approx(value, rel=1e-6, abs=1e-9) if isinstance(value, float) else value


@pytest.mark.parametrize(("directory", "name"), COMBINED)
def test_a_stored_combination_is_continued_with_the_bytes_of_its_own_software(
    redis_url, directory, name
):
    content = stored_feeds.read(directory, name)
    needs_its_environment(content)
    with Store(redis_url, name) as target:
        stored_feeds.load(target, content)
        for source in content["sources"]:
            continued(redis_url, directory, source)
        combination.run(content["sources"], name, redis_url, once=True)
        for stream in ("out", "dlq"):
            assert stored_feeds.found(target, stream) == stored_feeds.expected(content, stream)
        assert target.state().position.digest.hex() == content["later"]["st"]["digest"]


@pytest.mark.parametrize(("directory", "name"), KEPT)
def test_a_stored_feed_whose_input_is_kept_is_forked_to_the_same_answers(
    redis_url, feed, directory, name
):
    content = stored_feeds.read(directory, name)
    needs_its_environment(content)
    with Store(redis_url, name) as store, Store(redis_url, feed) as fork:
        stored_feeds.load(store, content)
        assert forking.fork(store, fork).total == content["pushed"]
        stored = semantics.completed(json.loads(content["stored"]["st"]["config"]))
        settings = given(**stored["predictor"], **stored["limits"])
        work(redis_url, feed, content["pushed"], settings)
        for stream in STREAMS:
            assert stored_feeds.found(fork, stream) == stored_feeds.found(store, stream)


def restored(store, change, name="dedupe"):
    """Load a stored feed as it would be, had it been begun with another configuration text."""
    content = stored_feeds.read(NEWEST, name)
    needs_its_environment(content)
    stored_feeds.load(store, content)
    state, key = store.state(), store.keys.state
    config_hash = reconfigured(store, change)
    for field, pointer in (("snapshot", state.snapshot), ("previous", state.previous)):
        old = snapshots.read(store, pointer, state.agreement.config_hash)
        pointer, data = snapshots.encode(name, config_hash, old.position, old.body)
        store.call("SET", store.keys.snapshot(pointer.n, pointer.sha256), data)
        store.call("HSET", key, field, pointer.encode())
    return content


def reconfigured(store, change):
    """Change the stored configuration, and return its hash."""
    config = json.loads(store.call("HGET", store.keys.state, "config"))
    change(config)
    return rewritten(store, json.dumps(config))


def rewritten(store, config):
    """Store a text as the configuration, and return its hash."""
    config_hash = sha256(config.encode()).hexdigest()
    store.call("HSET", store.keys.state, "config", config, "config_hash", config_hash)
    return config_hash


@pytest.mark.parametrize("is_told", [False, True])
def test_a_feed_that_was_stored_before_a_setting_existed_is_continued_and_verified(
    redis_url, is_told
):
    def shorten(config):
        del config["predictor"]["mixed_share"], config["predictor"]["folds"]
        del config["limits"]["max_id_chars"]

    with Store(redis_url, "dedupe") as store:
        content = restored(store, shorten)
        config = store.call("HMGET", store.keys.state, "config", "config_hash")
        stored_feeds.push_later(store, content)
        told = {"mixed_share": 0.001, "folds": 5, "window": 80, "dedupe_window": 60}
        work(redis_url, "dedupe", len(content["entries"]), given(**told if is_told else {}))
        assert store.state().position.digest.hex() == content["later"]["st"]["digest"]
        assert verify(store).is_identical
        # Its snapshots are found by the hash of what was stored, which stays.
        assert store.call("HMGET", store.keys.state, "config", "config_hash") == config


def test_a_setting_that_is_added_means_what_was_done_before_it(redis_url, monkeypatch):
    """`split` as if it were new: feeds had used the oldest, and new ones get another default."""
    assert WorkerSettings().split == "interleaved"
    monkeypatch.setitem(semantics.DEFAULTS[semantics.SEMANTICS]["predictor"], "split", "oldest")
    with Store(redis_url, "dedupe") as store:
        content = restored(store, lambda config: config["predictor"].pop("split"))
        stored_feeds.push_later(store, content)
        with pytest.raises(ConfigurationChanged, match=r"split: feed 'oldest', here 'interleaved'"):
            run_preflight(store, given(split="interleaved"))
        _, used = run_preflight(store, given())
        assert used.predictor.split == "oldest"
        work(redis_url, "dedupe", len(content["entries"]))
        assert store.state().position.digest.hex() == content["later"]["st"]["digest"]
        assert verify_history(store, stored_feeds.all_fields(content)).is_identical


def test_only_what_is_given_and_differs_is_refused_with_the_options_that_fit(redis_url):
    with Store(redis_url, "psvm") as store:
        stored_feeds.load(store, stored_feeds.read(NEWEST, "psvm"))
        before = store.call("HGETALL", store.keys.state)
        told = given(learner="psvm", window=80, eta=0.2, missing="reject")
        with pytest.raises(ConfigurationChanged) as refused:
            run_preflight(store, told)
        told = str(refused.value)
        assert "another configuration: eta: feed 0.1, here 0.2; missing: feed 'mean', here " in told
        assert "Use the stored one (--eta 0.1 --missing mean), or: online-svm fork psvm" in told
        assert "online-svm reset psvm" in told
        assert store.call("HGETALL", store.keys.state) == before


def test_options_that_only_work_with_the_stored_settings_are_taken(redis_url):
    """Without the classes that are stored, this learner would be refused."""
    with Store(redis_url, "psvm") as store:
        stored_feeds.load(store, stored_feeds.read(NEWEST, "psvm"))
        told = load({"learner": "psvm", "taxonomy": "margin"}, is_whole=False)
        _, used = run_preflight(store, told, accept_environment=True)
        assert used.predictor.classes == ("a", "b")


def test_options_that_cannot_work_are_refused_for_a_new_feed(store):
    with pytest.raises(BadConfiguration, match="declare two"):
        run_preflight(store, load({"learner": "psvm"}, is_whole=False))
    assert store.types() == {}


def numbered(number):
    def change(config):
        config["predictor"]["semantics"] = number

    return change


def unreadable(config):
    config["predictor"]["max_classes"] = 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (numbered(9), "semantics 9 is not known here (known: 2): upgrade online-svm"),
        (unreadable, "setting max_classes is not known here: upgrade online-svm"),
    ],
)
def test_a_feed_of_newer_software_is_refused_in_one_line_by_all_that_compute(
    redis_url, change, said
):
    with Store(redis_url, "dedupe") as store:
        restored(store, change)
        before = store.call("HGETALL", store.keys.state)
        for refuses in (
            lambda: run_preflight(store, given()),
            lambda: verify(store),
            lambda: Source(store),
        ):
            with pytest.raises(BadConfiguration) as refused:
                refuses()
            told = str(refused.value)
            assert f"feed 'dedupe': {said}, or: online-svm fork dedupe --to NEW" in told
            assert "\n" not in told
        assert store.call("HGETALL", store.keys.state) == before
        assert status(store).seq == 190  # it can still be looked at


def test_a_configuration_that_is_no_configuration_is_named_as_damaged(redis_url):
    with Store(redis_url, "dedupe") as store:
        stored_feeds.load(store, stored_feeds.read(NEWEST, "dedupe"))
        rewritten(store, '{"predictor": 3}')
        with pytest.raises(StateLost, match="feed 'dedupe': its configuration is damaged"):
            run_preflight(store, given())
        rewritten(store, '{"predictor": {"semantics": {}}, "limits": {}}')
        with pytest.raises(BadConfiguration, match=r"feed 'dedupe': semantics \{\} is not known"):
            run_preflight(store, given())


@pytest.mark.parametrize(("directory", "name"), COMBINED)
def test_a_combination_takes_what_it_stored_and_refuses_what_is_given_and_differs(
    redis_url, directory, name
):
    content = stored_feeds.read(directory, name)
    needs_its_environment(content)
    with Store(redis_url, name) as target:
        for source in content["sources"]:
            with Store(redis_url, source) as store:
                stored_feeds.load(store, stored_feeds.read(directory, source))
        stored_feeds.load(target, content)
        before = target.call("HGETALL", target.keys.state)
        run = partial(combination.run, content["sources"], name, redis_url, once=True)
        with pytest.raises(ConfigurationChanged, match=r"join_window: feed 20, here 100\. Use"):
            run(join_window=100)
        with pytest.raises(ConfigurationChanged, match="rule: feed 'dempster', here 'cautious'"):
            run(options={"rule": "cautious"})
        assert target.call("HGETALL", target.keys.state) == before
        reconfigured(target, lambda config: config["combination"].pop("window"))
        run(options={"rule": "dempster"})
        reconfigured(target, lambda config: config["combination"].update(semantics=9))
        with pytest.raises(BadConfiguration, match="feed 'combination': semantics 9 is not known"):
            run()
