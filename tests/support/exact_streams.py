"""The theorem at the predictor: what is called exact is calibrated over many independent streams.

At a step of its stream a predictor gives one distribution for each possible label. Call p the one
for the label that turns out to be true. If the examples are i.i.d., the mean of 1{y = c} - p(c)
over streams is zero for each step and class c, and also among the streams with any given value of
p(c). Both are held here against what chance alone gives.
"""

import math
import os
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.cells import stacked
from online_svm.stream.prediction import PredictionBlock
from scripts.parallel import each

STEPS = (5, 10, 11, 12, 15, 20, 21, 25, 30, 40, 41, 50, 65, 80, 81, 100, 125, 160, 161, 200)
"""Examples learned before an answer that is judged: just before and after refits, and between."""
VALUES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)
"""Edges between the groups of announced values."""
LEAST_VARIANCE = 10.0
"""Sum of p (1 - p) below which a mean is too far from normal to be judged."""
SIGNS = 2_000
QUANTILE = 0.999
CHUNKS = 16
APART = 1.5
"""Radius of the circle on which the classes lie; each has the standard deviation 1."""
TAXONOMIES = ("class", "class-quantile", "class-rank", "margin", "venn-abers")
SHARES = {
    "1 %": (0.99, 0.01), "5 %": (0.95, 0.05), "50 %": (0.5, 0.5),
    "four classes": (0.5, 0.3, 0.15, 0.05),
}  # fmt: skip
REFITS = {"refit_every": 200, "refit_lag": 0}
SETTINGS = {name: {"taxonomy": name, "committee": "single"} | REFITS for name in TAXONOMIES} | {
    f"committee, {name}": {"taxonomy": name, "committee": "default"} | REFITS
    for name in ("venn-abers", "class-rank")
}
"""Settings of the predictors that are judged, by name."""


@dataclass(frozen=True, slots=True)
class Case:
    """Streams of one kind, under one configuration without its classes.

    Answers are judged that were given after each of `steps` examples. `has_kinds` says whether rows
    are those of `named`.
    """

    shares: tuple
    settings: dict
    draws: int
    steps: tuple = STEPS
    seed: int = 0
    has_kinds: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What was announced at the steps of each stream, and what was true: shape (draws, steps).

    `is_exact` says whether there was an answer that was called exact; `picked`, with an axis of
    the classes, is the distribution for the true label.
    """

    is_exact: np.ndarray
    picked: np.ndarray
    truth: np.ndarray

    @property
    def residuals(self):
        """1{y = c} - p(c); 0 where nothing was called exact."""
        truth = np.eye(self.picked.shape[2])[self.truth]
        return np.where(self.is_exact[:, :, None], truth - self.picked, 0.0)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The largest |z| of a case, beside what chance alone gives.

    Of `cells` means, steps by classes and by values announced for a class, the farthest from zero
    is `where`. `noise` is the .999 quantile of the largest |z| where each stream's residuals get a
    random sign; `answered` the share of answers that were called exact.
    """

    name: str
    answered: float
    cells: int
    largest: float
    noise: float
    where: str

    @property
    def holds(self):
        """Whether chance explains the largest."""
        return self.largest <= self.noise

    def __str__(self):
        verdict = "" if self.holds else "  BEYOND NOISE"
        return (
            f"{self.name:<32}{self.answered:>8.1%} answered {self.cells:>5} means  largest |z| "
            f"{self.largest:5.2f}  noise {self.noise:5.2f}  {self.where}{verdict}"
        )


def answers_of(case, chunks=CHUNKS):
    """Return the answers of a case; its streams are spread over the processors."""
    bounds = np.linspace(0, case.draws, min(chunks, case.draws) + 1).astype(int).tolist()
    parts = [range(*pair) for pair in pairwise(bounds)]
    work = partial(_answers, case)
    found = spread(work, parts)
    names = ("is_exact", "picked", "truth")
    return Answers(*(np.concatenate([getattr(part, name) for part in found]) for name in names))


