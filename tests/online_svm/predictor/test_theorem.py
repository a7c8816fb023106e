"""The promise of `exact` at the predictor: it holds at each step, and labels that calibrate have
no part in any score.

At a step of its stream a predictor gives one distribution for each possible label. Call p the one
for the label that turns out to be true. If the examples are i.i.d., the mean of 1{y = c} - p(c)
over streams is zero for each step and class c, and also among the streams with any given value of
p(c). Both are held here against what chance alone gives.
"""

import itertools
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from exact_streams import spread, stream
from predictor_answers import blocks, rows

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.cells import stacked
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask

STEPS = (5, 10, 11, 12, 15, 20, 21, 25, 30, 40, 41, 50, 65, 80, 81, 100, 125, 160, 161, 200)
"""Examples learned before an answer that is judged: just before and after refits, and between."""

VALUES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99)
"""Edges between the groups of announced values."""

LEAST_VARIANCE = 10.0
"""Sum of p (1 - p) below which a mean is too far from normal to be judged."""

SIGNS = 2_000
QUANTILE = 0.999
CHUNKS = 16
TAXONOMIES = ("class", "class-rank", "venn-abers")
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

    The answers after each of `steps` examples are judged. With `has_kinds` the rows come from
    `named`.
    """

    shares: tuple
    settings: dict
    draws: int
    steps: tuple = STEPS
    seed: int = 0
    has_kinds: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Announced and true values at the steps of each stream: shape (draws, steps).

    `is_exact`: there was an answer that was called exact; `picked`, with an axis of
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
    """The largest |z| of a case, and its distribution under chance alone.

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
    shape = (len(draws), len(case.steps))
    answers = Answers(
        np.zeros(shape, dtype=np.bool_),
        np.zeros((*shape, len(case.shares))),
        np.zeros(shape, dtype=np.int64),
    )
    labels = [f"c{k}" for k in range(len(case.shares))]
    config = ProtocolConfig(classes=tuple(labels), maps=(), metrics_every=10**6, **case.settings)
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


EARLY = (5, 10, 11, 12, 15, 20, 21, 25, 40, 41)
CASES = [
    ("class", "5 %"), ("class-rank", "four classes"), ("venn-abers", "50 %"),
]  # fmt: skip
COMMITTEE = ("committee, venn-abers", "50 %", 700)
"""Of fewer streams there is no mean to judge."""


def early(taxonomy, kind, draws):
    # No alarm is raised so early, and the bets that would raise it take as long as the answers.
    settings = SETTINGS[taxonomy] | {"monitors": "off"}
    case = Case(SHARES[kind], settings, draws, EARLY)
    return judged(taxonomy, EARLY, answers_of(case, chunks=1))


@pytest.mark.parametrize(
    ("taxonomy", "kind", "draws"),
    [*((*case, 350) for case in CASES), pytest.param(*COMMITTEE, marks=pytest.mark.slow)],
)
def test_what_is_called_exact_is_calibrated_at_each_early_step(taxonomy, kind, draws):
    found = early(taxonomy, kind, draws)
    assert found.cells > 0
    assert found.holds, str(found)


def judged_cases():
    """Yield configuration, kind of stream, and as many streams as its means need to be judged."""
    for name, kind in itertools.product(SETTINGS, SHARES):
        if "venn-abers" in name and len(SHARES[kind]) > 2:
            continue  # a pair a class against the rest: no guarantee
        if not name.startswith("committee"):
            yield name, kind, 6000 if kind == "1 %" else 1000
        elif kind != "1 %":  # which would take a committee an hour
            yield name, kind, 1500 if kind == "5 %" else 500


OFTEN = (
    ("class", "5 %"), ("class", "1 %"), ("class-rank", "four classes"), ("venn-abers", "50 %"),
    ("committee, class-rank", "50 %"),
)  # fmt: skip
"""Cases that CI computes: each taxonomy, each kind of stream and a committee, once."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind", "draws"), [case for case in judged_cases() if case[:2] in OFTEN]
)
def test_what_is_called_exact_is_calibrated_from_5_to_200_examples_over_many_streams(
    name, kind, draws, tell_line
):
    check_calibrated(name, kind, draws, tell_line)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind"),
    [("class", "5 %"), ("class-rank", "four classes"), ("venn-abers", "50 %"),
     ("committee, class-rank", "50 %")],
)  # fmt: skip
def test_rows_of_every_kind_are_calibrated_from_5_to_200_examples(name, kind, tell_line):
    check_calibrated(name, kind, 500, tell_line, has_kinds=True)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind", "draws"), [case for case in judged_cases() if case[:2] not in OFTEN]
)
def test_so_it_is_for_every_other_taxonomy_and_kind_of_stream(name, kind, draws, tell_line):
    check_calibrated(name, kind, draws, tell_line)


def check_calibrated(name, kind, draws, tell_line, has_kinds=False):
    case = Case(SHARES[kind], SETTINGS[name], draws, has_kinds=has_kinds)
    title = f"{name}, {kind}" + ", every kind" * has_kinds
    found = judged(title, case.steps, answers_of(case))
    tell_line(found)
    assert found.cells > 0
    assert found.holds, str(found)


def answers(X, codes, classes, settings):
    # An alarm, which the labels that calibrate may raise, would cut a block.
    config = ProtocolConfig(
        classes=tuple(f"c{k}" for k in range(classes)),
        train_fraction=0.7,
        monitors="off",
        **settings,
    )
    return blocks(OnlinePredictor(config).step_many(X, [f"c{code}" for code in codes]))


@pytest.mark.parametrize(
    "settings",
    [
        *(SETTINGS[name] | {"refit_every": 50} for name in SETTINGS),
        {"refit_every": 60, "window": 100, "class_weight": "balanced", "committee": "single"},
        {"refit_every": 40, "window": 150, "class_weight": "balanced", "refit_lag": 7},
    ],
)
@pytest.mark.parametrize("shares", [(0.93, 0.07), (0.4, 0.3, 0.2, 0.1)])
def test_no_score_depends_on_a_label_that_calibrates(settings, shares):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, codes = stream(rng, 260, shares)
        trains = training_mask("interleaved", 0, len(X), 0.7)
        changed = np.where(trains, codes, rng.integers(0, len(shares), len(X)))
        assert (changed != codes).any()
        here, there = (answers(X, y, len(shares), settings) for y in (codes, changed))
        assert any((a.point != b.point).any() for a, b in zip(here, there, strict=True))
        for a, b in zip(here, there, strict=True):
            assert a.status == b.status
            assert a.scores.tobytes() == b.scores.tobytes()
            assert (a.model, a.taxonomy) == (b.model, b.taxonomy)


@pytest.mark.parametrize("window", [60, None])
def test_the_guarantee_is_approximate_while_an_entry_without_a_label_lies_in_the_window(window):
    X, codes = stream(np.random.default_rng(0), 240, (0.5, 0.5))
    labels = [f"c{code}" for code in codes]
    labels[100] = labels[130] = None
    config = ProtocolConfig(classes=("c0", "c1"), window=window, refit_every=50, committee="single")
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    kinds = [row.guarantee for row in answers]
    begins = kinds.index("exact")
    # Each is answered as the others before it. The 131st came after 129 learned ones.
    until = 240 if window is None else 131 + window
    expected = ["exact"] * 101 + ["approximate"] * (until - 101) + ["exact"] * (240 - until)
    assert kinds == ["none"] * begins + expected[begins:]
    assert "without a label lies in the window" in (answers[150].reason or "")
