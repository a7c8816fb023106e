"""A feed keeps the settings it was begun with; one that is given and differs is refused."""

import json
from hashlib import sha256

import numpy as np
import pytest
from session_steps import advance, assembled, refitter

from online_svm.config.semantics import SEMANTICS
from workers.admin.verify import verify
from workers.config.settings import WorkerSettings, load
from workers.errors import BadConfiguration, ConfigurationChanged, StateLost
from workers.reading.status import read_status
from workers.session import preflight
from workers.session.preflight import open_store
from workers.stop import Stop

COUNT = 60
SHORT = {"classes": ("a", "b"), "window": 40, "refit_every": 20, "committee": "single"}
PSVM = SHORT | {"learner": "psvm", "missing": "mean", "committee": None}


@pytest.fixture(scope="module")
def redis_url(embedded_url):
    """One server is enough: what differs between servers is below the store."""
    return embedded_url


def begin(store, options):
    """Let a worker begin the feed of a store with these settings, and answer `COUNT` entries."""
    name, stop, given = store.keys.feed, Stop(), WorkerSettings(keep_input=True, **options)
    X = np.random.default_rng(0).normal(size=(COUNT, 2)).round(4)
    for i, x in enumerate(X.tolist()):
        fields = ("x", json.dumps(x), "y", "ab"[x[0] > 0], "id", i)
        store.call("XADD", store.keys.input, f"{i + 1}-0", *fields)
    with open_store(name, given, store.url, stop) as worked, refitter(given) as refits:
        session = assembled(worked, given, refits, stop, writer="maker")
        while session.position.seq < COUNT:
            advance(session)
        session.snapshot()


@pytest.fixture
def psvm(store):
    """The store of a feed that was begun with `PSVM`."""
    begin(store, PSVM)
    return store


def given(**settings):
    return WorkerSettings(keep_input=True, **settings)


def rewritten(store, config):
    """Store a text as the configuration."""
    hashed = sha256(config.encode()).hexdigest()
    store.call("HSET", store.keys.state, "config", config, "config_hash", hashed)


def reconfigured(store, change):
    """Change the stored configuration."""
    config = json.loads(store.call("HGET", store.keys.state, "config"))
    change(config)
    rewritten(store, json.dumps(config))


def test_only_what_is_given_and_differs_is_refused_with_the_options_that_fit(psvm, feed):
    before = psvm.call("HGETALL", psvm.keys.state)
    differs = {"classes": ("b", "a"), "missing": "reject", "max_features": 7, "interval_level": 0.5}
    with pytest.raises(ConfigurationChanged) as refused:
        preflight.run(psvm, given(learner="psvm", window=40, **differs))
    told = str(refused.value)
    assert "classes: feed ['a', 'b'], here ['b', 'a']; interval_level: feed 0.9, " in told
    assert "; missing: feed 'mean', here 'reject'. Use the stored one (--classes a,b --int" in told
    assert f" --missing mean), or: online-svm fork {feed} --to NEW (" in told
    assert f"online-svm reset {feed}" in told
    with pytest.raises(ConfigurationChanged, match="another configuration: max_features: feed "):
        preflight.run(psvm, given(max_features=7))
    assert psvm.call("HGETALL", psvm.keys.state) == before


def test_options_that_only_work_with_the_stored_settings_are_taken(psvm):
    """Without the classes that are stored, this learner would be refused."""
    told = load({"learner": "psvm", "missing": "mean"}, is_whole=False)
    _, used = preflight.run(psvm, told)
    assert used.predictor.classes == ("a", "b")


def test_options_that_cannot_work_are_refused_for_a_new_feed(store):
    with pytest.raises(BadConfiguration, match="declare two"):
        preflight.run(store, load({"learner": "psvm"}, is_whole=False))
    assert store.types() == {}


def numbered(number):
    def change(config):
        config["predictor"]["semantics"] = number

    return change


def lengthened(config):
    config["predictor"]["novel"] = 5


def shortened(config):
    del config["limits"]["dedupe_window"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            numbered(SEMANTICS + 1),
            f"feed {{!r}}: semantics {SEMANTICS + 1} is not known here ({SEMANTICS} is): upgrade",
        ),
        (lengthened, "feed {!r} was begun by another version, with other settings (novel)"),
        (shortened, "feed {!r} was begun by another version, with other settings (dedupe_window)"),
    ],
    ids=["numbered", "lengthened", "shortened"],
)
def test_a_feed_of_another_version_is_refused_in_one_line_by_all_that_compute(
    store, feed, change, said
):
    begin(store, SHORT)
    reconfigured(store, change)
    before = store.call("HGETALL", store.keys.state)
    for refuses in (
        lambda: preflight.run(store, given()),
        lambda: verify(store),
    ):
        with pytest.raises(BadConfiguration) as refused:
            refuses()
        told = str(refused.value)
        assert said.format(feed) in told
        assert f"or: online-svm fork {feed} --to NEW" in told
        assert "\n" not in told
    assert store.call("HGETALL", store.keys.state) == before
    assert read_status(store).seq == COUNT  # it can still be looked at


@pytest.mark.parametrize("config", ['{"predictor": 3}', '{"limits": []}', "[]", "{"])
def test_a_configuration_that_is_no_configuration_is_named_as_damaged(store, feed, config):
    begin(store, SHORT)
    rewritten(store, config)
    with pytest.raises(StateLost, match=f"{feed}.* is damaged"):
        preflight.run(store, given())


def test_a_number_that_is_none_is_not_known(store, feed):
    begin(store, SHORT)
    rewritten(store, '{"predictor": {"semantics": {}}, "limits": {}}')
    with pytest.raises(BadConfiguration, match=rf"feed '{feed}': semantics \{{\}} is not known"):
        preflight.run(store, given())
