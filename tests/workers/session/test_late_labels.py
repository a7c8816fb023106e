"""A feed whose labels come late: what each entry is answered."""

import json

import numpy as np
import pytest
from pure_replay import replay
from world import drain, push, session

from online_svm.config import PredictorConfig
from online_svm.rejections import reason_of
from workers.cli.stream_text import line
from workers.config.settings import Limits
from workers.offline.answer_table import flat as table_row
from workers.offline.backtest.prequential import HEADLINE, Configuration
from workers.offline.backtest.prequential import answer as backtested
from workers.reading.facts import facts
from workers.reading.status import FeedStatus

SMALL = {
    "classes": ["a", "b"], "committee": "single", "kernel": "linear", "window": 40,
    "refit_every": 20, "metrics_every": 15, "monitors": "off", "horizon": 10,
}  # fmt: skip


def settings(**changes):
    return PredictorConfig.model_validate(SMALL | changes)


def history(n=260, seed=0):
    """Return entries of a feed whose labels come up to 20 examples late, some never, some twice."""
    rng = np.random.default_rng(seed)
    due, entries = {}, []
    for i in range(n):
        x = rng.normal(size=2).round(6)
        label = "b" if x[0] + rng.normal() > 0 else "a"
        if rng.random() < 0.3:
            entries.append({"x": json.dumps(x.tolist()), "id": str(i), "y": label})
        else:
            entries.append({"x": json.dumps(x.tolist()), "id": str(i)})
            if rng.random() < 0.9:
                due.setdefault(i + int(rng.integers(0, 20)), []).append((str(i), label))
        for id, label in due.pop(i, []):
            entries.append({"for": id, "y": label})
            if rng.random() < 0.1:
                entries.append({"for": id, "y": str(rng.choice(["a", "b"]))})
        if rng.random() < 0.05:
            entries.append({"for": str(int(rng.integers(2 * i + 1))), "y": "a"})
        if rng.random() < 0.03:
            entries.append({"x": "[1]", "id": "bad"})
    return entries


def flat(entries):
    return [[part.encode() for pair in entry.items() for part in pair] for entry in entries]


def answered(entries, config=None, size=None, limits=None):
    """Return the outcomes of entries in batches of `size`, and who made them."""
    found = [*replay(config or settings(), flat(entries), limits, size)]
    return [outcome for outcome, _ in found], found[-1][1]


def messages(outcomes):
    return [json.loads(payload) for outcome in outcomes for payload in outcome.out]


def last(entries, **changes):
    """Return the answer to the last entry."""
    return messages(answered(entries, settings(**changes))[0])[-1]


def example(i, **fields):
    return {"x": json.dumps([(i % 7) - 3.0, 1.0]), "id": str(i)} | fields


def test_a_label_entry_is_answered_with_what_was_done():
    said = last([example(0), {"for": "0", "y": "a", "id": "own"}])
    assert said == {
        "v": 2, "status": "label", "id": "own", "seq": 1, "n": 0,
        "example": "0", "label": "a", "done": "accepted",
    }  # fmt: skip


