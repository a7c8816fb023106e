"""A feed with late labels on a real Redis: input that is kept, and a backtest."""

import json

import pytest
from late_feed import answered, flat, history, settings
from world import drain, push, session

from workers.config.settings import Limits
from workers.offline.backtest.prequential import HEADLINE, Configuration
from workers.offline.backtest.prequential import answer as backtested

LIMITS = Limits(dedupe_window=30)


def test_input_is_kept_of_the_examples_that_wait_beside_the_window(store):
    entries, config = history(260), settings(window=20, horizon=60)
    push(store, flat(entries))
    drain(session(store, 5, config, limits=LIMITS, snapshot_every=10), len(entries))
    first = store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)[0][0]
    examples = [i for i, entry in enumerate(entries) if entry.get("x", "[1]") != "[1]"]
    assert 0 < int(first.split(b"-")[0]) - 1 <= examples[-80]


def test_a_backtest_scores_what_is_learned_late_by_the_answer_it_was_given():
    entries, config = history(200), settings()
    given = [(b"", fields) for fields in flat(entries)]
    batches = [given[i : i + 13] for i in range(0, len(given), 13)]
    found = backtested(Configuration("base", config, LIMITS, {}), batches)
    outcomes, predictor = answered(entries, config, limits=LIMITS)
    last = predictor._engine.scoring._validity.report(predictor.n)
    right = found.methods[HEADLINE].probabilities.argmax(axis=1) == found.truth
    assert (found.n_learned, len(found.truth)) == (predictor.n, last.scored)
    assert right.mean() == pytest.approx(last.headline.predicted.accuracy, rel=1e-12)
    assert found.n_unlabelled == predictor.delayed_labels.counts.censored
    codes = [m["code"] for m in map(json.loads, outcomes[0].out) if m["status"] == "rejected"]
    assert sum(found.rejected.values()) == len(codes)
