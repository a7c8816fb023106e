import numpy as np
import pytest

from scripts.papers.evidential import (
    CLOSE,
    LOGISTIC,
    Partition,
    Scored,
    chunk_sizes,
    claims,
    combined_error,
    rows,
    score_chunks,
    ten_classifiers,
)


def partition(n=60, seed=0, share=0.5):
    random = np.random.default_rng(seed)
    y = random.random(2 * n) < share
    X = random.normal(size=(2 * n, 3)) + 1.5 * y[:, None]
    return Partition.of(X[:n], y[:n], X[n:], y[n:])


@pytest.mark.parametrize("n", [300, 600])
def test_ten_subsets_share_the_training_part_as_in_figure_12(n):
    for scenario in "abc":
        sizes = chunk_sizes(scenario, n)
        assert len(sizes) == 10
        assert sum(sizes) == n
    small, large = chunk_sizes("b", n)[0], chunk_sizes("b", n)[-1]
    assert large == 5 * small
    assert chunk_sizes("c", n)[:2] == [2 * n // 3, n // 5]


def test_a_shared_subset_calibrates_on_what_trained_it_and_halves_do_not():
    part = partition()
    shared, halves = (score_chunks(part, [20, 40], halves=h) for h in (False, True))
    assert [len(s.labels) for s in shared] == [20, 40]
    assert [len(s.labels) for s in halves] == [10, 20]
    np.testing.assert_array_equal(halves[1].labels, part.y[40:60])
    assert all(len(s.test) == len(part.y_test) for s in shared + halves)


def test_a_subset_with_one_class_has_no_machine():
    part = partition()
    part.y[:10] = True
    assert len(score_chunks(part, [10, 50], halves=False)) == 1
    assert score_chunks(part, [10], halves=True) == []


def test_combining_informative_classifiers_beats_chance_and_none_calls_all_negative():
    part = partition(n=200)
    scored = score_chunks(part, [60, 80, 60], halves=True)
    for calibrate in LOGISTIC.values():
        assert combined_error(scored, calibrate, part.y_test) < 0.2
    assert combined_error([], LOGISTIC["bayesian"], part.y_test) == np.mean(part.y_test)


def test_two_equal_sources_decide_as_one_does():
    random = np.random.default_rng(1)
    scores = random.normal(size=50)
    scored = Scored(scores, scores + random.normal(size=50) > 0, random.normal(size=40))
    y = random.random(40) < 0.5
    for calibrate in LOGISTIC.values():
        one, two = (combined_error([scored] * k, calibrate, y) for k in (1, 2))
        assert one == two


@pytest.fixture(scope="module")
def table_2(data_set):
    data_set("diabetes")  # or skip
    return ten_classifiers("diabetes", None, rounds=4, seed=0)


def test_a_table_repeats_for_its_seed(table_2):
    assert ten_classifiers("diabetes", None, rounds=4, seed=0) == table_2
    assert ten_classifiers("diabetes", None, rounds=4, seed=1) != table_2


def test_every_printed_value_has_its_measurement_and_a_reason_where_they_differ(table_2):
    printed = rows(table_2)
    assert len(printed) == 9
    for row in printed:
        near = abs(row["paper"] - row["measured"]) <= CLOSE
        assert (row["reason"] is None) == near


def test_a_claim_counts_the_settings_where_it_holds():
    setting = {"data": "d", "scenario": "c", "split": "shared", "over_bayesian": -1.0}
    table = [
        setting | {"model": m, "error": e} for m, e in (("likelihood", 3.0), ("bayesian", 2.0))
    ]
    table[0]["over_bayesian"] = 1.0
    result = {c["claim"]: c for c in claims(table, [])}
    unbalanced = result["in scenario (c) the likelihood model beats the Bayesian product"]
    assert (unbalanced["holds"], unbalanced["of"], unbalanced["not_in"]) == (0, 1, ["d, shared"])
