"""The combination of several classifiers, against the rules themselves and a batch route."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm import IsotonicMap, PlattScaling
from online_svm.calibration.evidential.masses import (
    belief_plausibility,
    combined_decision,
    dempster_combine,
    from_bounds,
    pignistic,
    plausibility_log_odds,
)
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig

bounds = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


def stream(n, n_sources=3, seed=0):
    """Masses of sources that repeat one another's evidence, and labels drawn from the truth."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 1.5, n)
    labels = ["b" if u < q else "a" for u, q in zip(rng.random(n), p, strict=True)]
    said = np.clip(p + 0.05 * rng.normal(size=(n_sources, n)), 0.03, 0.97)
    return from_bounds(said - 0.02, said + 0.02), labels


def combiner(**changes):
    return Combiner(CombinerConfig(**({"classes": ("a", "b")} | changes)))


@given(st.lists(st.lists(bounds, min_size=3, max_size=3), min_size=1, max_size=8))
def test_an_answer_is_what_the_rule_says_of_the_sources(rows):
    masses = np.array([from_bounds(*np.array(row).T) for row in rows]).swapaxes(0, 1)
    combined, decided = dempster_combine(masses), combined_decision(masses)
    for i, answer in enumerate(combiner().step_many(masses, [None] * len(rows))):
        assert list(answer.mass) == combined[i].tolist()
        assert [answer.belief, answer.plausibility] == belief_plausibility(combined[i]).tolist()
        assert answer.pignistic == answer.probability == pignistic(combined[i])
        assert answer.decision == "ab"[int(decided[i])]
        assert answer.score == plausibility_log_odds(masses)[i]


def test_the_cautious_rule_takes_a_source_without_ignorance_too():
    answer = combiner(rule="cautious").step([[0.75, 0.25, 0.0], [0.5, 0.0, 0.5]])
    assert answer.decision == "b"
    assert 0.0 <= answer.belief <= answer.plausibility <= 1.0


@pytest.mark.parametrize(("name", "made"), [("platt", PlattScaling), ("isotonic", IsotonicMap)])
def test_the_probability_is_that_of_a_map_of_labels_seen_before(name, made):
    masses, labels = stream(260)
    config = {"recalibration": name, "recalibrate_every": 50, "window": 120}
    answers = combiner(**config).step_many(masses, labels)
    scores = plausibility_log_odds(masses)
    positive = np.array(labels) == "b"
    fits = [10, 20, 40, 50, 100, 150, 200, 250]
    for i, answer in enumerate(answers):
        done = [n for n in fits if n <= i]
        assert answer.calibration == len(done)
        assert answer.n == i
        if not done:
            assert answer.probability == answer.pignistic
            continue
        seen = slice(max(done[-1] - 120, 0), done[-1])
        expected = made().fit(scores[seen], positive[seen]).predict(scores[i : i + 1])[0]
        assert answer.probability == expected
        assert answer.fitted_on == min(done[-1], 120)


def test_nothing_is_fitted_before_both_classes_were_seen():
    masses, _ = stream(30)
    answers = combiner().step_many(masses, ["a"] * 30)
    assert {answer.calibration for answer in answers} == {0}
    assert answers[-1].n == 29


@pytest.mark.parametrize("recalibration", ["platt", "isotonic"])
@pytest.mark.parametrize("rule", ["dempster", "cautious"])
def test_parts_and_restores_give_the_answers_of_one_run(rule, recalibration):
    masses, labels = stream(200)
    config = {"rule": rule, "recalibration": recalibration, "window": 60, "recalibrate_every": 30}
    whole = combiner(**config)
    expected = whole.step_many(masses, labels)
    part, found = combiner(**config), []
    for begin in range(0, 200, 37):
        restored = combiner(**config)
        restored.restore(part.snapshot())
        part, end = restored, begin + 37
        found += part.step_many(masses[:, begin:end], labels[begin:end])
    assert found == expected
    assert part.snapshot() == whole.snapshot()


def test_a_snapshot_of_another_configuration_or_a_damaged_one_is_refused():
    whole = combiner()
    whole.step_many(*stream(20))
    data = whole.snapshot()
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        combiner(rule="cautious").restore(data)
    with pytest.raises(InvalidSnapshot):
        combiner().restore(data[: len(data) // 2])
    whole.restore(data)
    assert whole.n == 20


def test_a_label_of_neither_class_is_refused_before_anything_is_learned():
    masses, labels = stream(5)
    made = combiner()
    with pytest.raises(InvalidInput, match="'c' is not one of"):
        made.step_many(masses, [*labels[:4], "c"])
    with pytest.raises(InvalidInput, match="5 examples, but 4 labels"):
        made.step_many(masses, labels[:4])
    assert made.n == 0


def test_total_conflict_has_a_vacuous_mass_and_an_answer_all_the_same():
    answer = combiner().step([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert answer.mass == (0.0, 0.0, 1.0)
    assert (answer.score, answer.decision, answer.probability) == (0.0, "a", 0.5)


def test_classes_are_two_and_sorted_as_labels_are():
    assert CombinerConfig(classes=("10", "9")).classes == ("9", "10")
    with pytest.raises(ValueError, match="twice"):
        CombinerConfig(classes=("a", "a"))
    with pytest.raises(ValueError, match="classes"):
        CombinerConfig(classes=("a", "b", "c"))
