"""Inputs of `online_svm.predictor`, and of kernels in `stream`, `refit` and `svm` that it calls."""

from typing import Any

import numpy as np

from kernel_cases._inputs import bell, flag, pick, whole
from online_svm.compiled.kernels import Kernel
from online_svm.predictor import (
    expert_average,
    joint_prediction,
    memory_experts,
    pair_prediction,
    recent_interval,
    recent_stacks,
    simple_experts,
)
from online_svm.predictor.ensemble import Ensemble, WeightUpdate
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_average import AverageRows, ExpertAverage
from online_svm.predictor.label_history import N_FEATURES, LabelHistory
from online_svm.predictor.neighbours import KEPT_EXAMPLES, N_VOTES, write_votes
from online_svm.predictor.recent_interval import (
    RecentIntervals,
    RecentPoints,
    Shifts,
)
from online_svm.predictor.simple_experts import N_EXPERTS, PENALTIES, Regressions
from online_svm.refit import memory_trees
from online_svm.refit.committee.forest import LEAVES, NODES
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.time_columns import fill_times
from online_svm.stream import cells, split
from online_svm.stream.cells import KINDS as COLUMN_KINDS
from online_svm.stream.labels import ClassView
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats, Ints

EXTREME = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, -1e308, 710.0, -710.0])
LEVELS = (0.5, 0.8, 0.9, 0.99)


def _with(rng: np.random.Generator, values: Floats, special: Floats, share: float) -> Floats:
    """Return values, of some inputs with a share of special ones."""
    if rng.random() < 0.7:
        return values
    return np.where(rng.random(values.shape) < share, rng.choice(special, values.shape), values)


def _columns(rng: np.random.Generator, size: int, n_classes: int) -> Ints:
    return rng.integers(-1, n_classes, size)


def _probabilities(rng: np.random.Generator, *shape: int) -> Floats:
    """Return probabilities that sum to one over the last axis: near certain, even, 0 and 1."""
    points = np.ldexp(rng.random(shape), -rng.integers(0, rng.choice([1, 5, 60]), shape))
    points[rng.random(shape) < rng.choice([0.0, 0.1])] = 0.0
    total = points.sum(axis=-1, keepdims=True)
    points = np.where(total > 0.0, points / np.where(total > 0.0, total, 1.0), 1.0 / shape[-1])
    found: Floats = np.asarray(points, dtype=np.float64)
    return found.round(2) if rng.random() < 0.2 else found


def _log_probabilities(rng: np.random.Generator) -> Any:
    scores = rng.choice([1e-8, 1e-2, 1.0, 100.0]) * bell(rng, *rng.integers(0, 12, 2).tolist())
    scores = _with(rng, scores, EXTREME, 0.2)
    logs = np.empty(scores.shape)
    joint_prediction._log_probabilities(scores, logs)
    return logs


def _stacked(rng: np.random.Generator) -> Any:
    m, inputs, decisions = whole(rng, 0, 9), whole(rng, 1, 7), whole(rng, 1, 6)
    odds = rng.choice([1.0, 30.0]) * bell(rng, m, inputs, decisions)
    odds = _with(rng, odds, EXTREME, 0.1)
    said = _probabilities(rng, m, max(decisions, 2) + whole(rng, 0, 3))
    recent_stacks._stacked(odds, bell(rng, inputs + 1), said)
    return said


def _sources(rng: np.random.Generator, m: int) -> Ints:
    """Return for each row -1, itself, or an earlier row."""
    rows = np.arange(m)
    drawn = np.floor(rng.random(m) * (rows + 1)).astype(np.int64)
    return np.choose(rng.choice(3, m, p=[0.6, 0.2, 0.2]), [np.full(m, -1), rows, drawn])


