"""Labels that come after their examples: scored by the original answer, learned in event order."""

from contextlib import suppress
from dataclasses import asdict

import numpy as np
import pytest
from predictor_answers import batch_of, follow, late_settings, late_stream, reports, rows

from online_svm.errors import InvalidExample, InvalidInput
from online_svm.predictor.delayed_labels import MAX_EARLY_LABEL_IDS, DelayedLabels, SettledExamples
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import PendingExample
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.input_batch import Example, InputBatch
from online_svm.stream.validity_report import ValidityReport

IDS = [str(i) for i in range(90)]


@pytest.mark.parametrize("maturity", ["horizon", "arrival"])
def test_the_original_answer_is_scored_and_none_that_a_later_model_gave(maturity):
    config = late_settings(maturity=maturity, horizon=25)
    X, labels, events = late_stream(300, np.random.default_rng(5), never=0.0, longest=20)
    events = [event for event in events if event[2] in (None, labels[event[1]])]
    predictor = OnlinePredictor(config)
    answers, _ = follow(predictor, X, events, 50)
    said, report = rows(answers), reports(answers)[-1]
    assert said[-1].guarantee == {"horizon": "exact", "arrival": "approximate"}[maturity]
    learned = list(range(predictor.n))
    if maturity == "arrival":  # in the order in which the labels came
        learned = list(dict.fromkeys(i for _, i, label in events if label is not None))
    scored = [i for i in learned[: report.n] if said[i].status == "ok"]
    assert (report.scored, len({said[i].model for i in scored}) > 5) == (len(scored), True)
    hits = [said[i].label == labels[i] for i in scored]
    assert report.headline.predicted.accuracy == pytest.approx(np.mean(hits), rel=1e-12)
    squares = [
        (said[i].probabilities[said[i].classes.index("b")] - (labels[i] == "b")) ** 2
        for i in scored
    ]
    assert report.headline.brier == pytest.approx(np.mean(squares), rel=1e-12)


def test_labels_that_come_at_once_are_learned_as_late_as_the_others():
    X, labels, _ = late_stream(100, np.random.default_rng(6))
    late, plain = OnlinePredictor(late_settings()), OnlinePredictor(late_settings(horizon=0))
    late.step_many(X, labels)
    plain.step_many(X[:88], labels[:88])
    assert late.n == plain.n == 88
    assert late.active.version == plain.active.version
    # The two learned the same examples, each at its own time: the models are the same bits.
    assert late.active.score(X).tolist() == plain.active.score(X).tolist()


def deviations(streams):
    """Return the mean of 1{y = b} - p^y(b) in each of many streams, p^y that of the true label."""
    config = late_settings(window=None, refit_every=25, refit_lag=0, interval_level=None)
    found = []
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        labels = rng.choice(["a", "b"], size=70, p=[0.6, 0.4])
        X = rng.normal(size=(70, 2)) + (labels == "b")[:, None]
        predictor = OnlinePredictor(config)
        due, events = {}, []
        for i in range(70):
            events.append(("example", i, None))
            due.setdefault(i + int(rng.integers(0, 12)), []).append(i)
            events += [("label", told, labels[told]) for told in due.pop(i, [])]
        answers = rows(predictor.process(batch_of(X, events)).found)
        said = [answer for answer in answers if answer.status == "ok"]
        truth = labels[70 - len(said) :]
        gaps = [
            (y == "b") - answer.venn[1][int(y == "b")]
            for y, answer in zip(truth, said, strict=True)
        ]
        assert {answer.guarantee for answer in said} == {"exact"}
        found.append(np.mean(gaps))
    return np.array(found)


def test_with_every_label_in_time_the_multiprobability_is_calibrated():
    gaps = deviations(150)
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(len(gaps))


