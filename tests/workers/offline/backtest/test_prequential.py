"""A history answered in batches is what a loop over single examples gives."""

import numpy as np
import orjson
import pytest
from six_decimals import point

from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from online_svm.stream.validity_report import ValidityReport
from workers.config.settings import WorkerSettings
from workers.feed.position import START
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.prequential import HEADLINE, VENN, answer
from workers.offline.backtest.result import result_of
from workers.push.ingest import encoded
from workers.push.rows import Row
from workers.session.answer import process

MAPS = ("platt", "venn-abers", "mixed")


def configured(**changes):
    (one,) = configurations(WorkerSettings(), {"base": {"maps": list(MAPS), **changes}})
    return one


def examples(n, labels, seed=0, late=None):
    """Rows of two features, a tenth of them without a label; a `late` one comes after half."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        known = labels if late is None or i > n // 2 else labels[:-1]
        y = known[rng.integers(len(known))]
        x = rng.normal(size=2) + labels.index(y)
        rows.append(Row(x.tolist(), None if rng.random() < 0.1 else y))
    return rows


def batches(entries, size):
    fields = [(b"", entry) for entry in entries]
    return [fields[i : i + size] for i in range(0, len(fields), size)]


def loop(configuration, rows):
    """Answer and learn one example after the other; return the scored answers."""
    predictor, answers = OnlinePredictor(configuration.predictor), []
    for row in rows:
        try:
            found = predictor.step(Example(row.x, row.y))
        except InvalidExample:
            continue
        if row.y is not None and found.status == "ok":
            answers.append((found, row.y))
    return answers


def of_class(values, classes, name):
    """The value of a class in one answer; 0 where its model did not know the class."""
    return values[classes.index(name)] if name in classes else 0.0


@pytest.mark.parametrize("size", [1, 7, 256])
@pytest.mark.parametrize("late", [None, "c"])
def test_the_answers_are_those_of_a_loop_over_single_examples(size, late):
    rows = examples(330, ["a", "b", *([late] if late else [])], late=late)
    rows[40] = Row([1.0], "a")  # has too few features: rejected
    configuration = configured(window=120, refit_every=50)
    found = answer(configuration, batches([encoded(row) for row in rows], size))
    expected = loop(configuration, rows)
    assert found.classes == expected[-1][0].classes
    assert found.learned.tolist() == [one.n for one, _ in expected]
    for place, name in enumerate(found.classes):
        headline = found.methods[HEADLINE]
        assert headline.probabilities[:, place].tolist() == [
            of_class(one.probabilities, one.classes, name) for one, _ in expected
        ]
        assert headline.intervals[:, place].tolist() == [
            list(of_class(one.intervals, one.classes, name) or (0.0, 0.0)) for one, _ in expected
        ]
        for method in MAPS:
            assert found.methods[method].probabilities[:, place].tolist() == [
                of_class(one.maps[method], one.classes, name) for one, _ in expected
            ]
        assert found.methods["venn-abers"].intervals[:, place].tolist() == [
            list(of_class(one.map_intervals["venn-abers"], one.classes, name) or (0.0, 0.0))
            for one, _ in expected
        ]
    assert [found.classes[code] for code in found.truth] == [
        label if label in one.classes else None for one, label in expected
    ]
    assert found.rejected == {"dimension": 1}
    assert "1 features" in found.reason


def test_every_entry_is_counted_once():
    rows = examples(200, ["a", "b"])
    rows[50] = Row([1.0], "a")
    found = answer(configured(), batches([encoded(row) for row in rows], 64))
    unlabelled = sum(row.y is None for row in rows)
    assert found.n_entries == 200
    assert found.n_unlabelled == unlabelled
    assert found.n_learned == 200 - 1 - unlabelled
    assert found.n_warming > 0
    assert len(found.truth) + found.n_warming + unlabelled + 1 == 200
    of_one_class = [encoded(Row([float(i), 1.0], "a")) for i in range(40)]
    found = answer(configured(), batches(of_one_class, 16))
    assert (found.n_warming, len(found.truth), found.methods) == (40, 0, {})


def test_repeated_ids_are_not_learned_where_the_configuration_says_so():
    rows = [Row(row.x, row.y, id=str(i // 2)) for i, row in enumerate(examples(120, ["a", "b"]))]
    entries = [encoded(row) for row in rows]
    found = answer(configured(dedupe_window=1000), batches(entries, 16))
    alone = answer(configured(), batches(entries[::2], 16))
    assert (found.n_repeated, found.n_learned) == (60, alone.n_learned)
    ours, theirs = found.methods[HEADLINE], alone.methods[HEADLINE]
    assert np.array_equal(ours.probabilities, theirs.probabilities)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"]])
def test_the_figures_are_those_that_the_feed_itself_reports(labels):
    configuration = configured(classes=labels, metrics_every=10)
    rows = [row for row in examples(400, labels) if row.y is not None][:300]
    predictor = OnlinePredictor(configuration.predictor)
    X = np.array([row.x for row in rows])
    blocks = predictor.step_many(X, [row.y for row in rows])
    report = [block for block in blocks if isinstance(block, ValidityReport)][-1]
    assert report.n == 300
    found = result_of(answer(configuration, batches([encoded(row) for row in rows], 256)))
    assert found.counts.scored == report.scored
    for name, theirs in {HEADLINE: report.headline, VENN: report.venn, **report.maps}.items():
        ours = found.methods[name]
        assert ours.log_loss == pytest.approx(theirs.log_loss, rel=1e-12)
        assert ours.brier == pytest.approx(theirs.brier, rel=1e-12)
        assert ours.accuracy == theirs.predicted.accuracy
        assert ours.clipped == theirs.clipped


def _of_slices(x, y):
    return [b"x", x, b"y", y, b"s", b'{"of":"%s"}' % y]


def test_a_backtest_acts_on_alarms_as_a_worker_does():
    rng = np.random.default_rng(3)
    entries = [
        (b"%d-0" % (i + 1), _of_slices(b"[%.3f]" % rng.normal(), (b"a", b"b")[rng.integers(2)]))
        for i in range(1200)
    ]
    configuration = configured(classes=["a", "b"], on_drift="reset", slices=["of"])
    predictor = OnlinePredictor(configuration.predictor)
    outcome = process(predictor, configuration.limits, START, entries)
    messages = [orjson.loads(payload) for payload in outcome.out]
    expected = [one["probabilities"] for one in messages if one["status"] == "ok"]
    assert any(one["status"] == "warming" for one in messages[20:])  # the model began anew
    found = answer(configuration, [entries])
    told = found.methods[HEADLINE].probabilities.tolist()
    assert [point(exact) for exact in told] == expected
