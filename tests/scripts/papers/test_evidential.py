"""Xu et al. (2016): subsets of the ten classifiers, their scores, and what Table 2 is made of."""

import numpy as np

from scripts.papers.evidential import (
    CLOSE,
    LOGISTIC,
    Partition,
    combined_error,
    rows,
    score_chunks,
    ten_classifiers,
)  # fmt: skip


def partition(n=60):
    random = np.random.default_rng(0)
    y = random.random(2 * n) < 0.5
    X = random.normal(size=(2 * n, 3)) + 1.5 * y[:, None]
    return Partition.of(X[:n], y[:n], X[n:], y[n:])


def test_a_shared_subset_calibrates_on_what_trained_it_and_halves_do_not():
    part = partition()
    shared, halves = (score_chunks(part, [20, 40], halves=h) for h in (False, True))
    assert [len(s.labels) for s in shared] == [20, 40]
    assert [len(s.labels) for s in halves] == [10, 20]
    np.testing.assert_array_equal(halves[1].labels, part.y[40:60])
    assert all(len(s.test) == len(part.y_test) for s in shared + halves)
    part.y[:10] = True  # a subset with one class has no machine
    assert len(score_chunks(part, [10, 50], halves=False)) == 1


def test_combining_informative_classifiers_beats_chance_and_none_calls_all_negative():
    part = partition(n=200)
    scored = score_chunks(part, [60, 80, 60], halves=True)
    for calibrate in LOGISTIC.values():
        assert combined_error(scored, calibrate, part.y_test) < 0.2
        one, two = (combined_error(scored[:1] * k, calibrate, part.y_test) for k in (1, 2))
        assert one == two
    assert combined_error([], LOGISTIC["bayesian"], part.y_test) == np.mean(part.y_test)


def test_a_table_repeats_for_its_seed_and_explains_its_differences(data_set):
    data_set("diabetes")  # or skip
    table, again, other = (ten_classifiers("diabetes", None, 2, seed) for seed in (0, 0, 1))
    assert table == again != other
    printed = rows(table)
    assert len(printed) == 9
    for row in printed:
        assert (row["reason"] is None) == (abs(row["paper"] - row["measured"]) <= CLOSE)