def test_the_guarantee_is_approximate_while_a_censored_example_is_in_the_window_and_only_then():
    config = late_settings(window=40, horizon=5, refit_lag=0)
    X, labels, _ = late_stream(200, np.random.default_rng(7))
    predictor = OnlinePredictor(config)
    given = [None if i == 90 else label for i, label in enumerate(labels)]
    said = [predictor.step(Example(X[i], given[i], id=str(i))) for i in range(200)]
    guarantees = [answer.guarantee for answer in said[60:]]
    # It is given up after the answer of 95, and has left the window 40 learned examples later.
    expected = ["exact"] * 36 + ["approximate"] * 40 + ["exact"] * 64
    assert guarantees == expected
    assert "given up without its label" in said[100].reason
    assert predictor.delayed_labels.counts.censored == 1


def test_a_correction_of_what_was_learned_takes_effect_at_the_next_refit():
    config = late_settings(window=40, horizon=1, refit_lag=0)
    rng = np.random.default_rng(8)
    X = rng.choice([-2.0, 2.0], size=(120, 2)) + rng.normal(size=(120, 2)) / 10
    labels = np.where(X[:, 0] > 0, "b", "a").tolist()
    predictor = OnlinePredictor(config)
    for i in range(62):  # 61 are learned, the last refit was after 60
        predictor.step(Example(X[i], labels[i], id=str(i)))
    other = {"a": "b", "b": "a"}
    for i in range(21, 62):
        assert predictor.label(str(i), other[labels[i]]) == "corrected"
    twin = OnlinePredictor(config)
    twin.restore(predictor.snapshot())
    said = []
    for i in range(62, 84):  # the next is after 80
        for one in (predictor, twin):
            answer = one.step(Example(X[i], other[labels[i]], id=str(i)))
        said.append(answer.svm_label == other[labels[i]])
    assert (sum(said[:5]), said[-2:]) == (0, [True, True])
    assert twin.snapshot() == predictor.snapshot()


@pytest.mark.parametrize(
    "changes", [{}, {"committee": "default", "kernel": "rbf"}], ids=["single", "committee"]
)
def test_new_labels_of_corrections_and_examples_keep_their_order_in_any_batch(changes):
    config = late_settings(classes=None, horizon=4, refit_lag=2, **changes)
    X, labels, _ = late_stream(120, np.random.default_rng(14))
    labels[30], labels[36], labels[41] = "e", "d", "f"  # learned beside the correction to "c"
    events = [("example", i, label) for i, label in enumerate(labels)]
    events[40:40] = [("label", 31, "c")]
    one = OnlinePredictor(config)
    expected = follow(one, X, events, 1)
    assert one.labels.labels[2:] == ["e", "c", "d", "f"]
    for size in (7, 121):
        other = OnlinePredictor(config)
        assert follow(other, X, events, size) == expected
        assert other.snapshot() == one.snapshot()


def test_the_guarantee_is_approximate_while_a_corrected_example_is_in_the_window_and_only_then():
    """An example is learned with the label of that moment; it may still be corrected."""
    config = late_settings(window=40, horizon=1, refit_lag=0)
    X, labels, _ = late_stream(140, np.random.default_rng(12))
    predictor, said = OnlinePredictor(config), []
    for i in range(140):
        if i == 80:  # 79 are learned; the 71st, which is number 70, is corrected
            predictor.label("70", "a" if labels[70] == "b" else "b")
            kept = OnlinePredictor(config)
            kept.restore(predictor.snapshot())
            predictor = kept
        said.append(predictor.step(Example(X[i], labels[i], id=str(i))))
    corrected = ["corrected after it was learned" in (answer.reason or "") for answer in said]
    # The example that is answered with n learned sees the window n - 40 ... n - 1.
    in_window = [i >= 80 and answer.n - 40 <= 70 for i, answer in enumerate(said)]
    assert corrected == in_window
    assert {said[i].guarantee for i in range(60, 80)} == {"exact"}
    assert {answer.guarantee for answer in said[112:]} == {"exact"}
    assert {answer.guarantee for answer in said[80:111]} == {"approximate"}


