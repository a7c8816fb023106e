"""An example may carry the answer that was given before its label: that one is scored."""

import json

import numpy as np
import pytest
from pure_replay import streams_of

from online_svm.config import PredictorConfig
from online_svm.rejections import reason_of

CONFIG = PredictorConfig(
    classes=("a", "b"), window=200, refit_every=40, metrics_every=20, given_answers=True
)
COUNT = 300


def entries(count=COUNT, seed=2, given=None):
    """Return examples of two noisy classes; `given` returns the answer to one by its number."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=count) > 0, "b", "a")
    found = []
    for i in range(count):
        fields = [b"x", json.dumps(X[i].tolist()).encode(), b"y", str(y[i]).encode()]
        answer = None if given is None else given(i)
        if answer is not None:
            fields += [b"a", answer if isinstance(answer, bytes) else json.dumps(answer).encode()]
        found.append((b"%d-0" % (i + 1), fields))
    return found


def answered(rows, config=CONFIG, batch=64):
    """Return what a feed writes: answers, reports, alarms, rejections."""
    return streams_of(config, rows, batch)


def said(p, width=0.05):
    """Return an answer that gives the second class probability p."""
    intervals = [[max(0.0, q - width), min(1.0, q + width)] for q in (1 - p, p)]
    return {"status": "ok", "classes": ["a", "b"], "probabilities": [1 - p, p],
            "intervals": intervals}  # fmt: skip


def is_same(one, other):
    """Return whether two feeds are equal: a failed comparison would be shown in full."""
    return one == other


def bare(payloads):
    """Return payloads without `seq`, and without what open alarms leave of the guarantee."""
    dropped = ("seq", "guarantee", "reason")
    return [{k: v for k, v in json.loads(p).items() if k not in dropped} for p in payloads]


def last(met):
    return json.loads(met[-1][1])


@pytest.fixture(scope="module")
def plain():
    return answered(entries())


def test_the_own_answers_given_back_change_no_byte(plain):
    own = plain[0]
    rows = entries(given=lambda i: own[i] if b'"status":"ok"' in own[i] else None)
    assert is_same(answered(rows), plain)


def test_reports_score_the_given_answers_and_answers_stay_as_they_are(plain):
    chances = np.random.default_rng(4).uniform(0.1, 0.9, COUNT).round(4)
    out, met, _, dlq = answered(entries(given=lambda i: said(chances[i])))
    assert dlq == []
    assert is_same(bare(out), bare(plain[0]))
    is_second = [fields[3] == b"b" for _, fields in entries()]
    scored = [i for i in range(COUNT) if json.loads(out[i])["status"] == "ok"]
    errors = [(is_second[i] - chances[i]) ** 2 for i in scored]
    right = [is_second[i] == (chances[i] > 0.5) for i in scored]
    report = last(met)
    assert report["scored"] == len(scored)
    assert report["headline"]["brier"] == pytest.approx(np.mean(errors), abs=1e-12)
    assert report["headline"]["predicted"]["accuracy"] == pytest.approx(np.mean(right))
    assert report["headline"]["predicted"]["accuracy"] < 0.6
    own = last(plain[1])
    assert (report["venn"], report["maps"]) == (own["venn"], own["maps"])
    assert report["windowed"] != own["windowed"]


def test_monitors_raise_an_alarm_over_given_answers_that_are_off(plain):
    assert plain[2] == []
    _, _, alarms, _ = answered(entries(given=lambda _i: said(0.95)))
    found = [alarm for _, payload in alarms for alarm in json.loads(payload)["alarms"]]
    assert any(alarm["kind"] == "calibration" for alarm in found)


@pytest.mark.parametrize("on_drift", ["report", "reset"])
def test_any_batches_give_the_same_bytes(on_drift):
    config = CONFIG.model_copy(update={"on_drift": on_drift})
    rows = entries(given=lambda i: said(0.95) if i % 3 else None)
    results = [answered(rows, config, batch) for batch in (1, 7, 64, 300)]
    assert all(is_same(result, results[0]) for result in results)
    assert results[0][2], "no alarm was raised"


HEAD = b'{"status":"ok","classes":["a","b"],'
HOSTILE = {
    "not JSON": b"{",
    "deep": b"[" * 5000,
    "a list": b"[]",
    "a warm-up": b'{"status":"warming"}',
    "no answer": b'{"status":"rejected","code":"label"}',
    "other classes": json.dumps(said(0.5) | {"classes": ["b", "a"]}).encode(),
    "one class more": json.dumps(said(0.5) | {"classes": ["a", "b", "c"]}).encode(),
    "too many": json.dumps(said(0.5) | {"probabilities": [0.5, 0.25, 0.25]}).encode(),
    "no sum": json.dumps(said(0.5) | {"probabilities": [0.5, 0.6]}).encode(),
    "negative": json.dumps(said(0.5) | {"probabilities": [-0.5, 1.5]}).encode(),
    "text": json.dumps(said(0.5) | {"probabilities": ["0.5", "0.5"]}).encode(),
    "true": json.dumps(said(0.5) | {"probabilities": [True, False]}).encode(),
    "NaN": HEAD + b'"probabilities":[NaN,1],"intervals":[[0,1],[0,1]]}',
    "1e999": HEAD + b'"probabilities":[1e999,0],"intervals":[[0,1],[0,1]]}',
    "outside": json.dumps(said(0.5) | {"intervals": [[0.6, 0.7], [0.4, 0.6]]}).encode(),
    "no pairs": json.dumps(said(0.5) | {"intervals": [0.5, 0.5]}).encode(),
    "no intervals": json.dumps({k: v for k, v in said(0.5).items() if k != "intervals"}).encode(),
    "large": json.dumps(said(0.5) | {"reason": "r" * (1 << 18)}).encode(),
}  # fmt: skip


def reason(letter):
    return reason_of(json.loads(letter.why))


def test_hostile_answers_are_rejected_with_their_reason_and_change_nothing_else():
    hostile = dict(zip(range(100, 100 + 2 * len(HOSTILE), 2), HOSTILE.values(), strict=True))
    rows = entries(given=lambda i: hostile.get(i, said(0.7)))
    out, met, alarms, dlq = answered(rows)
    assert [int(letter.id.split(b"-")[0]) - 1 for letter in dlq] == list(hostile)
    for letter, kind in zip(dlq, HOSTILE, strict=True):
        assert letter.code == ("too_large" if kind == "large" else "answer"), (kind, letter.why)
        assert reason(letter).startswith(("a ", "a:"))
    without = answered([row for i, row in enumerate(rows) if i not in hostile])

    kept = [payload for i, payload in enumerate(out) if i not in hostile]
    for ours, theirs in ((kept, without[0]), (met, without[1]), (alarms, without[2])):
        if ours is not kept:
            ours, theirs = ([p for _, p in written] for written in (ours, theirs))
        assert is_same(bare(ours), bare(theirs))


def test_an_answer_without_a_label_is_rejected():
    fields = [b"x", b"[1,2,3]", b"a", json.dumps(said(0.5)).encode()]
    _, _, _, dlq = answered([(b"1-0", fields)])
    assert (dlq[0].code, "label" in reason(dlq[0])) == ("answer", True)


def test_a_feed_that_does_not_ask_for_it_rejects_the_field_as_before():
    config = CONFIG.model_copy(update={"given_answers": False})
    _, _, _, dlq = answered(entries(3, given=lambda _i: said(0.5)), config)
    assert {letter.code for letter in dlq} == {"unknown_field"}
    assert reason(dlq[0]) == "field 'a'; known: x, xb, y, p, id"


@pytest.mark.parametrize("changes", [{"classes": None}, {"horizon": 10}])
def test_settings_that_cannot_go_with_it_are_refused(changes):
    with pytest.raises(ValueError, match="given_answers"):
        PredictorConfig(**{"classes": ("a", "b"), "given_answers": True} | changes)