LABEL = {"for": "0", "y": "a"}
JOINED = {"status": "label", "example": "0"}
ANSWERS = {
    "a label that is sent again is repeated": ([LABEL, LABEL], JOINED | {"done": "repeated"}),
    "another label corrects it": ([LABEL, LABEL | {"y": "b"}], JOINED | {"done": "corrected"}),
    "an example sent again with its label": ([example(0, y="a")], JOINED | {"done": "accepted"}),
    "its id with its label": ([{"id": "0", "y": "a"}], JOINED | {"done": "accepted"}),
    "an example sent again while it waits": (
        [example(1), example(0)], {"status": "duplicate", "first": 0},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("entries", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_what_comes_again_is_joined_to_the_example_that_waits(entries, expected):
    said = last([example(0), *entries])
    assert {name: said[name] for name in expected} == expected


REJECTED = {
    "unknown_id": [{"for": "7", "y": "a"}],
    "after_horizon": [*(example(i) for i in range(1, 11)), LABEL],
    "after_window": [LABEL, *(example(i, y="a") for i in range(1, 60)), LABEL | {"y": "b"}],
    "label": [LABEL | {"y": "c"}],
    "label_entry": [LABEL | {"x": "[1, 2]"}],
    "label_entry ": [{"for": "0"}],
    "conflict": [example(0, y="a", x="[9, 9]")],
}


@pytest.mark.parametrize("code", REJECTED)
def test_a_label_that_cannot_be_used_is_rejected_with_its_reason_and_kept_aside(code):
    outcomes, _ = answered([example(0), *REJECTED[code]])
    said = messages(outcomes)[-1]
    assert (said["status"], said["code"]) == ("rejected", code.strip())
    assert outcomes[-1].dlq[-1].code == code.strip()


@pytest.mark.parametrize(
    ("entry", "changes", "told"),
    [(LABEL, {"horizon": 0}, "set horizon"), (example(1, time="5"), {}, "set horizon to a time")],
)
def test_a_feed_that_does_not_take_a_field_tells_what_to_set(entry, changes, told):
    said = last([example(0), entry], **changes)
    assert (said["status"], said["code"]) == ("rejected", "unsupported")
    assert told in reason_of(said["about"])


def test_a_bad_label_changes_no_other_answer():
    entries = history()
    bad = [{"for": "nobody", "y": "a"}, {"for": "3"}, {"for": "3", "y": "z"}]
    mixed = [entry for i, e in enumerate(entries) for entry in (e, *bad[: (i % 9 == 0) * 3])]
    plain = [m for m in messages(answered(entries)[0]) if m["status"] != "rejected"]
    beside = [m for m in messages(answered(mixed)[0]) if m["status"] != "rejected"]
    assert [m | {"seq": 0} for m in beside] == [m | {"seq": 0} for m in plain]


def test_a_report_says_what_became_of_the_labels():
    outcomes, predictor = answered(history())
    reports = [json.loads(payload) for _, payload in outcomes[0].met]
    labels = reports[-1]["labels"]
    said = messages(outcomes)
    assert labels["counts"]["pending"] == 10  # the horizon
    assert predictor.delayed_labels.counts.late == sum(m.get("done") == "accepted" for m in said)
    assert labels["counts"]["censored"] > 0
    for name in ("accuracy", "brier"):
        bounds = labels[name]
        assert bounds["lower"] <= bounds["estimate"] <= bounds["upper"]
    assert labels["accuracy"]["lower"] <= reports[-1]["headline"]["predicted"]["accuracy"]


def test_of_several_reports_that_one_entry_completes_the_last_is_published():
    changes = {"horizon": "1s", "metrics_every": 5}
    entries = [example(i, y="ab"[i % 2], time=str(i)) for i in range(30)]
    entries.append(example(30, y="a", time="5000"))
    outcomes, _ = answered(entries, settings(**changes))
    assert [(at, json.loads(payload)["n"]) for at, payload in outcomes[0].met] == [(b"31-0", 30)]


@pytest.mark.parametrize("time", [None, "", "x", "-1", "1.5", "1700000000000000", "1e3"], ids=repr)
def test_an_example_without_a_readable_time_is_rejected_where_the_horizon_counts_it(time):
    entry = example(0, y="a") | ({} if time is None else {"time": time})
    said = last([entry], horizon="1s")
    assert (said["status"], said["code"]) == ("rejected", "time")


def test_a_time_far_ahead_waits_alone():
    entries = [example(i, y="ab"[i % 2], time=str(60_000 * i)) for i in range(200)]
    for wrong in (3, 50, 120):
        entries[wrong]["time"] = "4102444800000"
    _, predictor = answered(entries, settings(horizon="1h"))
    late = predictor.delayed_labels
    assert (predictor.n, late.ahead, late.counts.ahead, late.open_for) == (137, 3, 3, None)


def test_time_that_runs_backwards_counts_as_the_latest_and_is_counted():
    changes = {"horizon": "100ms"}
    entries = [example(0, y="a", time="1000"), example(1, y="b", time="5"), example(2, time="1099")]
    _, predictor = answered(entries, settings(**changes))
    assert predictor.n == 0  # the second did not happen at 5, else it were due
    assert predictor.delayed_labels.counts.backwards == 1
    _, predictor = answered([*entries, example(3, time="1100")], settings(**changes))
    assert predictor.n == 2
    turned = [example(0, y="a", time="1000"), example(1, y="b", time="1090"), example(2, time="5")]
    _, predictor = answered([*turned, example(3, y="a", time="1100")], settings(**changes))
    waiting = [pending.time for pending in predictor.delayed_labels.examples()]
    # The third did not happen at 5, either.
    assert (predictor.n, waiting) == (1, [1090, 1090, 1100])


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


BUDGET = {"label_budget": 0.2, "monitors": "default"}


def test_a_person_sees_which_labels_are_wanted():
    entries, config = history(200), settings(**BUDGET)
    ((whole,), _) = answered(entries, config)
    chosen = [p for p in whole.out if b'"ok"' in p and b'"label_wanted":true' in p]
    message = json.loads(chosen[0])
    assert f"label wanted, for {1 / message['label_probability']:.0f} examples" in line(chosen[0])
    row = table_row(message)
    assert (row["label_wanted"], row["label_probability"]) == (True, message["label_probability"])
    report = json.loads(whole.met[-1][1])
    found = facts(FeedStatus(feed="f", report=report))
    (shown,) = [fact.sentence for fact in found if fact.name == "budget"]
    assert f"{report['budget']['wanted']} labels, {report['budget']['labelled']} came" in shown
