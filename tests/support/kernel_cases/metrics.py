"""Inputs of `online_svm.metrics`: ties, certain probabilities, few and many examples."""

from typing import Any

import numpy as np

from kernel_cases._inputs import pick, whole
from online_svm.compiled.elementary import exps, logs
from online_svm.metrics import cost_matrix, cumulative, window_ring
from online_svm.metrics.binomial_interval import binomial_intervals, interval
from online_svm.metrics.cost_matrix import Decisions
from online_svm.metrics.cumulative import NO_INTERVAL, MethodAnswers
from online_svm.metrics.reliability import (
    SortedEvents,
    bin_ends,
    bin_rows,
    binomial_range,
    brier_parts,
    cumulative_statistics,
    debiased_square,
    sorted_events,
)
from online_svm.metrics.sequential import calibration_monitor, confidence_sequence
from online_svm.metrics.sequential.calibration_monitor import (
    N_PROBABILITY_BINS,
    AnsweredRows,
    Cells,
    Columns,
)
from online_svm.metrics.sequential.confidence_sequence import (
    N_SPACINGS,
    N_START_GROUPS,
    DeviationSums,
    boundary_of_mean,
    group_of,
    log_mean_mixture,
    log_mixture,
)
from online_svm.metrics.sequential.exchangeability import (
    MAX_CLASSES,
    N_CELLS,
    N_RANKED,
    FrozenScorer,
    LabelState,
    Moments,
    RankState,
    rank_labels,
    rank_rows,
)
from online_svm.metrics.sequential.feature_monitor import FeatureMonitor
from online_svm.metrics.sequential.wealth import (
    DIRECTIONS,
    N_BETS,
    NO_SIZES,
    Held,
    bet_on_means,
    bet_on_probabilities,
)
from online_svm.metrics.window_ring import N_SUMS, N_VALUES, WindowRing
from online_svm.metrics.windowed_validity import (
    GROUP_SIZE,
    add_events,
    group_figures,
    ordered_events,
    ring_keys,
    unpacked,
    window_figures,
)
from online_svm.stream.prediction import ScoredRows
from online_svm.types import Bools, Floats, Ints

Rng = np.random.Generator
Shape = int | tuple[int, ...]

SIZES = (1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 64, 65, 127, 130, 200)
LEVELS = (0.5, 0.8, 0.9, 0.99)
TAILS = (0.05, 0.005, 0.25, 0.5)
LABELS = "abcdef"


def _size(rng: Rng) -> int:
    return pick(rng, SIZES)


def _normal(rng: Rng, shape: Shape = ()) -> Floats:
    """Return bell-shaped numbers of variance 1, from uniform ones: the same bits on any machine."""
    return np.asarray(2.0 * (rng.random(shape) + rng.random(shape) + rng.random(shape)) - 3.0)


def _exponential(rng: Rng, shape: Shape = ()) -> Floats:
    return -logs(1.0 - rng.random(shape))


def _power(rng: Rng, low: int, high: int, shape: Shape = ()) -> Floats:
    return np.asarray(np.ldexp(1.0 + rng.random(shape), rng.integers(low, high, shape)))


def _special(rng: Rng, values: Floats, special: tuple[float, ...], share: float) -> Floats:
    """Return values, of some inputs with a share of special ones."""
    if rng.random() < 0.5:
        return values
    return np.where(rng.random(values.shape) < share, rng.choice(special, values.shape), values)


def _of_event(rng: Rng, n: int) -> tuple[Floats, Bools]:
    """Return probabilities of an event and whether it happened, in no order."""
    p = rng.random(n)
    match whole(rng, 6):
        case 0:
            p = np.round(p, 1)
        case 1:
            p = np.round(p)
        case 2:
            p = np.full(n, p[0] if n else 0.0)
        case 3:
            small = _power(rng, -1074, -1, n)
            p = np.where(p < 0.5, small, 1.0 - small)
    p = _special(rng, p, (0.0, 1.0, 0.5, 5e-324, 1.0 - 2.0**-53), 0.2)
    return p, rng.random(n) < (p if rng.random() < 0.7 else rng.random())