def test_a_label_that_changes_before_it_is_learned_leaves_the_guarantee():
    predictor = OnlinePredictor(late_settings(window=40, horizon=5, refit_lag=0))
    X, labels, _ = late_stream(90, np.random.default_rng(13))
    for i in range(90):
        answer = predictor.step(Example(X[i], labels[i], id=str(i)))
        assert predictor.label(str(i), "b" if labels[i] == "a" else "a") == "corrected"
    assert answer.guarantee == "exact"


def test_another_label_for_what_has_left_the_window_is_rejected():
    predictor = OnlinePredictor(late_settings(window=40, horizon=1))
    X, labels, _ = late_stream(60, np.random.default_rng(9))
    predictor.step_many(X, labels, ids=[str(i) for i in range(60)])
    with pytest.raises(InvalidExample) as error:
        predictor.label("10", "a" if labels[10] == "b" else "b")
    assert error.value.code == "after_window"
    assert predictor.label("10", labels[10]) == "repeated"


def test_a_label_for_an_example_with_a_probability_is_a_conflict():
    predictor = OnlinePredictor(late_settings(learner="psvm", horizon=3))
    predictor.step(Example([0.0, 1.0], p=0.25, id="p"))
    with pytest.raises(InvalidExample) as error:
        predictor.label("p", "a")
    assert error.value.code == "conflict"


def test_an_example_ahead_of_the_clock_is_settled_by_its_own_time():
    config = late_settings(horizon="50ms")
    X, labels, _ = late_stream(60, np.random.default_rng(10))
    ahead = 10**9
    times = [*range(30), ahead, *range(30, 50)]
    predictor = OnlinePredictor(config)
    predictor.process(InputBatch(X[:51], labels[:51], range(51), ids=IDS[:51], times=times))
    assert (predictor.n, predictor.delayed_labels.ahead) == (0, 1)
    restored = OnlinePredictor(config)
    restored.restore(predictor.snapshot())
    for late in (predictor, restored):
        # Four in a row show that the feed slept; the third later one takes the clock there.
        for i in range(51, 55):
            assert (late.n, late.delayed_labels.ahead) == (0, i - 50)
            late.step(Example(X[i], labels[i], id=str(i), time=ahead + 45 + i - 51))
        # The example that was ahead waits for as long as the others of its time.
        assert (late.n, late.delayed_labels.ahead) == (50, 1)
        late.step(Example(X[55], labels[55], id="55", time=ahead + 50))
        assert (late.n, late.delayed_labels.ahead) == (51, 0)
    assert restored.snapshot() == predictor.snapshot()


def test_examples_too_many_to_wait_are_learned_in_order_those_ahead_too():
    config = late_settings(horizon="50ms", max_pending=20)
    predictor = OnlinePredictor(config)
    X, labels, _ = late_stream(90, np.random.default_rng(10))
    times = [i if i % 2 else 10**12 + 10**9 * i for i in range(90)]
    predictor.process(InputBatch(X, labels, range(90), ids=IDS, times=times))
    late = predictor.delayed_labels
    assert (late.counts.pending, late.counts.dropped, predictor.n) == (20, 0, 70)
    assert [one.id for one in late.examples()] == IDS[70:90]


def test_no_more_examples_wait_than_allowed_and_what_falls_out_is_counted():
    config = late_settings(horizon="1000000s", max_pending=20)
    predictor = OnlinePredictor(config)
    X, _, _ = late_stream(90, np.random.default_rng(10))
    predictor.process(InputBatch(X, [None] * 90, range(90), ids=IDS, times=range(90)))
    counts = predictor.delayed_labels.counts
    assert (counts.pending, counts.dropped, predictor.n) == (20, 70, 0)
    assert predictor.delayed_labels.open_for == 89 - 70
    with pytest.raises(InvalidExample) as error:
        predictor.label("60", "a")
    assert error.value.code == "after_horizon"


