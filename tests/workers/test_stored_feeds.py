"""Feeds that earlier software stored are continued and verified by this one.

Bytes and digests are compared in the environment that the feeds were stored in, anywhere else the
answers to rounding.
"""

import json

import pytest
import stored_feeds

from online_svm.config import PredictorConfig
from online_svm.predictor import OnlinePredictor
from workers import forking, snapshots
from workers.agreement import environment
from workers.answering import process
from workers.assembly import assemble, refitter
from workers.combine import service as combination
from workers.recent import RecentIds
from workers.service import open_store
from workers.settings import Limits, WorkerSettings
from workers.stopping import Stop
from workers.store import Store
from workers.verify import verify, verify_history

STREAMS = ("out", "met", "dlq")
STORED = stored_feeds.stored_feeds()
COMBINED = [(semantics, name) for semantics, name in STORED if name == "combination"]
ANSWERED = [stored for stored in STORED if stored not in COMBINED]
TRIMMED = ("default", "lagging")
KEPT = [(semantics, name) for semantics, name in ANSWERED if name not in TRIMMED]
each_feed = pytest.mark.parametrize(("semantics", "name"), ANSWERED)


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


def needs_its_environment(content):
    """Skip, with the reason, where the bytes of a stored feed are not promised."""
    theirs, ours = json.loads(content["stored"]["st"]["environment"]), environment()
    if theirs != ours:
        pytest.skip(f"bytes are compared only where the feed was stored: {theirs}, here {ours}")


def settings_of(content):
    """Return the settings that a feed was begun with."""
    stored = json.loads(content["stored"]["st"]["config"])
    return WorkerSettings(**stored["predictor"], **stored["limits"], batch=45, keep_input=True)


def work(url, name, settings, count, begins=False):
    """Let a worker answer the feed up to `count` entries, and leave a snapshot."""
    stop = Stop()
    with open_store(name, settings, url, stop) as store, refitter(settings, stop) as refits:
        engine = assemble(store, settings, refits, stop, "later", begins=begins)
        while engine.position.seq < count:
            engine.turn()
        engine.snapshot()


def continued(url, semantics, name):
    """Load a stored feed and answer the rest of its input; return its content."""
    content = stored_feeds.read(semantics, name)
    needs_its_environment(content)
    with Store(url, name) as store:
        stored_feeds.load(store, content)
        stored_feeds.push_later(store, content)
        work(url, name, settings_of(content), len(content["entries"]))
    return content


def test_there_is_a_stored_feed_of_each_kind():
    kinds = {"default", "lagging", "crossfit", "linear", "psvm", "classes", "dedupe", "combination"}
    assert kinds <= {name for _, name in STORED}


@each_feed
def test_a_stored_feed_is_continued_with_the_bytes_of_its_own_software_and_verified(
    redis_url, semantics, name
):
    content = continued(redis_url, semantics, name)
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
def test_a_stored_feed_is_verified_as_it_was_stored(redis_url, semantics, name):
    content = stored_feeds.read(semantics, name)
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
def test_a_stored_feed_gives_the_same_answers_to_rounding_anywhere(redis_url, semantics, name):
    content = stored_feeds.read(semantics, name)
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
    stored = json.loads(state.agreement.config)
    predictor = OnlinePredictor(PredictorConfig.model_validate(stored["predictor"]))
    limits = Limits.model_validate(stored["limits"])
    recent = RecentIds(limits.dedupe_window)
    snapshot = snapshots.read(store, state.snapshot, state.agreement.config_hash)
    predictor.restore(recent.take(snapshot.body))
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


@pytest.mark.parametrize(("semantics", "name"), COMBINED)
def test_a_stored_combination_is_continued_with_the_bytes_of_its_own_software(
    redis_url, semantics, name
):
    content = stored_feeds.read(semantics, name)
    needs_its_environment(content)
    with Store(redis_url, name) as target:
        stored_feeds.load(target, content)
        for source in content["sources"]:
            continued(redis_url, semantics, source)
        combination.run(content["sources"], name, redis_url, join_window=20, once=True)
        for stream in ("out", "dlq"):
            assert stored_feeds.found(target, stream) == stored_feeds.expected(content, stream)
        assert target.state().position.digest.hex() == content["later"]["st"]["digest"]


@pytest.mark.parametrize(("semantics", "name"), KEPT)
def test_a_stored_feed_whose_input_is_kept_is_forked_to_the_same_answers(
    redis_url, feed, semantics, name
):
    content = stored_feeds.read(semantics, name)
    needs_its_environment(content)
    with Store(redis_url, name) as store, Store(redis_url, feed) as fork:
        stored_feeds.load(store, content)
        assert forking.fork(store, fork).total == content["pushed"]
        work(redis_url, feed, settings_of(content), content["pushed"], begins=True)
        for stream in STREAMS:
            assert stored_feeds.found(fork, stream) == stored_feeds.found(store, stream)
