"""A feed whose labels come late: what each entry is answered, whatever the batches."""

import json

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits
from workers.engine.answer import process
from workers.feed.position import START
from workers.feed.recent_ids import RecentIds

SMALL = {
    "classes": ["a", "b"],
    "committee": "single",
    "kernel": "linear",
    "window": 40,
    "refit_every": 20,
    "metrics_every": 15,
    "monitors": "off",
    "horizon": 10,
}


def settings(**changes):
    return PredictorConfig.model_validate(SMALL | changes)


def answered(entries, config=None, size=None, limits=None):
    """Return the outcomes of entries, given as dicts of text, in batches of `size`."""
    config, limits = config or settings(), limits or Limits()
    predictor, recent = OnlinePredictor(config), RecentIds(limits.dedupe_window)
    position, outcomes = START, []
    flat = [[part.encode() for pair in entry.items() for part in pair] for entry in entries]
    size = size or len(flat)
    for begin in range(0, len(flat), size):
        batch = [(b"%d-0" % (i + 1), flat[i]) for i in range(begin, min(begin + size, len(flat)))]
        outcomes.append(process(predictor, limits, position, batch, recent))
        position = outcomes[-1].after
    return outcomes, predictor


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


def test_a_label_that_is_sent_again_is_repeated_and_another_one_corrects_it():
    label = {"for": "0", "y": "a"}
    assert last([example(0), label, label])["done"] == "repeated"
    assert last([example(0), label, {"for": "0", "y": "b"}])["done"] == "corrected"


def test_an_example_sent_again_with_its_label_and_the_same_features_is_its_label():
    for again in (example(0, y="a"), {"id": "0", "y": "a"}):
        said = last([example(0), again])
        assert (said["status"], said["example"], said["done"]) == ("label", "0", "accepted")


def test_an_example_sent_again_with_other_features_is_a_conflict():
    said = last([example(0), example(0, y="a", x="[9, 9]")])
    assert (said["status"], said["code"]) == ("rejected", "conflict")


def test_an_example_sent_again_while_it_waits_is_a_duplicate():
    said = last([example(0), example(1), example(0)])
    assert (said["status"], said["first"]) == ("duplicate", 0)


LABELS = {
    "unknown_id": [example(0), {"for": "7", "y": "a"}],
    "after_horizon": [*(example(i) for i in range(11)), {"for": "0", "y": "a"}],
    "after_window": [*(example(i, y="a") for i in range(60)), {"for": "0", "y": "b"}],
    "label": [example(0), {"for": "0", "y": "c"}],
    "label_entry": [example(0), {"for": "0", "y": "a", "x": "[1, 2]"}],
}


@pytest.mark.parametrize("code", LABELS)
def test_a_label_that_cannot_be_used_is_rejected_with_its_reason_and_kept_aside(code):
    outcomes, _ = answered(LABELS[code])
    said = messages(outcomes)[-1]
    assert (said["status"], said["code"]) == ("rejected", code)
    assert outcomes[-1].dlq[-1].code == code


def test_a_label_entry_without_a_label_is_rejected():
    assert last([example(0), {"for": "0"}])["code"] == "label_entry"


def test_without_a_horizon_a_label_entry_is_told_what_to_set():
    said = last([example(0), {"for": "0", "y": "a"}], horizon=0)
    assert (said["status"], said["code"]) == ("rejected", "unsupported")
    assert "set horizon" in said["reason"]


def test_a_feed_begun_before_late_labels_rejects_them_in_the_words_of_then():
    said = last([example(0), {"for": "0", "y": "a"}], horizon=None)
    assert said["reason"] == (
        "field 'for', the label of an earlier id, is not supported yet; known: x, xb, y, p, id"
    )


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


@pytest.mark.parametrize("changes", [{}, {"maturity": "arrival"}, {"classes": None}])
def test_batches_change_no_byte_of_a_feed_with_late_labels(changes):
    entries, config = history(), settings(**changes)
    limits = Limits(dedupe_window=50, max_classes=2)
    whole, one = answered(entries, config, limits=limits)
    for size in (1, 7, 64):
        parts, other = answered(entries, config, size, limits)
        for name in ("out", "met", "dlq"):
            joined = [payload for part in parts for payload in getattr(part, name)]
            assert joined == getattr(whole[0], name), (size, name)
        assert parts[-1].after == whole[0].after
        assert other.snapshot() == one.snapshot()
    codes = {message.get("code") for message in messages(whole)}
    assert {"unknown_id", "dimension"} <= codes


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
    assert predictor.late.counts.late == sum(m.get("done") == "accepted" for m in said)
    assert labels["counts"]["censored"] > 0
    for name in ("accuracy", "brier"):
        bounds = labels[name]
        assert bounds["lower"] <= bounds["estimate"] <= bounds["upper"]
    assert labels["accuracy"]["lower"] <= reports[-1]["headline"]["predicted"]["accuracy"]


def test_of_several_reports_that_one_entry_completes_the_last_is_published():
    changes = {"horizon_in": "time", "horizon": 1000, "metrics_every": 5}
    entries = [example(i, y="ab"[i % 2], time=str(i)) for i in range(30)]
    entries.append(example(30, y="a", time="5000"))
    outcomes, _ = answered(entries, settings(**changes))
    assert [(at, json.loads(payload)["n"]) for at, payload in outcomes[0].met] == [(b"31-0", 30)]


@pytest.mark.parametrize("time", [None, "", "x", "-1", "1.5", "1700000000000000", "1e3"], ids=repr)
def test_an_example_without_a_readable_time_is_rejected_where_the_horizon_counts_it(time):
    entry = example(0, y="a") | ({} if time is None else {"time": time})
    said = last([entry], horizon_in="time", horizon=1000)
    assert (said["status"], said["code"]) == ("rejected", "time")


def test_time_that_runs_backwards_counts_as_the_latest_and_is_counted():
    changes = {"horizon_in": "time", "horizon": 100}
    entries = [example(0, y="a", time="1000"), example(1, y="b", time="5"), example(2, time="1099")]
    _, predictor = answered(entries, settings(**changes))
    assert predictor.n == 0  # the second did not happen at 5, else it were due
    assert predictor.late.counts.backwards == 1
    _, predictor = answered([*entries, example(3, time="1100")], settings(**changes))
    assert predictor.n == 2


def test_time_without_a_horizon_that_counts_it_is_told_what_to_set():
    said = last([example(0, time="5")])
    assert "set horizon_in to time" in said["reason"]