def test_a_label_that_comes_before_its_example_is_counted_when_that_comes():
    predictor = OnlinePredictor(late_settings())
    with pytest.raises(InvalidExample) as error:
        predictor.label("first", "a")
    assert error.value.code == "unknown_id"
    predictor.step(Example([0.0, 1.0], id="first"))
    assert (predictor.delayed_labels.counts.early, predictor.delayed_labels.counts.unlabelled) == (
        1,
        1,
    )


def test_bounds_hold_what_the_labels_that_are_out_may_do():
    config = late_settings(horizon=30)
    X, labels, _ = late_stream(200, np.random.default_rng(11))
    predictor = OnlinePredictor(config)
    ids = [str(i) for i in range(200)]
    given = [label if i % 3 else None for i, label in enumerate(labels)]
    said = []
    for i in range(200):
        for answer in predictor.step_many(X[i : i + 1], given[i : i + 1], ids=ids[i : i + 1]):
            if isinstance(answer, ValidityReport):
                report, waiting = answer, [j for j in range(i - 29, i + 1) if given[j] is None]
            else:
                said.append(answer.row(0))
        if i >= 15 and given[i - 15] is None:
            predictor.label(ids[i - 15], labels[i - 15])
            given[i - 15] = labels[i - 15]
    labels_, found = report.labels, report.headline
    assert labels_.open == len(waiting)
    total = report.scored + len(waiting)
    hits = found.predicted.accuracy * report.scored
    top = sum(max(said[j].probabilities) for j in waiting)
    wanted = [hits / total, (hits + top) / total, (hits + len(waiting)) / total]
    assert list(asdict(labels_.accuracy).values()) == pytest.approx(wanted, abs=1e-8)
    p = np.array([said[j].probabilities[1] for j in waiting])
    squares = found.brier * report.scored
    parts = [
        np.minimum(p, 1 - p) ** 2,
        p * (1 - p) ** 2 + (1 - p) * p**2,
        np.maximum(p, 1 - p) ** 2,
    ]
    wanted = [(squares + part.sum()) / total for part in parts]
    assert list(asdict(labels_.brier).values()) == pytest.approx(wanted, abs=1e-8)


def test_an_id_that_waits_cannot_be_given_to_another_example():
    predictor = OnlinePredictor(late_settings())
    predictor.step(Example([0.0, 1.0], id="a"))
    before = predictor.snapshot()
    for ids in (["a", "b"], ["c", "c"]):
        with pytest.raises(InvalidInput, match="ids"):
            predictor.step_many(np.zeros((2, 2)), [None, None], ids=ids)
    assert predictor.snapshot() == before


def test_a_label_where_labels_come_with_their_examples_says_what_to_set():
    with pytest.raises(InvalidInput, match="set a horizon"):
        OnlinePredictor(late_settings(horizon=0)).label("a", "a")


@pytest.mark.parametrize("maturity", ["horizon", "arrival"])
def test_the_oldest_example_without_a_label_is_the_first_that_waits_for_one(maturity):
    X, _, events = late_stream(200, np.random.default_rng(8), never=0.2)
    config = ProtocolConfig(horizon=40, maturity=maturity)
    late, seen = DelayedLabels(config), set()
    for position, (kind, i, label) in enumerate(events):
        if kind == "example":
            late.accept(PendingExample(X[i], str(i), label, time=position))
        else:
            with suppress(InvalidExample):
                late.label(str(i), label)
        late.take_steps()
        expected = next((one for one in late.examples() if not one.has_target), None)
        assert late.oldest_open is expected
        seen.add(None if expected is None else expected.number)
    assert len(seen) > 20


def test_ids_of_labels_that_came_too_early_are_kept_up_to_a_bound_oldest_first():
    settled = SettledExamples(most=10)
    for i in range(MAX_EARLY_LABEL_IDS + 1):
        with pytest.raises(InvalidExample, match=f"{i}"):
            settled.relabel(f"{i}", "a", first=0)
    found = [settled.came_after_its_label(f"{i}") for i in range(MAX_EARLY_LABEL_IDS + 1)]
    assert found == [False] + [True] * MAX_EARLY_LABEL_IDS