def _events(rng: Rng) -> SortedEvents:
    return sorted_events(*_of_event(rng, _size(rng)))


def _points(rng: Rng, *shape: int) -> Floats:
    """Return probabilities that sum to about one over the last axis: also near certain."""
    points = exps(_normal(rng, shape) * rng.choice([0.3, 3.0, 20.0]))
    points[rng.random(shape) < rng.choice([0.0, 0.1])] = 0.0
    total = points.sum(axis=-1, keepdims=True)
    points = np.where(total > 0.0, points / np.where(total > 0.0, total, 1.0), 1.0 / shape[-1])
    return np.round(points, 2) if rng.random() < 0.3 else points


def _interval(rng: Rng) -> Any:
    intervals = binomial_intervals(pick(rng, LEVELS))
    found = []
    for most in (1, 2, 12, 400, 20_000, 2**31):
        total = whole(rng, most)
        hits = {0, total, total // 2, whole(rng, total + 1), min(total, 3)}
        found += [interval(intervals, k, total) for k in sorted(hits)]
    return found


def _binomial_range(rng: Rng) -> Any:
    p = rng.choice([0.0, 1e-300, 1e-12, 1e-4, rng.random(), 0.5, 1.0 - 1e-9, 1.0, 1.0 - 2.0**-53])
    n = pick(rng, [0, 1, 2, 17, _size(rng), 1000])
    return binomial_range(n, float(p), pick(rng, TAILS))


def _bin_rows(rng: Rng) -> Any:
    n_bins, tail = pick(rng, [1, 2, 10, 15, 500]), pick(rng, TAILS)
    return bin_rows(*_events(rng), n_bins, tail)


def _debiased_square(rng: Rng) -> Any:
    p, happened = _events(rng)
    if rng.random() < 0.05:
        p, happened = p[:0], happened[:0]
    return debiased_square(p, happened, pick(rng, [1, 2, 10, 15, 500]))


def _decide(rng: Rng) -> Any:
    k, others, m = whole(rng, 2, 5), whole(rng, 0, 3), whole(rng, 0, 9)
    costs = np.round(_exponential(rng, (k, k + others)), whole(rng, 0, 4))
    np.fill_diagonal(costs, 0.0)
    point = _points(rng, m, k)
    found = Decisions(np.empty(m, dtype=np.int64), np.empty(m))
    cost_matrix._decide(costs, point, found)
    return found


def _realised(rng: Rng) -> Any:
    k, others, m = whole(rng, 2, 5), whole(rng, 0, 3), whole(rng, 0, 30)
    rows = np.stack([rng.integers(0, n, m) for n in (k + others, k, k)], axis=1)
    always, taken = rng.random(k + others), rng.integers(0, 9, k + others)
    sums = rng.random(3)
    costs = _exponential(rng, (k, k + others))
    cost_matrix._add(costs, rows, always, taken, sums, whole(rng, 0, 30))
    return always, taken, sums


def _add_answers(rng: Rng) -> Any:
    m, k = whole(rng, 0, 30), whole(rng, 1, 6)
    point = _special(rng, _points(rng, m, k), (0.0, -0.0, 1.0, 1e-15, 5e-324), 0.1)
    lower, upper = (_points(rng, m, k) for _ in range(2))
    if rng.random() < 0.3:
        lower = upper = NO_INTERVAL
    label, own = (rng.integers(0, k, m) for _ in range(2))
    sums, counts = rng.random(cumulative.N_SUMS), rng.integers(0, 9, cumulative.N_COUNTS)
    answers = MethodAnswers(point, lower, upper, label, own)
    cumulative._add(sums, counts, answers, rng.integers(-1, k, m))
    return sums, counts


def _add_rows(rng: Rng) -> Any:
    size, k, m = whole(rng, 1, 40), whole(rng, 2, 6), whole(rng, 0, 30)
    more, n_slices = whole(rng, 0, 3), whole(rng, 0, 3)
    ring = (
        rng.random((k + more, size)), rng.integers(0, k, size), rng.integers(0, k, size),
        rng.random((N_VALUES, size)), rng.integers(-1, 4, (n_slices, size)), rng.random(N_SUMS),
    )  # fmt: skip
    point = _special(rng, _points(rng, m, k), (0.0, -0.0, 1.0, 1e-15), 0.1)
    added = (
        rng.integers(0, k, m), point, _points(rng, m, k), _points(rng, m, k),
        rng.integers(-1, 4, (m, n_slices)), np.ones(m),
    )  # fmt: skip
    kept, to = 1.0 - 2.0 / (size + 1.0), rng.permutation(k + more)[:k]
    window_ring._add_rows(whole(rng, 0, 100), kept, ring, to, added)
    return ring


def _ring(rng: Rng) -> WindowRing:
    """Return a ring of two or more classes that holds some rows."""
    ring = WindowRing(pick(rng, [20, 64, 130]), 1)
    classes: tuple[str | None, ...] = ()
    for _ in range(whole(rng, 1, 3)):
        k, m = whole(rng, 2, 6), _size(rng)
        classes = tuple(LABELS[: k - 1]) + ((None,) if rng.random() < 0.3 else (LABELS[k],))
        point = _special(rng, _points(rng, m, k), (0.0, -0.0), 0.1)
        lower, upper = np.maximum(point - 0.1, 0.0), np.minimum(point + 0.1, 1.0)
        scores, category = np.zeros((m, 1)), np.zeros(m, dtype=np.int64)
        rows = np.arange(m), classes, rng.integers(0, k, m), point, lower, upper, point
        slices = rng.integers(-1, 4, (m, 1))
        ring.add(ScoredRows(*rows, scores, category, model=1, slices=slices))
    return ring


def _held_by(ring: WindowRing) -> list[Any]:
    return [ring.point, ring.truth, ring.label, ring.values, ring.codes, ring.sums]


def _sorted_keys(ring: WindowRing) -> Ints:
    keys = ring_keys(ring)
    keys.sort(axis=1)
    return keys


def _window_figures(rng: Rng) -> Any:
    ring = _ring(rng)
    keys = _sorted_keys(ring)
    return window_figures(keys, ring.values, ring.truth, ring.label, len(ring.classes))


def _group_figures(rng: Rng) -> Any:
    ring = _ring(rng)
    codes = ring.codes[0, : ring.held]
    return group_figures(ring.values, ring.truth, ring.label, codes, 4 + whole(rng, 0, 2))


def _add_events(rng: Rng) -> Any:
    ring = _ring(rng)
    codes = ring.codes[0, : ring.held]
    found = group_figures(ring.values, ring.truth, ring.label, codes, 4 + whole(rng, 0, 2))
    add_events(found, codes, ordered_events(ring_keys(ring)), len(ring.classes))
    return found, found[:, GROUP_SIZE].copy()


def _events_in_cells(rng: Rng, m: int, width: int, parts: int) -> tuple[Ints, Floats, Floats]:
    """Return the parts of rows, -1 for none; whether the event of each happened; probabilities."""
    p = _special(rng, rng.random((m, width)), (0.0, 1.0, 0.5, 1e-5), 0.3)
    happened = np.where(rng.random((m, width)) < rng.random(), 1.0, 0.0)
    return rng.integers(-1, parts, (m, width)), happened, p


def _sums_of_deviations(rng: Rng) -> DeviationSums:
    sums, at = DeviationSums(whole(rng, 1, 4)), whole(rng, 100)
    for _ in range(whole(rng, 0, 4)):
        m = pick(rng, [0, 1, 30, 64, 200])
        cells = _events_in_cells(rng, m, whole(rng, 1, 4), len(sums._expected))
        sums.update(*cells, np.arange(at, at + m), NO_SIZES)
        at += m
    return sums


def _add_deviations(rng: Rng) -> Any:
    sums = _sums_of_deviations(rng)
    return sums._rows, sums._expected, sums._sums, sums._starts, sums._before


def _add_at_late_starts(rng: Rng) -> Any:
    m, width = whole(rng, 0, 70), whole(rng, 1, 4)
    number = pick(rng, [1, 2, 3, 2**10, 2**23 - 1, 2**23, 2**24, whole(rng, 2**30)])
    held = (
        np.array([64 * number - whole(rng, 0, 64)]),
        rng.uniform(-1.0, 1.0, width),
        _normal(rng, (width, confidence_sequence.N_SUMS)),
        np.zeros((2 * N_SPACINGS, 2), dtype=np.int64),
        np.zeros((2 * N_SPACINGS, width, confidence_sequence.N_SUMS)),
    )
    cells = _events_in_cells(rng, m, whole(rng, 1, 4), width)
    confidence_sequence._add(*cells, np.arange(7, 7 + m), rng.random(m), held)
    return held


def _outlook(rng: Rng) -> Any:
    sums, found = _sums_of_deviations(rng), []
    known = sums._sums, sums._before, sums._starts
    logs = _exponential(rng, N_START_GROUPS)
    for k in range(len(sums._expected)):
        distances = np.empty(2 * N_SPACINGS)
        found.append((distances, *confidence_sequence._outlook(k, *known, logs, distances)))
    return found


def _strongest(rng: Rng) -> Any:
    sums = _sums_of_deviations(rng)
    found = [sums.strongest(k) for k in range(len(sums._expected))]
    return [None if d is None else (d.since, d.rows, d.estimate, d.lower, d.upper) for d in found]


def _rank_rows(rng: Rng) -> Any:
    d, m, k = (whole(rng, 0, 6), whole(rng, 0, 40), whole(rng, 1, MAX_CLASSES + 1))
    has_scorer = rng.random() < 0.8
    X = _special(rng, _normal(rng, (m, d)), (np.nan, np.inf, -np.inf, 1e200, 0.0), 0.1)
    counts = np.floor(9.0 * rng.random((MAX_CLASSES, d)))
    moments = Moments(counts, _normal(rng, (MAX_CLASSES, d)), rng.random((MAX_CLASSES, d)))
    constants = _normal(rng, MAX_CLASSES)
    constants[rng.random(MAX_CLASSES) < rng.choice([0.0, 0.3, 1.0])] = -np.inf
    constants[k:] = -np.inf
    precisions = _special(rng, _exponential(rng, (MAX_CLASSES, d)), (0.0, 1e300), 0.2)
    scorer = FrozenScorer(constants, _normal(rng, (MAX_CLASSES, d)), precisions)
    places = np.zeros((N_RANKED, 3))
    if rng.random() < 0.8:
        places[:, 0] = 100 - rng.choice([0, 5])
        places[:, 1] = _special(rng, _normal(rng, N_RANKED), (1e30, -1e30), 0.1)
        places[:, 2] = _special(rng, 100 * rng.random(N_RANKED), (0.0, 1e60), 0.1)
    trees = np.zeros((N_RANKED, 2 * N_CELLS), dtype=np.int64)
    rows = np.array([whole(rng, 0, 2**40)])
    recent = _normal(rng, d)
    of_class = 5 + np.arange(k if has_scorer else 0)
    values = np.empty((m, 5 + k))
    held = RankState(rows, moments, scorer, recent, places, trees)
    seed, labels = whole(rng, 0, 2**31), rng.integers(-1, k, m)
    rank_rows(X, labels, seed, held, of_class, values)
    return values, rows, moments, recent, places, trees


def _rank_labels(rng: Rng) -> Any:
    m, k = whole(rng, 0, 40), whole(rng, 0, MAX_CLASSES + 1)
    heights = _special(rng, rng.random((m, 1 + k)), (np.nan, 1.0, 0.0), 0.2)
    columns = np.where(rng.random(k) < 0.3, -1, 1 + rng.permutation(k))
    others, own = rng.integers(0, 2**30, (2, MAX_CLASSES)) * rng.choice([0, 1])
    held = LabelState(
        columns, np.stack([own, own + others], 1), np.sort(rng.random((MAX_CLASSES, 2)))
    )
    labels, seed = rng.integers(-1, MAX_CLASSES, m), whole(rng, 0, 2**31)
    rank_labels(labels, seed, whole(rng, 0, 2**40), bool(rng.random() < 0.8), held, heights)
    return heights, held.counts


def _calibration_cells(rng: Rng) -> Any:
    m, k, slices = whole(rng, 0, 20), whole(rng, 2, 6), whole(rng, 0, 3)
    watched = np.flatnonzero(rng.random(k) < 0.7)
    columns = Columns(
        rng.integers(-1, 9, whole(rng, 1, 5)), rng.integers(-1, 9, N_PROBABILITY_BINS), watched,
        rng.integers(-1, 9, len(watched)), rng.integers(-1, 9, (slices, whole(rng, 1, 4))),
    )  # fmt: skip
    point = _special(rng, _points(rng, m, k), (0.2, 0.4, 1.0, 0.0), 0.2)
    own, truth = (rng.integers(0, k, m) for _ in range(2))
    category, examples = rng.integers(-1, 7, m), rng.integers(-1, 99, m)
    rows = AnsweredRows(point, own, truth, category, examples, rng.integers(-1, 6, (m, slices)))
    shape = m, 3 + len(watched) + slices
    cells = Cells(np.zeros(shape, dtype=np.int64), *(np.zeros(shape) for _ in range(3)))
    calibration_monitor._fill(*cells, rows, columns, k == 2)
    return cells


def _sums(rng: Rng) -> tuple[float, float]:
    v = pick(rng, [0.0, rng.random(), float(_power(rng, -10, 20))])
    s = float(_normal(rng)) * pick(rng, [0.0, np.sqrt(v + 1.0), v + 20.0])
    return s, v


def _rhos(rng: Rng) -> Floats:
    return _power(rng, -4, 7, whole(rng, 1, 4))


def _squares(rng: Rng) -> Any:
    values = rng.uniform(-0.5, 0.5, pick(rng, [0, *SIZES]))
    confidence_sequence.squares_about_mean(values, squares := np.empty(len(values)))
    return squares


def _held_wealth(rng: Rng, parts: int) -> Held:
    q = whole(rng, 1, 4)
    counts = np.column_stack([rng.integers(1, 4, parts), rng.choice([0, 0, 3], parts),
        rng.integers(0, 3, parts), rng.integers(-1, 9, parts),
        rng.choice([-1, -1, *DIRECTIONS], parts), rng.integers(0, 9, parts)])  # fmt: skip
    stakes, sums = _exponential(rng, (2, parts, N_BETS)) * rng.choice([0.0, 1.0, 1e3, 1e200])
    return Held(
        np.sort(rng.integers(0, q, parts)),
        rng.choice([0, -30, -1, 1, 2040, 2047, 4090, 2**20 - 9, 2**40 - 3, 77], q),
        _special(rng, rng.random(q), (-1e-20, 0.0), 0.3),
        rng.choice([2.0, 1e3, 1e9, 1e250], parts),
        rng.choice([2.0, 1e3, 1e9, np.inf], parts),
        counts, stakes, sums, _exponential(rng, parts) * rng.choice([1.0, 199.0]),
        rng.random(parts),
    )  # fmt: skip


def _bet_on_means(rng: Rng) -> Any:
    m, n = whole(rng, 0, 70), whole(rng, 1, 7)
    heights = _special(rng, rng.random((m, n)), (np.nan, 0.0, -0.0, 1.0), 0.3)
    held, sizes = _held_wealth(rng, n), NO_SIZES if rng.random() < 0.5 else rng.random(m)
    means = _special(rng, rng.random(n), (0.5, 1e-3), 0.3)
    rows = heights, means, sizes, 1.0 + rng.integers(0, 3, n), np.arange(m), whole(rng, 0, m + 1)
    return bet_on_means(rng.permutation(n), *rows, held), held


def _bet_on_probabilities(rng: Rng) -> Any:
    m, c, n = whole(rng, 0, 70), whole(rng, 1, 5), whole(rng, 1, 7)
    cells = _events_in_cells(rng, m, c, n)
    doubts = _exponential(rng, (m, c)) * rng.choice([0.0, 1e-3, 0.1])
    held, sizes = _held_wealth(rng, n), NO_SIZES if rng.random() < 0.5 else rng.random(m)
    rows = sizes, 1.0 + rng.integers(0, 3, c), np.arange(m), whole(rng, 0, m + 1)
    return bet_on_probabilities(*cells, doubts, pick(rng, [0.02, 0.3, 1e-4]), *rows, held), held


def _watch(rng: Rng) -> Any:
    m, d = 199 + whole(rng, 0, 120), whole(rng, 1, 4)
    X = _special(rng, _normal(rng, (m, d)), (np.nan, np.inf, 0.0, -0.0, 1.0), 0.3)
    X[m - whole(rng, 0, 80) :] += rng.choice([0.0, 3.0])
    monitor = FeatureMonitor(pick(rng, [10.0, 1e6]), whole(rng, 0, 2**31))
    found = [row for row, _ in monitor.update(X, np.arange(m))]
    return found, list(monitor.state().values())


def _group_of(rng: Rng) -> Any:
    numbers = [0, 1, 2, 127, 128, 255, 256, *_power(rng, 0, 40, 9).astype(np.int64).tolist()]
    return [group_of(number) for number in numbers]


CASES = {
    "binomial_interval.interval": _interval,
    "calibration_error.debiased_square": _debiased_square,
    "calibration_statistics": lambda rng: cumulative_statistics(*_events(rng)),
    "calibration_monitor.cells": _calibration_cells,
    "corp.brier_parts": lambda rng: brier_parts(*_events(rng)),
    "cost_matrix.decide": _decide,
    "cumulative.add": _add_answers,
    "deviation_sums.add": _add_deviations,
    "deviation_sums.add at late starts": _add_at_late_starts,
    "deviation_sums.outlook": _outlook,
    "deviation_sums.strongest": _strongest,
    "equal_mass_bins.bin_ends": lambda rng: bin_ends(
        _events(rng).probabilities, pick(rng, [1, 2, 3, 10, 15, 500])
    ),
    "figures.add_events": _add_events,
    "figures.group_figures": _group_figures,
    "figures.ring_keys": lambda rng: ring_keys(_ring(rng)),
    "figures.unpacked": lambda rng: unpacked(_sorted_keys(_ring(rng))),
    "figures.window_figures": _window_figures,
    "interval_reach.group_of": _group_of,
    "mixture_boundary.boundary_of_mean": lambda rng: boundary_of_mean(
        _sums(rng)[1], float(_exponential(rng) * 10.0), _rhos(rng)
    ),
    "mixture_boundary.log_mean_mixture": lambda rng: [
        log_mean_mixture(*_sums(rng), _rhos(rng)) for _ in range(3)
    ],
    "mixture_boundary.log_mixture": lambda rng: [
        log_mixture(*_sums(rng), float(_rhos(rng)[0])) for _ in range(4)
    ],
    "realised_cost.add": _realised,
    "recent_mean.squares": _squares,
    "reliability.bin_rows": _bin_rows,
    "reliability.binomial_range": _binomial_range,
    "row_ranks.rank_labels": _rank_labels,
    "row_ranks.rank_rows": _rank_rows,
    "window_ring.add": lambda rng: _held_by(_ring(rng)),
    "window_ring.add_rows": _add_rows,
    "wealth.bet_on_means": _bet_on_means,
    "wealth.bet_on_probabilities": _bet_on_probabilities,
    "feature_monitor.watch": _watch,
}