def _history(rng: np.random.Generator) -> Any:
    n_classes = whole(rng, 1, 7)
    history, written = LabelHistory(n_classes), []
    for m in (0, 1, whole(rng, 40), int(rng.choice([5, 300], p=[0.9, 0.1]))):
        points, columns = _probabilities(rng, m, n_classes), _columns(rng, m, n_classes + 1)
        if rng.random() < 0.5:  # labels that depend on the ones before
            columns = np.where(columns < 0, -1, np.arange(m) // whole(rng, 1, 5) % n_classes)
        average = {"average": points}
        rows = RowsToLearn(np.empty((m, 0)), None, columns, None, sources=np.full(m, -1))
        if rng.random() < 0.4:
            written += history.answer(rows, average)
            continue
        features = rng.choice([0.1, 1.0, 20.0]) * bell(rng, m, n_classes, N_FEATURES)
        rows = rows._replace(sources=_sources(rng, m), stored=features)
        written += [*history.answer(rows, average), features]
    return written, tuple(history.state().arrays.values())


def _simple(rng: np.random.Generator) -> Any:
    n_classes, m, d = whole(rng, 1, 7), whole(rng, 0, 20), whole(rng, 0, 6)
    n_fitted = pick(rng, [0, *range(2, n_classes + 1)])
    decisions = 1 if n_fitted <= 2 else n_fitted
    size = rng.choice([0.1, 1.0, 40.0])
    weights = _with(rng, size * bell(rng, len(PENALTIES), decisions, d + 1), EXTREME, 0.1)
    fitted = np.sort(rng.permutation(n_classes)[:n_fitted])
    counts, experts = np.zeros(n_classes), _probabilities(rng, N_EXPERTS, m, n_classes)
    for _ in range(2):
        rows = _with(rng, bell(rng, m, d), EXTREME, 0.1)
        columns = _columns(rng, m, n_classes + 1)
        of = Regressions(weights, fitted)
        simple_experts._answer(counts, rows, of, columns, experts)
    return counts, experts


def _average(rng: np.random.Generator) -> Any:
    n_experts, n_classes = whole(rng, 2, 9), whole(rng, 2, 6)
    names = pick(rng, [2, len(expert_average.GROUPS)])
    groups = {"expert 0": "model", "expert 1": "labels"}
    for k in range(2, n_experts):
        groups[f"expert {k}"] = expert_average.GROUPS[whole(rng, names)]
    average = ExpertAverage(groups, is_delayed=rng.random() < 0.6)
    written = []
    for m in (0, 1, whole(rng, 40), pick(rng, [5, 90])):
        now, then = (_probabilities(rng, m, n_experts, n_classes) for _ in range(2))
        forecasts = _probabilities(rng, m, average.shape[0], n_classes)
        sources = _sources(rng, m)
        if average.shape[0] == 1:
            sources[:] = -1
            then, forecasts = np.empty((1, *now.shape[1:])), np.empty((1, 1, n_classes))
        for said in (now, then):  # some are asleep, never the one of the labels
            asleep = rng.random(said.shape[:2]) < rng.choice([0.0, 0.3, 1.0])
            said[asleep & (np.arange(n_experts) != 1)] = np.nan
        rows = AverageRows(
            np.ascontiguousarray(now.swapaxes(0, 1)), then, forecasts,
            _columns(rng, m, n_classes + 1), sources, np.floor(99 * rng.random(m)),
            np.empty((m, n_classes)), np.zeros((len(then), n_classes)),
        )  # fmt: skip
        average.answer(rows)
        kept = (rows.mixed, rows.present, then, forecasts)
        written.append(kept if average.shape[0] > 1 else rows.mixed)
    return written, tuple(average.state().values())


def _mix(rng: np.random.Generator) -> Any:
    n_components, n_classes = (int(k) for k in rng.integers(1, 7, 2))
    first = 0.7 if n_components > 1 and rng.random() < 0.5 else None
    share = pick(rng, [0.0, 0.001, 0.005])
    update = WeightUpdate(share, pick(rng, [1.0, 0.03]), first)
    experts = Ensemble(n_components, update)
    written = []
    for m in (0, 1, whole(rng, 40)):
        components = _probabilities(rng, n_components, m, n_classes)
        components = _with(rng, components, np.array([0.0, 5e-324, 1e-6]), 0.1)
        if rng.random() < 0.02:
            components[rng.random(components.shape) < 0.01] = np.nan
        written += [experts.answer(components, _columns(rng, m, n_classes + 1)), experts._logs]
        written[-1] = written[-1].copy()
    return written


def _remembered(rng: np.random.Generator) -> Any:
    n_classes, m, is_late = whole(rng, 2, 6), whole(rng, 0, 20), rng.random() < 0.6
    n, stacked = memory_experts.N_MEMORY_EXPERTS, memory_experts.N_STACKED
    update = WeightUpdate(pick(rng, [0.0, 0.005]), pick(rng, [1.0, 0.1]), 0.5)
    average, size = Ensemble(n, update), whole(rng, 0, 4)
    trust = Ensemble(2, WeightUpdate(pick(rng, [0.0, 0.005])))
    sources = _sources(rng, m)
    if not is_late:
        sources[:] = -1
    stored = _probabilities(rng, m, n + 1, n_classes)[: m if is_late else 0].swapaxes(1, 2)
    said = memory_experts._Rows(
        _probabilities(rng, m, n_classes), _probabilities(rng, 2, m, n_classes),
        _columns(rng, m, n_classes + 1), sources, np.floor(9.0 * rng.random(m)),
        np.ascontiguousarray(stored), np.zeros((m, n_classes)),
    )  # fmt: skip
    scratch = memory_experts._Scratch(
        *(np.empty((k, n_classes)) for k in (n, n, 2, 2)), np.empty((stacked, n_classes - 1))
    )
    weights = rng.choice([0.3, 5.0]) * bell(rng, n - stacked, stacked + (n_classes == 2))
    odds, columns = np.zeros((size + m, stacked, n_classes - 1)), np.zeros(size + m, dtype=np.int64)
    row, credited, stops = 0, whole(rng, 0, 5), []
    while row < m:
        row, size, credited = memory_experts._answer(
            said, row, average.mixture, trust.mixture if is_late else memory_experts.ALL_AVERAGE,
            (weights, odds, columns), size, size + whole(rng, 1, 9), credited, 5, scratch,
        )  # fmt: skip
        stops += [row, size, credited]
    return said.stored, said.point, odds, columns, average._logs, trust._logs, stops


def _write_trees(rng: np.random.Generator) -> Any:
    n_classes, features, width = whole(rng, 2, 6), whole(rng, 1, 5), whole(rng, 1, 4)
    n_columns, m, count = n_classes + whole(rng, 0, 3), whole(rng, 0, 9), whole(rng, 1, 4)
    codes = rng.integers(0, 9, (m, width)).astype(np.float64)
    trees = memory_trees.MemoryTrees(
        rng.integers(0, features, (count, NODES)).astype(np.int32),
        np.floor(9.0 * rng.random((count, NODES))) + 0.5,
        rng.integers(-900, 900, (count, LEAVES, 1 if n_classes == 2 else n_classes), np.int16),
        rng.integers(0, width, features),
        rng.integers(-4, 9, (features, memory_trees.N_CODES), np.int16),
        rng.integers(0, 2, features, np.uint8),
    )
    said = np.zeros((m, n_columns))
    columns = rng.integers(0, n_columns, n_classes)
    trees.write(codes, columns, _probabilities(rng, m, n_columns), said)
    return said


def _write_votes(rng: np.random.Generator) -> Any:
    d, m, n_classes = whole(rng, 1, 12), whole(rng, 0, 9), whole(rng, 2, 6)
    size = pick(rng, [0, 1, 4, 9, 11, whole(rng, 300), KEPT_EXAMPLES - 3, KEPT_EXAMPLES + 20])
    points = np.zeros((d, size + m))
    points[:, :size] = bell(rng, d, size)
    rows = bell(rng, m, d)
    if rng.random() < 0.4:  # ties
        points, rows = np.round(points), np.round(rows)
    elif rng.random() < 0.05:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    labels = np.zeros(size + m, dtype=np.int64)
    labels[:size] = rng.integers(0, n_classes, size)
    asks, columns = rng.random(m) < 0.8, _columns(rng, m, n_classes)
    odds = np.zeros((m, N_VOTES, 1 if n_classes == 2 else n_classes))
    size = write_votes((points, labels), size, rows, columns, asks, odds)
    return size, points, labels, odds


def _pair(rng: np.random.Generator) -> Any:
    m = whole(rng, 0, 12)
    scores = _with(rng, 4.0 * bell(rng, m, 1), EXTREME, 0.3)
    mean, lower, upper = (_with(rng, rng.random((m, 3)), EXTREME, 0.1) for _ in range(3))
    components = np.empty((3, m, 2))
    pair_prediction._fill(scores, mean, lower, upper, components)
    return components


def _recent(rng: np.random.Generator) -> Any:
    n_classes = whole(rng, 2, 6)
    view = ClassView("abcdef"[:n_classes], True)
    held = RecentIntervals(pick(rng, LEVELS), view, is_delayed=rng.random() < 0.5)
    written = []
    for m in (0, whole(rng, 1, 9), int(rng.choice([20, 90, 90, 700], p=[0.5, 0.2, 0.25, 0.05]))):
        point = _probabilities(rng, m, n_classes)
        columns = _columns(rng, m, n_classes)
        if rng.random() < 0.5:  # labels that follow the probabilities
            columns = np.where(
                columns < 0, -1, (point.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1)
            )
            columns = np.minimum(columns, n_classes - 1)
        written.append(held.answer(columns, point))
    return written, tuple(held.state().values())


def _count(rng: np.random.Generator) -> Any:
    n_classes, n = whole(rng, 1, 6), pick(rng, [0, 1, 7, 64, 300])
    points, shifts = _probabilities(rng, n, n_classes), Shifts.none(n_classes)
    if rng.random() < 0.3:
        points[:, 0] = rng.choice([0.0, 0.25, 1.0])
    ascending = np.sort(np.ascontiguousarray(points.T), axis=1)
    tail = 0.5 * (1.0 - pick(rng, LEVELS))
    said = RecentPoints(points, rng.integers(0, n_classes, n))
    recent_interval._count(pick(rng, [0.7, 3.0, 900.0]), tail, said, ascending, shifts)
    return tuple(shifts)


def _fill(rng: np.random.Generator) -> Any:
    seed, start = whole(rng, 2**63) * 2 + whole(rng, 2), whole(rng, 2**40)
    numbers = np.empty(whole(rng, 0, 20))
    split._fill(seed, start, numbers)
    return numbers, split._uniform(3, 0, 5)


def _cells(rng: np.random.Generator, *shape: int) -> Floats:
    """Return cells of every kind, and bit patterns that are none."""
    texts = np.array([cells.cell(text) for text in ("a", "b", "c", "yes", "No", "NA", "?")])
    times = rng.integers(-(2**35), 2**38, shape)
    of_times = [cells.of_milliseconds(int(t) * 1000 + 7) for t in times.ravel()]
    bits = rng.integers(-(2**63), 2**63 - 1, shape, dtype=np.int64).view(np.float64)
    edges = [cells.MAX_FEATURE_SIZE, -cells.MAX_FEATURE_SIZE, 1e101, np.inf, -np.inf]
    edges += [cells.PASSED_OVER, 1e11, -1e11]
    edges += [cells.of_milliseconds(t) for t in (1 - cells.BEFORE, cells.AFTER - 1, 0, -1)]
    edges += [float(cells.AFTER), -float(cells.BEFORE), 0.0, -0.0, -0.5, 1.0]
    kinds = (
        bell(rng, *shape),
        rng.choice([1.0, 1e6, 1e11, 1e14, 1e17], shape) * bell(rng, *shape),
        rng.choice(texts, shape),
        np.array(of_times).reshape(shape),
        rng.choice([cells.TRUE, cells.FALSE], shape),
        np.full(shape, np.nan),
        rng.choice(edges, shape),
        bits,
    )
    return np.choose(rng.integers(0, len(kinds), shape), kinds)


def _watch(rng: np.random.Generator) -> Any:
    found = np.full((7, whole(rng, 0, 8)), np.nan)
    cells._watch(_cells(rng, 7, whole(rng, 0, 8)), found)
    return found


def _fill_times(rng: np.random.Generator) -> Any:
    values = _cells(rng, whole(rng, 0, 40))
    times = np.empty(len(values))
    fill_times(values, times)
    return times


def _table(rng: np.random.Generator, rows: int) -> Floats:
    """Return rows of cells: a number, a boolean, a category, a time and a text, each with gaps."""
    texts = np.array([cells.cell(text) for text in "abcdefgh"])
    times = rng.integers(-(2**45), 2**49, rows)
    columns = [
        bell(rng, rows),
        rng.choice([cells.TRUE, cells.FALSE, 0.0, 1.0, cells.cell("yes"), cells.cell("no")], rows),
        rng.choice(texts[: whole(rng, 1, 9)], rows),
        np.array([cells.of_milliseconds(int(time)) for time in times]),
        np.array([cells.cell(f"{k} words") for k in rng.integers(0, 99, rows).tolist()]),
    ]
    if rng.random() < 0.5:
        columns[3] = rng.choice([1e8, 1e10, 1e12, 1e14]) * rng.random(rows)
    table = np.stack([columns[k] for k in rng.permutation(5)[: whole(rng, 1, 6)]], axis=1)
    table[rng.random(table.shape) < rng.choice([0.0, 0.1])] = np.nan
    return table


def _code(rng: np.random.Generator) -> Any:
    T = _table(rng, whole(rng, 1, 25))
    declared = rng.choice(COLUMN_KINDS, whole(rng, 0, 6)).tolist()
    made = FeatureEncoder.fit(T, declared, max_categories=pick(rng, [2, 4, 64]))
    other = _cells(rng, 6, whole(rng, 0, 7))
    shared = min(T.shape[1], other.shape[1])
    other[:3, :shared] = T[0, :shared]
    return [(made.encode(rows), made.imputed(rows)) for rows in (T, other, T[:0])]


def _score(rng: np.random.Generator) -> Any:
    name = pick(rng, ["linear", "poly", "rbf"])
    gamma, degree = pick(rng, [0.01, 0.3, 5.0]), whole(rng, 1, 5)
    kernel = Kernel(name, gamma, degree, float(rng.integers(3)), flag(rng, 2))  # type: ignore[arg-type]  # drawn
    d, n = whole(rng, 1, 11), pick(rng, [0, 1, 63, 64, 65, whole(rng, 400)])
    machines, m = whole(rng, 1, 4), pick(rng, [0, 1, 5, 15, 16, 17, 37])
    scale = pick(rng, [1.0, 1.0, 1e-3, 100.0])
    model = KernelModel.build(
        kernel, scale * bell(rng, n, d), bell(rng, machines, n), bell(rng, machines)
    )
    return model.scores(scale * bell(rng, m, d))


CASES = {
    "expert_average._answer": _average,
    "feature_encoder._code": _code,
    "joint_prediction._log_probabilities": _log_probabilities,
    "kernel_model._score": _score,
    "label_history._answer": _history,
    "recent_stacks._stacked": _stacked,
    "ensemble._mix": _mix,
    "memory_experts._answer": _remembered,
    "memory_trees._write": _write_trees,
    "neighbours.write_votes": _write_votes,
    "pair_prediction._fill": _pair,
    "recent_interval._answer": _recent,
    "recent_interval._count": _count,
    "simple_experts._answer": _simple,
    "split._fill": _fill,
    "time_columns.fill_times": _fill_times,
    "watched._watch": _watch,
}
