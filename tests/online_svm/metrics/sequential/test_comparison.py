"""Which of two predictors loses less: level, power, the weak null, states."""

import numpy as np

from online_svm.metrics.sequential.comparison import ScoreComparison


def test_of_two_that_are_equally_good_neither_is_called_better():
    rng, found = np.random.default_rng(0), 0
    for _ in range(60):
        p = rng.uniform(0.2, 0.8, 600)
        y = rng.random(600) < p
        noise = rng.choice([-0.1, 0.1], 600)
        comparison = ScoreComparison(1.0, 0.1)
        comparison.update((p + noise - y) ** 2, (p - noise - y) ** 2)
        found += comparison.rejected.any()
    assert found <= 22  # beyond it less than one in a thousand of a binomial(60, .2)


def test_the_better_one_is_found_and_by_how_much():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 5000)
    y = rng.random(5000) < p
    comparison = ScoreComparison(1.0, 0.05)
    comparison.update((p - y) ** 2, (0.5 - y) ** 2)
    assert comparison.rejected.tolist() == [True, False]
    between = comparison.difference
    gain = -((p - 0.5) ** 2).mean()
    assert between.lower < gain < between.upper < 0
    assert comparison.log_wealth[0] > np.log(20) > comparison.log_wealth[1]


def test_who_was_better_first_and_worse_later_is_not_better_on_average():
    rng = np.random.default_rng(2)
    better, worse = rng.uniform(0.0, 0.1, 400), rng.uniform(0.2, 0.3, 400)
    comparison = ScoreComparison(1.0, 0.05)
    comparison.update(np.concatenate([better, worse]), np.concatenate([worse, better]))
    between = comparison.difference
    assert between.lower < 0 < between.upper


def test_a_comparison_does_not_depend_on_cuts():
    rng = np.random.default_rng(3)
    first, second = rng.random(300), rng.random(300)
    whole, part = ScoreComparison(1.0, 0.05), ScoreComparison(1.0, 0.05)
    whole.update(first, second)
    part.update(first[:33], second[:33])
    part.update(first[33:], second[33:])
    assert whole.difference == part.difference
    assert whole.log_wealth.tolist() == part.log_wealth.tolist()
    assert part.count == 300
