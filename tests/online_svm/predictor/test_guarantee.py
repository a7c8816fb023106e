"""Monitors inside a predictor: alarms among the answers, and what they do to the guarantee."""

import json

import numpy as np
import pytest
from drifting import cheap, inverted
from predictor_answers import alarms, blocks, reports

from online_svm.config import PredictorConfig
from online_svm.predictor.guarantee import StreamMonitors
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import ValidityReport
from workers.message.encode import encode_report

COUNT, FIRST = 900, 500


def guarantees(answers):
    """Return the n from which on each guarantee was given, with it and its reason."""
    found = [(int(block.n[0]), block.guarantee, block.reason) for block in blocks(answers)]
    return [now for was, now in zip([None, *found], found, strict=False)
            if was is None or was[1:] != now[1:]]  # fmt: skip


@pytest.fixture(scope="module")
def drift():
    """Rows, labels of which 500 to 899 are inverted, and the answers to them in one call."""
    X, y = inverted(COUNT, FIRST, COUNT)
    return X, y, OnlinePredictor(cheap()).step_many(X, y)


def test_the_inverted_labels_of_250_in_6000_are_found_within_a_hundred_examples():
    X, y = inverted(6000, 5000, 5250)
    answers = OnlinePredictor(cheap()).step_many(X, y)
    found = alarms(answers)
    assert 5000 < found[0].n <= 5100
    changes = [(n, guarantee) for n, guarantee, _ in guarantees(answers)]
    assert changes[:2] == [(0, "none"), (10, "exact")]
    left = {"exchangeability": "none", "calibration": "approximate"}
    assert changes[2] == (found[0].n, left[found[0].kind])
    assert {alarm.kind for alarm in found} == set(left)
    # Open until the window has left the newest alarm behind: then the model knows none of before.
    closed, guarantee = changes[-1]
    assert guarantee == "exact"
    assert found[-1].n + 400 <= closed <= found[-1].n + 500


def test_an_alarm_comes_after_the_answer_that_raised_it_and_changes_the_next(drift):
    *_, answers = drift
    place = next(i for i, answer in enumerate(answers) if isinstance(answer, Alarm))
    alarm, before, after = answers[place], blocks(answers[:place])[-1], blocks(answers[place:])[0]
    assert int(before.n[-1]) + 1 == alarm.n == int(after.n[0])
    assert (before.guarantee, before.reason) == ("exact", None)
    assert after.guarantee == "approximate"
    assert f"alarm at example {alarm.n}" in str(after.reason)
    assert after.reason.about["n"] == alarm.n


def test_a_report_stands_before_the_alarm_of_its_last_row_and_knows_it(drift):
    X, y, answers = drift
    alarm = alarms(answers)[0]
    config = cheap(metrics_every=alarm.n)
    found = OnlinePredictor(config).step_many(X[: alarm.n], y[: alarm.n])
    assert [type(answer) for answer in found[-3:]] == [PredictionBlock, ValidityReport, Alarm]
    monitors = found[-2].monitors
    assert (monitors.alarms, monitors.open) == (1, (alarm,))
    assert monitors.tests


def test_without_monitors_nothing_but_the_guarantee_and_the_report_differ(drift):
    X, y, answers = drift
    without = OnlinePredictor(cheap(monitors="off")).step_many(X, y)
    assert alarms(without) == []
    assert all(b'"monitors"' not in encode_report(report, 0) for report in reports(without))
    assert guarantees(without)[1:] == [(10, "exact", None)]
    names = ("point", "lower", "upper", "venn_lower", "venn_upper", "scores", "n")
    for name in names:
        mine, theirs = (
            np.concatenate([getattr(block, name) for block in blocks(found, "ok")])
            for found in (answers, without)
        )
        np.testing.assert_array_equal(mine, theirs)


def test_only_an_exchangeability_alarm_leaves_no_guarantee():
    monitors = StreamMonitors(cheap())

    def alarm(n, kind, **figure):
        return Alarm(n, kind, "class", "b", "test", 5.0, 4.0, 100, **figure)

    monitors.open(
        alarm(210, "calibration", estimate=-0.05, lower=-0.09, upper=-0.02, announced=0.9)
    )
    guarantee, reason = monitors.guarantee("exact", None)
    said = "class b: announced 90 of 100, true were 85 (81 to 88), since example 100"
    assert (guarantee, said in str(reason)) == ("approximate", True)
    late, warming = GuaranteeReason("arrival"), GuaranteeReason("warming")
    guarantee, both = monitors.guarantee("approximate", late)
    assert (guarantee, str(both)) == ("approximate", f"{late}; {reason}")
    assert GuaranteeReason.of(json.loads(json.dumps(both.about))) == both
    assert monitors.guarantee("none", warming) == ("none", warming)
    monitors.open(alarm(220, "exchangeability"))
    assert monitors.guarantee("exact", None)[0] == "none"
    monitors.close(since=219)
    assert monitors.guarantee("exact", None)[0] == "none", "the newest is still open"
    monitors.close(since=220)
    assert monitors.guarantee("exact", None) == ("exact", None)


