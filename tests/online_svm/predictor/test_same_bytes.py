"""Neither the cuts between batches nor restarts change a byte: what the oracle's feeds lack.

`tests/oracle/test_pure_core.py` asks the same of each mode of a feed. Here are protocols that no
feed has, schedules that need thousands of examples there, promises, and random calls.
"""

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_feeds import late, plain, two_classes
from predictor_answers import flat, restored, rows, stream
from pure_replay import in_batches

from online_svm import config as of_refits
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit.learner import InlineRefitter
from online_svm.stream.input_batch import Example
from workers.config.settings import Limits
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds
from workers.session.answer import process

TWO = {"classes": ("no", "yes")}
QUICK = TWO | {"window": 80, "refit_every": 40, "metrics_every": 20}
EASILY = QUICK | {
    "committee": "single", "window": 100, "refit_every": 50, "alarm_level": 0.5, "tolerance": 0.001,
}  # fmt: skip
VARYING = TWO | {"window": 160, "gamma": 0.5, "metrics_every": 50}
AT_ONCE = {"split": "oldest", "refit_lag": 0, "committee": "single"}
PROMISE = {"promise": {"error": 0.2}}
WORLDS = {
    "late refits": (QUICK | {"refit_lag": 30}, "plain"),
    "oldest, refits at once": (QUICK | AT_ONCE, "plain"),
    "unscaled, discovered, no level": (
        QUICK | {"classes": None, "scale": "none", "interval_level": None}, "plain"
    ),
    "distance that varies": (VARYING, "turns"),
    "distance that varies, drift": (VARYING | {"window": 100, "on_drift": "refit"}, "turns"),
    "classes from corrections": (QUICK | {"horizon": 12, "classes": None}, "late"),
    "few wait": (QUICK | {"horizon": "9s", "max_pending": 9}, "late timed"),
    "arrival, refit after drift": (
        EASILY | {"horizon": 12, "maturity": "arrival", "on_drift": "refit"}, "late turns"
    ),
    "arrival, reset after drift": (
        EASILY | {"horizon": 12, "maturity": "arrival", "on_drift": "reset"}, "late turns"
    ),
    "drift, refit under way": (
        EASILY | {"window": 300, "on_drift": "refit", "refit_lag": 40}, "turns"
    ),
    "drift, no window": (EASILY | {"on_drift": "reset", "window": None}, "turns"),
    "promise": (QUICK | PROMISE, "plain"),
    "promise, late labels": (QUICK | PROMISE | {"horizon": 12}, "late"),
    "promise, drift": (EASILY | PROMISE | {"committee": "default", "on_drift": "reset"}, "turns"),
}  # fmt: skip
"""Settings, and what stream they get, by name."""


def world(name):
    """Return the configuration and the entries of a world, of two classes."""
    given, kind = WORLDS[name]
    rows, turns_at = (330, 130) if "turns" in kind else (260, None)
    examples = two_classes(2, rows, turns_at=turns_at)
    entries = late(examples, 12, 2) if "late" in kind else plain(examples)
    for i, entry in enumerate(entry for entry in entries if "timed" in kind and "x" in entry):
        entry["time"] = str(1000 * i - 700 * (i % 3))
    flat = [[part.encode() for pair in entry.items() for part in pair] for entry in entries]
    named = [(b"%d-0" % (i + 1), fields) for i, fields in enumerate(flat)]
    return ProtocolConfig.model_validate(given), named


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Let refits that vary be 20 apart at least, and do so from the hundredth example on."""
    monkeypatch.setattr(of_refits, "REFIT_EVERY", 20)
    monkeypatch.setattr(of_refits, "EARLY_UNTIL", 100)


def in_parts(config, entries, refitter=None):
    """Answer entries in batches of several sizes, after each fourth from its snapshot.

    Return the outcomes, and the predictor at the end.
    """
    predictor, recent, position = OnlinePredictor(config, refitter), RecentIds(0), START
    outcomes, sizes = [], cycle((1, 1, 30, 7, 1, 64, 1, 19, 3))
    while entries:
        size = next(sizes)
        outcomes.append(process(predictor, Limits(), position, entries[:size], recent))
        position, entries = outcomes[-1].after, entries[size:]
        if len(outcomes) % 4 == 0:
            predictor = restored(predictor)
    return outcomes, predictor


def assert_same(name, refitter=None):
    """Compare the chained digest of answers, reports and alarms, the rejections and the state."""
    config, entries = world(name)
    ((expected, whole),) = in_batches(config, entries)
    outcomes, predictor = in_parts(config, entries, refitter and refitter(config))
    assert outcomes[-1].after.digest == expected.after.digest
    assert [letter for one in outcomes for letter in one.dlq] == expected.dlq
    assert predictor.snapshot() == whole.snapshot()
    return expected


@pytest.mark.parametrize("name", WORLDS)
def test_batches_and_restarts_change_no_byte(name):
    expected = assert_same(name)
    assert bool(expected.alarms) >= ("drift" in name)


@pytest.mark.parametrize("name", ["late refits", "distance that varies"])
def test_a_learner_that_rests_between_refits_changes_no_byte(name):
    assert_same(name, lambda config: InlineRefitter(config, rests=True))


@pytest.mark.parametrize("learner", ["svc", "psvm"])
@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(0, 90), max_size=6),
    kinds=st.lists(st.sampled_from("ypn"), min_size=90, max_size=90),
    n_classes=st.integers(1, 4),
    lag=st.integers(0, 14),
)
def test_any_calls_of_any_stream_give_the_same_answers(learner, cuts, kinds, n_classes, lag):
    """Of labels, of probabilities where the learner takes them, and of examples with neither."""
    schedule = {"window": 30, "refit_every": 15, "refit_lag": lag, "metrics_every": 4}
    takes_p = learner == "psvm"
    given = {"learner": "psvm", "classes": ("c0", "c1"), "features": 3} if takes_p else {}
    X, labels = stream(90, 2 if takes_p else n_classes)
    labels = [label if kind == "y" else None for label, kind in zip(labels, kinds, strict=True)]
    p = np.where(np.array(kinds) == "p", np.linspace(0.0, 1.0, 90), np.nan) if takes_p else None
    config = ProtocolConfig(**schedule | given)
    whole, parts, found = OnlinePredictor(config), OnlinePredictor(config), []
    expected = flat(whole.step_many(X, labels, p))
    for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 90], strict=True):
        found += flat(parts.step_many(X[a:b], labels[a:b], None if p is None else p[a:b]))
    assert found == expected
    assert parts.snapshot() == whole.snapshot()
    single = OnlinePredictor(config)
    examples = [Example(x, y, None if p is None or np.isnan(p[i]) else p[i])
                for i, (x, y) in enumerate(zip(X, labels, strict=True))]  # fmt: skip
    assert [single.step(one) for one in examples] == rows(expected)