def spread(function, tasks):
    """Return `function` of each task, by all processors where no other test has them.

    A process that starts imports and loads as long as hundreds of streams take.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or len(tasks) == 1:
        return [function(task) for task in tasks]
    return each(function, tasks)


def judged(name, steps, answers):
    """Return the largest |z| of a case, by step and class, and by value announced."""
    residuals, names = _cells(steps, answers)
    if not names:
        return Calibrated(name, float(answers.is_exact.mean()), 0, 0.0, 0.0, "nothing to judge")
    scale = np.sqrt((residuals**2).sum(axis=0))
    z = np.abs(residuals.sum(axis=0)) / scale
    rng = np.random.default_rng(0)
    # A random sign for each stream keeps what its residuals have to do with one another.
    by_chance = [
        np.abs(rng.choice([-1.0, 1.0], size=len(residuals)) @ residuals / scale).max()
        for _ in range(SIGNS)
    ]
    worst = int(np.argmax(z))
    return Calibrated(
        name, float(answers.is_exact.mean()), len(names), float(z[worst]),
        float(np.quantile(by_chance, QUANTILE)), names[worst],
    )  # fmt: skip


def _cells(steps, answers):
    """Return the residuals of each mean that is judged, a column each, and what it is of."""
    residuals, picked = answers.residuals, answers.picked
    groups = np.searchsorted(VALUES, picked, side="right")
    columns, names = [], []
    for step, n in enumerate(steps):
        for c in range(residuals.shape[2]):
            group = np.where(answers.is_exact[:, step], groups[:, step, c], -1)
            variance = picked[:, step, c] * (1.0 - picked[:, step, c])
            for value in (None, *range(len(VALUES) + 1)):
                is_in = group >= 0 if value is None else group == value
                if float(variance[is_in].sum()) >= LEAST_VARIANCE:
                    columns.append(np.where(is_in, residuals[:, step, c], 0.0))
                    names.append(f"n = {n}, class {c}" + _of_value(value))
    return np.stack(columns, axis=1) if columns else np.empty((0, 0)), names


def _of_value(value):
    if value is None:
        return ""
    low, high = (0.0, *VALUES)[value], (*VALUES, 1.0)[value]
    return f", announced {low:g} to {high:g}"


def _answers(case, draws):
    """Run the predictor over some of the streams."""
    shape = (len(draws), len(case.steps))
    answers = Answers(
        np.zeros(shape, dtype=np.bool_),
        np.zeros((*shape, len(case.shares))),
        np.zeros(shape, dtype=np.int64),
    )
    labels = [f"c{k}" for k in range(len(case.shares))]
    config = PredictorConfig(classes=tuple(labels), maps=(), metrics_every=10**6, **case.settings)
    steps = np.array(case.steps)
    for i, number in enumerate(draws):
        rng, schema = np.random.default_rng([case.seed, number]), None
        X, codes = stream(rng, steps[-1] + 1, case.shares)
        predictor = OnlinePredictor(config)
        if case.has_kinds:
            X, schema = cells_of(named(rng, X, codes), predictor.schema)
        blocks = predictor.step_many(X, [labels[code] for code in codes], schema=schema)
        answers.truth[i] = codes[steps]
        for block in blocks:
            if isinstance(block, PredictionBlock) and block.guarantee == "exact":
                _pick(answers, i, steps, block, codes)
    return answers


def _pick(answers, i, steps, block, codes):
    """Note the distributions for the true labels: its class has the upper value, others the lower.

    Of a multiprobability whose distributions differ only in the label that was added: p^j(j) is the
    upper probability of j, and p^j(y) the lower one of any other y.
    """
    first = int(block.n[0])
    rows = steps[(steps >= first) & (steps < first + len(block))] - first
    places = np.searchsorted(steps, rows + first)
    is_true = np.eye(answers.picked.shape[2], dtype=np.bool_)[codes[rows + first]]
    answers.is_exact[i, places] = True
    answers.picked[i, places] = np.where(is_true, block.venn_upper[rows], block.venn_lower[rows])


def centres(n_classes):
    """Return the middle of each class of `stream`, shape (n_classes, 2)."""
    angles = 2.0 * math.pi * np.arange(n_classes) / n_classes
    return APART * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def stream(rng, n, shares):
    """Return i.i.d. examples: two features, normal around a point of a circle for each class."""
    codes = rng.choice(len(shares), size=n, p=shares)
    return rng.normal(size=(n, 2)) + centres(len(shares))[codes], codes


def named(rng, X, codes):
    """Return i.i.d. rows of every kind but times: with gaps, texts, rare categories and names."""
    draws = rng.random((len(X), 8))
    rows = []
    for (a, b), code, u in zip(X, codes, draws, strict=True):
        row = {"a": None if u[0] < 0.1 else a, "often": f"c{int(4 * (u[1] + 0.3 * code) % 4)}"}
        row["rare"] = f"r{int(60 * u[2] ** 2)}" if u[3] < 0.3 else ("usual", "else")[code % 2]
        row["truth"] = bool(u[4] < 0.3 + 0.2 * code) if u[5] < 0.8 else "NA"
        row["mixed"] = b if u[6] < 0.9 else f"about {int(b)}"  # a number, or at times a category
        row["remark"] = f"said {u[7]}"
        if u[5] < 0.3:
            row[f"name {int(8 * u[7] ** 2)}"] = code + u[6]
        rows.append(row)
    return rows


def cells_of(rows, schema):
    """Return rows with names as cells, and the schema that knows their names."""
    found = []
    for row in rows:
        schema = schema.knowing(row)
        found.append(schema.row(row))
    return stacked(found), schema
