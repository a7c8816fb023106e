"""Bets on parts: a plain re-derivation, Ville's inequality, run lengths, and restarts."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.wealth import (
    ALARM,
    DIRECTIONS,
    FOUND,
    N_BETS,
    NO_SIZES,
    NOTICE,
    Wealth,
    bet_on_means,
    bet_on_probabilities,
)

SHIFTS, NOISES, POWER = (1.2, 1.5, 2.5, 6.0), (0.05, 0.12, 0.35), 1.5


def share_of_start(t):
    """Half on the first 2,047; then 1 / ((g + 1) (g + 2)) on each group of 2048, 4096, ..."""
    if t < 2048:
        return 0.5 / 2047
    group = t.bit_length() - 11
    return 1 / ((group + 1) * (group + 2) * 2 ** (group + 10))


def edges(p, tolerance, doubt):
    p = min(max(p, 1e-4), 1 - 1e-4)
    odds = p / (1 - p)
    least = max(min(tolerance, 0.002), math.sqrt(doubt * p * (1 - p)))
    high = p + max(least, min(tolerance, 1.5 * odds / (1 + 1.5 * odds) - p))
    low = p - max(least, min(tolerance, p - odds / 1.5 / (1 + odds / 1.5)))
    return tuple(min(max(edge, 1e-6), 1 - 1e-6) for edge in (low, high))


def alternatives(low, high):
    """Pairs of an edge and the probability that each bet puts in its place."""

    def moved(edge, ratio):
        odds = ratio * edge / (1 - edge)
        return edge, odds / (1 + odds)

    found = [pair for a in SHIFTS for pair in (moved(high, a), moved(low, 1 / a))]
    inner = high if high < 0.5 else low if low > 0.5 else 0.5
    outer = low if high < 0.5 else high if low > 0.5 else 0.5
    found += [(inner, inner + g * (1 - 2 * inner)) for g in NOISES]
    odds = (outer / (1 - outer)) ** POWER
    return [*found, (outer, odds / (1 + odds))]


def shares(n):
    sizes = [math.log(a) ** 2 for a in SHIFTS for _ in range(2)] + [(2.5 * g) ** 2 for g in NOISES]
    found = np.array([*sizes, 2 * (POWER - 1) ** 2][:n]) ** -0.4
    return found / found.sum()


def plain(p, y, tolerance, doubts, n_bets):
    """The definitions: the wealth of a stake for each start and bet, and the sum for notices."""
    pairs = [alternatives(*edges(one, tolerance, d)) for one, d in zip(p, doubts, strict=True)]
    factors = np.array([
        [q / e if happened else (1 - q) / (1 - e) for e, q in row[:n_bets]]
        for row, happened in zip(pairs, y, strict=True)
    ])  # fmt: skip
    grown = np.cumprod(factors[::-1], axis=0)[::-1] @ shares(n_bets)
    starts = np.array([share_of_start(t) for t in range(1, len(p) + 1)])
    return 1 - starts.sum() + starts @ grown, grown.sum()


def wealth_of(level=1e-12, run_length=np.inf, parts=1):
    made = Wealth("calibration", [level], [run_length])
    for j in range(parts):
        made.add("bin", str(j), 0)
    return made


def bet(made, p, y, column=0, doubts=0.0, tolerance=0.02, sizes=NO_SIZES, begin=0):
    """Bet on rows of part 0; column 0 has all bets, column 1 the shifts alone."""
    shape = len(p), 2
    cells = np.full(shape, -1)
    cells[:, column] = 0
    happened, announced, doubt = (np.zeros(shape) for _ in range(3))
    happened[:, column], announced[:, column], doubt[:, column] = y, p, doubts
    n = np.arange(len(p))
    return bet_on_probabilities(
        cells, happened, announced, doubt, tolerance, sizes, np.ones(2), n, begin, made.held
    )


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("doubts", [0.0, 0.01])
def test_both_accumulators_are_those_of_the_definition(column, doubts):
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.random(60), [0.0, 1.0, 1e-5, 0.5]])
    y = rng.random(len(p)) < p
    made = wealth_of(run_length=1e12)
    assert bet(made, p, y, column, doubts) == (len(p), 0)
    n_bets = N_BETS if column == 0 else 2 * len(SHIFTS)
    wealth, total = plain(p, y, 0.02, np.full(len(p), doubts), n_bets)
    assert made.held.wealth[0] == pytest.approx(wealth, rel=1e-5)  # shares have six decimals
    assert made.held.sums[0].sum() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("p", [1e-5, 0.003, 0.02, 0.3, 0.49, 0.5, 0.7, 0.98, 0.9999])
@pytest.mark.parametrize("doubt", [0.0, 0.02])
@pytest.mark.parametrize("size", [1.0, 0.3])
def test_no_bet_gains_on_average_within_the_tolerance(p, doubt, size):
    """Of every bet and at both edges, with labels that stand for others, too."""
    stakes = {}
    for y in (0, 1):
        made = wealth_of()
        made.held.ages[:], made.held.stakes[:] = 1 << 40, 1.0  # what starts now is nothing
        bet(made, [p], [y], doubts=doubt, sizes=np.array([size]))
        stakes[y] = made.held.stakes[0].copy()
    for happens in edges(p, 0.02, doubt):
        mean = happens * stakes[1] + (1 - happens) * stakes[0]
        assert (mean <= 1 + 1e-9).all()
        assert (stakes[1] != stakes[0]).any()


def test_at_the_edge_of_the_tolerance_at_most_a_share_of_the_level_ever_alarms():
    rng, level, runs = np.random.default_rng(1), 0.1, 300
    alarmed = 0
    for _ in range(runs):
        made = wealth_of(level)
        # The truth wanders between the two edges, and each alarm starts the next test.
        p = rng.uniform(0.1, 0.9, 1000)
        y = rng.random(1000) < p + 0.02 * (-1) ** (np.arange(1000) // 50)
        begin, found = 0, False
        while begin < 1000:
            begin, reached = bet(made, p, y, begin=begin)
            if reached & ALARM:
                found = True
                made.take_findings(begin - 1, "test")
        alarmed += found
    assert alarmed <= 46  # beyond it less than one in a thousand of a binomial(300, .1)


def test_rows_to_a_false_notice_are_as_many_as_stated():
    """The sum over the parts of a partition is one detector, however many parts it has."""
    rng, length, rows, runs = np.random.default_rng(2), 2000, 1000, 200
    first = []
    for _ in range(runs):
        made = wealth_of(run_length=length, parts=50)
        p = rng.uniform(0.2, 0.8, rows)
        cells = rng.integers(0, 50, (rows, 1))
        cells = np.column_stack([np.full(rows, -1), cells])
        happened = (rng.random((rows, 1)) < p[:, None] + 0.02) * np.ones((1, 2))
        announced = np.column_stack([p, p])
        stop, _ = bet_on_probabilities(
            cells, happened, announced, np.zeros((rows, 2)), 0.02, NO_SIZES, np.ones(2),
            np.arange(rows), 0, made.held,
        )  # fmt: skip
        first.append(stop)
    # A detector of this run length has noticed by row 1,000 in at most half of the streams.
    assert np.mean(np.array(first) < rows) < 0.5


def next_notice(made, p, y, column, begin):
    """Bet on rows until a notice opens or closes; return the row after that, or the last."""
    reached = 0
    while begin < len(p) and not reached & NOTICE:
        begin, reached = bet(made, p, y, column, begin=begin)
        if reached & ALARM:
            made.take_findings(begin - 1, "test")
    return begin


@pytest.mark.parametrize(("column", "way", "direction"), [
    (1, lambda p: p + 0.15, "low"), (1, lambda p: p - 0.15, "high"),
    (0, lambda p: 0.5 + 0.6 * (p - 0.5), "extreme"),
    (0, lambda p: np.where(p > 0.5, p + 0.12, p - 0.12), "cautious"),
])  # fmt: skip
def test_a_notice_has_its_direction_and_stays_until_the_part_is_right(column, way, direction):
    rng = np.random.default_rng(3)
    p = np.where(rng.random(6000) < 0.5, rng.uniform(0.15, 0.3, 6000), rng.uniform(0.7, 0.85, 6000))
    true = np.where(np.arange(6000) < 2000, way(p), p)
    y = rng.random(6000) < true
    made = wealth_of(run_length=1e5)
    opened = next_notice(made, p, y, column, 0)
    assert opened < 2000
    assert made.open_notices() == [(0, opened - 1, direction)]
    closed = next_notice(made, p, y, column, opened)
    assert made.open_notices() == []
    assert 2020 < closed < 5000
    assert next_notice(made, p, y, column, closed) == 6000


def test_an_alarm_is_reported_once_and_its_part_rests():
    made = wealth_of(0.01)
    p, y = np.full(400, 0.2), np.ones(400)
    stop, reached = bet(made, p, y, column=1)
    assert reached == ALARM
    ((j, finding),) = made.take_findings(stop - 1, "test", cooldown=30)
    assert (j, finding.row, finding.name, finding.since) == (0, stop - 1, "0", 0)
    assert finding.log_wealth >= finding.threshold == pytest.approx(math.log(200))
    assert bet(made, p[:30], y[:30], column=1) == (30, 0)
    assert made.held.stakes.sum() == 0.0
    assert made.thresholds[0] == pytest.approx(math.log(600))  # a smaller level
    assert made.held.counts[0, FOUND] == 1


def test_after_a_restart_no_test_has_the_number_of_an_earlier_one():
    made = wealth_of(0.01, parts=2)
    made.restart()  # there were no rows: the tests stay
    np.testing.assert_allclose(made.thresholds, np.log([200, 200]))
    stop, _ = bet(made, np.full(200, 0.2), np.ones(200))
    made.take_findings(stop - 1, "test")
    made.restart(cooldown=10)
    np.testing.assert_allclose(made.thresholds, np.log([1200, 1200]))
    assert made.log_wealth.tolist() == [0.0, 0.0]
    bet(made, np.full(10, 0.2), np.ones(10))
    assert made.log_wealth.tolist() == [0.0, 0.0]
    j = made.add("bin", "2", 0)
    assert made.thresholds[j] == pytest.approx(math.log(1200))


@pytest.mark.parametrize("mean", [0.5, 0.02, 0.9])
def test_bets_on_means_skip_rows_without_a_height(mean):
    heights = np.random.default_rng(0).beta(2 * mean, 2 - 2 * mean, (90, 1))
    both = []
    for rows in (heights, heights[heights[:, 0] > mean / 2]):
        made = wealth_of()
        gaps = np.where(heights > mean / 2, heights, np.nan) if rows is heights else rows
        given = gaps, np.array([mean]), NO_SIZES, np.ones(1), np.arange(len(gaps))
        bet_on_means(np.array([0]), *given, 0, made.held)
        both.append(made.log_wealth[0])
    rest, factors = heights[heights[:, 0] > mean / 2, 0], []
    for ratio in (1.27, 1.86, 4.0, 39.0, 1 / 1.27, 1 / 1.86, 1 / 4.0, 1 / 39.0):
        q = mean * ratio / (mean * ratio + 1 - mean)  # the mean that the bet is for
        factors.append(rest * q / mean + (1 - rest) * (1 - q) / (1 - mean))
    starts = [share_of_start(t) for t in range(1, len(rest) + 1)]
    grown = [np.mean([np.prod(of[t:]) for of in factors]) for t in range(len(rest))]
    assert both[0] == both[1]
    assert math.exp(both[0]) == pytest.approx(1 - sum(starts) + np.dot(starts, grown))


def test_wealth_is_cut_before_it_overflows():
    made = wealth_of(1e-300)
    bet(made, np.full(5000, 0.01), np.ones(5000))
    assert math.isfinite(made.log_wealth[0])


@pytest.mark.parametrize("content", [
    b"[", b'[["bin", "a", 0], ["bin", "a", 0]]', b'[["bin", "a", 1]]', b'[["bin", "a", -1]]',
])  # fmt: skip
def test_parts_that_do_not_fit_are_refused(content):
    state = wealth_of().state() | {"parts": np.frombuffer(content, dtype=np.uint8)}
    with pytest.raises(InvalidSnapshot, match="Wealth"):
        wealth_of().restore(state)


def test_a_direction_that_no_bet_has_is_refused():
    state = wealth_of().state()
    state["counts"][0, 4] = 3
    assert 3 not in DIRECTIONS
    with pytest.raises(InvalidSnapshot, match="counts"):
        wealth_of().restore(state)
