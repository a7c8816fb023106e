"""A feed whose labels come late: what each entry is answered."""

import json

import pytest
from late_feed import answered, history, settings

from online_svm.rejections import reason_of


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