@pytest.mark.parametrize("names", [("amount", "hour"), None])
def test_a_column_that_moves_with_the_clock_is_named_and_no_matter_of_calibration(names):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=1500), np.arange(1500) // 60 % 24])  # a day: 1,440 rows
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=1500) > 0, "b", "a").tolist()
    predictor = OnlinePredictor(cheap(features=names))
    found = alarms(predictor.step_many(X, labels))
    assert {one.kind for one in found} == {"exchangeability"}
    feature = "feature hour" if names else "feature 1"
    assert f"; {feature} has risen by " in found[0].words
    restored = OnlinePredictor(predictor.config)
    restored.restore(predictor.snapshot())
    assert restored.snapshot() == predictor.snapshot()


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ((-0.228, -0.518, 0.061, 0.6), "announced 60 of 100, {} were 37 (8 to 66)"),
        ((0.062, 0.03, 0.094, 0.05), "announced 5.0 of 100, {} were 11.2 (8.0 to 14.4)"),
        ((-0.062, -0.094, -0.03, 0.08), "announced 8.0 of 100, {} were 1.8 (0.0 to 5.0)"),
        ((None, None, None, None), "the probability was off by more than the tolerance"),
    ],
)
def test_an_alarm_compares_what_was_announced_with_what_happened(figures, said):
    parts = ("bin", "0.4-0.6", "bin 0.4-0.6: "), ("class", "b", "class b: "), ("overall", None, "")
    for scope, name, part in parts:
        alarm = Alarm(5040, "calibration", scope, name, "bets", 5.7, 5.3, 4000, *figures)
        part = part if part or None not in figures else "overall: "
        words = said.format("true" if name else "right")
        assert alarm.words == f"{part}{words}, since example 4,000"


def test_the_open_alarms_of_a_feed_that_never_closes_them_stay_as_few_as_its_tests():
    X, y = inverted(3000, 0, 0)
    y = ["ab"[i // 60 % 2] for i in range(3000)]  # the classes take turns
    predictor = OnlinePredictor(cheap(window=None, refit_every=500))
    found = alarms(predictor.step_many(X, y))
    monitors = predictor._engine.scoring._monitors.report()
    assert monitors.alarms == len(found) > len(monitors.open) > 0


def test_examples_in_the_order_of_their_labels_are_not_tested_for_exchangeability():
    X = np.random.default_rng(3).normal(size=(300, 2))
    labels = ["a" if x > 0 else "b" for x in X[:, 0]]
    kinds = []
    for maturity in ("horizon", "arrival"):
        config = PredictorConfig(classes=("a", "b"), horizon=5, maturity=maturity, metrics_every=50)
        predictor = OnlinePredictor(config)
        copy = OnlinePredictor(config)
        made = predictor.step_many(X, labels)
        copy.restore(predictor.snapshot())
        assert copy.snapshot() == predictor.snapshot()
        kinds.append({test["kind"] for test in reports(made)[-1].monitors.tests})
    assert kinds == [{"calibration", "exchangeability"}, {"calibration"}]


def test_answers_name_the_notices_that_are_open_from_the_row_that_opened_them(drift):
    *_, answers = drift
    codes = [block.notices for block in blocks(answers)]
    assert codes[0] == ()
    first = next(block for block in blocks(answers) if block.notices)
    notices = reports(answers)[-1].monitors.notices
    assert FIRST < int(first.n[0]) < FIRST + 150
    assert codes[-1] == tuple(notice.code for notice in notices) != ()


def test_the_last_alarm_ends_notices_of_parts_with_few_rows(drift):
    X, y, _ = drift
    predictor = OnlinePredictor(cheap())
    predictor.step_many(X[:600], y[:600])
    monitors = predictor._engine.scoring._monitors
    before = monitors.notices
    assert {code.partition(":")[0] for code in before} > {"overall"}
    assert monitors.close(10_000)
    left = tuple(code for code in before if code.partition(":")[0] in ("overall", "class"))
    assert monitors.notices == left == tuple(one.code for one in monitors.report().notices)


def test_a_column_that_goes_missing_is_named_in_the_answers_before_a_label_comes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    y = np.where(X[:, 0] + rng.normal(size=700) > 0, "yes", "no")
    predictor = OnlinePredictor(cheap(classes=["no", "yes"]))
    for i, x in enumerate(X.tolist()):
        row = dict(zip(("age", "income", "dti"), x, strict=True))
        if i >= 600 and rng.random() < 0.95:
            row["income"] = None
        answer = predictor.step(Example(row, None if i >= 600 else str(y[i])))
        if answer.notices:
            break
    assert 600 < i < 625
    assert answer.notices == ("feature:income:missing",)


@pytest.mark.parametrize("late", [{}, {"horizon": 30}])
def test_notices_of_features_do_not_depend_on_batches(late):
    """A feature moves at row 400, and from row 500 on no label comes."""
    X, y = inverted(600, 600, 600)
    X[400:, 1] += 3.0
    labels, ids = (
        [None if late else label for label in y[:500]] + [None] * 100,
        list(map(str, range(600))),
    )
    found = []
    for size in (1, 7, 64, 600):
        predictor, codes = OnlinePredictor(cheap(classes=["a", "b"], **late)), []
        for begin in range(0, 600, size):
            part = slice(begin, begin + size)
            answers = predictor.step_many(X[part], labels[part], ids=ids[part])
            codes += [block.notices for block in blocks(answers) for _ in block.n]
        found.append(codes)
    assert found == [found[0]] * 4
    first = next(i for i, codes in enumerate(found[0]) if codes)
    assert 400 < first < 420
    assert found[0][first] == ("feature:1:risen",)
