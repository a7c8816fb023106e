"""The coverage of the headline's interval, where the truth is known.

Examples are i.i.d. of normal classes, so P(y | x) is known. Its mean over the fresh examples whose
scores lie in one bin of the interval is the frequency in that bin; over the hundred nearest in
score it is P(y | score), and over those nearest in the headline's probability p it is P(y | p).
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from exact_streams import centres, spread, stream
from predictor_answers import blocks
from scipy.special import expit, ndtri
from sklearn.linear_model import LogisticRegression

from online_svm.config import PredictorConfig
from online_svm.predictor.frequency_interval import bin_edges
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock

SHARES = {
    "2 %": (0.98, 0.02), "10 %": (0.9, 0.1), "50 %": (0.5, 0.5),
    "four classes": (0.4, 0.3, 0.2, 0.1),
}  # fmt: skip
BY_CLASSES = {
    2: (0.7, 0.3), 3: (0.5, 0.3, 0.2), 4: (0.4, 0.3, 0.2, 0.1),
    7: (0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05),
}  # fmt: skip
RANGED = {f"{k} classes": shares for k, shares in BY_CLASSES.items()} | {"rare": (0.97, 0.03)}
RANGES = (0.0, 0.03, 0.1, 0.3, 0.7, 0.9, 0.97, 1.0)
ASKED, ALIKE = 20_000, 100
LOOKS = (1000, 1300, 1600, 1900, 2200, 2500)
"""Learned examples at which fresh examples are asked, `FRESH` of them by each state."""
FRESH, N_RANGED = 8_000, 8
FEWEST = 1_000
"""Answers in a range of p for a statement about it, and of fresh ones as many for each look."""
MAPS = ("evidential-binning", "evidential-isotonic", "evidential-logistic")
BAND = "logistic band"
LEVEL = 0.9


def settings_of(committee, n, **settings):
    """Return settings with one refit, of all of n examples, and every map that gives intervals.

    With semantics 5: from 6 on no interval is that of `FrequencyIntervals`.
    """
    at_once = {"window": None, "refit_every": n, "refit_lag": 0, "semantics": 5}
    return {"committee": committee, "maps": MAPS} | at_once | settings


@dataclass(frozen=True, slots=True)
class Case:
    """Streams of one kind of which n are learned, under one configuration without its classes."""

    n: int
    shares: tuple
    settings: dict
    has_band: bool = True


@dataclass(frozen=True, slots=True)
class Coverage:
    """One interval: how often it holds what it is about, and how wide it is on average.

    `of_bin`, `of_score` and `of_point` are shares of the fresh examples: their interval holds the
    frequency in the bin of their score, P(y | score), or P(y | p). `error` is the standard error
    of the last, over the streams.
    """

    name: str
    interval: str
    of_bin: float
    of_score: float
    of_point: float
    width: float
    error: float

    def __str__(self):
        return (
            f"{self.name:<34}{self.interval:<20}bin {self.of_bin:6.1%}  score {self.of_score:6.1%}"
            f"  p {self.of_point:6.1%} +- {self.error:.1%}  width {self.width:.3f}"
        )


def means(name, case, draws):
    """Yield the coverage of each interval that is published, and of the logistic band."""
    found = spread(partial(measured, case), list(range(draws)))
    for interval in dict.fromkeys(key for one in found for key in one):
        figures = np.array([one[interval] for one in found if interval in one])
        error = float(figures[:, 2].std() / np.sqrt(len(figures)))
        yield Coverage(name, interval, *figures.mean(axis=0).tolist(), error)


def measured(case, draw):
    """Return of each interval the coverage of bin, score and p, and the width, of one stream."""
    predictor, block, truth = answered(case, draw)
    active = predictor.active
    if active is None:
        return {}
    training, calibration = active.result.training_scores, active.calibration
    found = {}
    for k in _counted(case):
        g = 0 if len(case.shares) == 2 else k
        scores = block.scores[:, g]
        of_bin = _group_means(truth[:, k], np.searchsorted(bin_edges(training[:, g]), scores))
        of_score, of_point = (_nearest(truth[:, k], by) for by in (scores, block.point[:, k]))
        band = None
        if case.has_band:
            band = logistic_band(calibration.scores[:, g], calibration.codes == k, scores)
        for name, lower, upper in _published(block, k, band):
            line = [_share(lower, of, upper) for of in (of_bin, of_score, of_point)]
            found.setdefault(name, []).append((*line, float((upper - lower).mean())))
    return {name: tuple(np.mean(lines, axis=0).tolist()) for name, lines in found.items()}


def answered(case, draw):
    """Return a predictor that learned one stream, its answers to fresh examples, and P(y | x)."""
    rng = np.random.default_rng([draw, case.n])
    X, codes = stream(rng, case.n, case.shares)
    labels = [f"c{k}" for k in range(len(case.shares))]
    config = PredictorConfig(classes=tuple(labels), interval_level=LEVEL, **case.settings)
    predictor = OnlinePredictor(config)
    predictor.step_many(X, [labels[code] for code in codes])
    asked, _ = stream(rng, ASKED, case.shares)
    predictor.step_many(asked[:1], [None])  # the first without a label ends a block
    (block,) = predictor.step_many(asked, [None] * ASKED)
    assert isinstance(block, PredictionBlock)
    return predictor, block, posterior(asked, case.shares)


def by_range(shares, delay, draw):
    """Return counts, hits of P(y | p) and summed widths by range of p, shape (2, 3, 7).

    The first are of a stream's own answers after 1,000 learned examples, whose labels come `delay`
    examples late; the second of the answers to fresh examples by its states at `LOOKS`.
    """
    rng = np.random.default_rng([draw, delay])
    (X, codes), (asked, _) = (stream(rng, n, shares) for n in (LOOKS[-1] + delay, FRESH))
    classes = tuple(f"c{k}" for k in range(len(shares)))
    labels = [classes[code] for code in codes]
    settings = {"horizon": delay} if delay else {}
    config = PredictorConfig(classes=classes, interval_level=LEVEL, **settings)
    predictor, own, found = OnlinePredictor(config), [], np.zeros((2, 3, len(RANGES) - 1))
    for begin, look in zip((-delay, *LOOKS), LOOKS, strict=False):
        rows = slice(begin + delay, look + delay)
        own += blocks(predictor.step_many(X[rows], labels[rows]))
        add_by_range(found[1], predictor.frozen().answer(asked), posterior(asked, shares))
    whole = replace(
        own[-1],
        **{
            name: np.concatenate([getattr(block, name) for block in own])[LOOKS[0] + delay :]
            for name in ("point", "lower", "upper")
        },
    )
    add_by_range(found[0], whole, posterior(X[LOOKS[0] + delay :], shares))
    return found


def add_by_range(found, block, truth):
    """Add counts, hits and widths of the answers of a block to `found`, all classes together."""
    for k in [1] if truth.shape[1] == 2 else range(truth.shape[1]):
        point, lower, upper = block.point[:, k], block.lower[:, k], block.upper[:, k]
        of_point = np.clip(point + _nearest(truth[:, k] - point, point), 0.0, 1.0)
        places = np.searchsorted(RANGES[1:-1], point)
        for line, values in zip(
            found, (1.0, (lower <= of_point) & (of_point <= upper), upper - lower), strict=True
        ):
            np.add.at(line, places, values)


def _counted(case):
    """Return the classes whose intervals are counted: of two, the second says it all."""
    return [1] if len(case.shares) == 2 else range(len(case.shares))


def _published(block, k, band):
    """Yield each interval of class k that a block has, and the band, if there is one."""
    yield "headline", block.lower[:, k], block.upper[:, k]
    yield "venn", block.venn_lower[:, k], block.venn_upper[:, k]
    for name, bounds in (block.map_intervals or {}).items():
        yield name, bounds[:, k, 0], bounds[:, k, 1]
    if band is not None:
        yield (BAND, *band)


def logistic_band(scores, labels, asked, level=LEVEL):
    """Return the confidence band of a logistic regression on the scores; None for one class.

    Its ends are the sigmoid of the linear predictor, less and plus its standard error times the
    normal quantile (Wald's interval).
    """
    if labels.all() or not labels.any():
        return None
    fitted = LogisticRegression(C=1e6).fit(scores[:, None], labels)
    chance = fitted.predict_proba(scores[:, None])[:, 1]
    design, at = (np.stack([np.ones(len(s)), s], axis=1) for s in (scores, asked))
    information = (design * (chance * (1.0 - chance))[:, None]).T @ design
    spread = np.sqrt(np.einsum("ij,jk,ik->i", at, np.linalg.pinv(information), at))
    middle, reach = fitted.decision_function(asked[:, None]), -ndtri((1.0 - level) / 2.0) * spread
    return expit(middle - reach), expit(middle + reach)


def posterior(X, shares):
    """Return P(y | x) of each class of `stream`, shape (m, K)."""
    logs = -0.5 * ((X[:, None, :] - centres(len(shares))[None]) ** 2).sum(axis=2) + np.log(shares)
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _nearest(values, by):
    """Return for each value the mean over the cases of `ALIKE` that share a property."""
    rank = np.empty(len(by), dtype=np.int64)
    rank[np.argsort(by)] = np.arange(len(by))
    return _group_means(values, rank // ALIKE)


def _group_means(values, groups):
    counts = np.bincount(groups)
    return (np.bincount(groups, values) / np.maximum(counts, 1))[groups]


def _share(lower, truth, upper):
    return float(((lower <= truth) & (truth <= upper)).mean())


DRAWS = 12
MANY = {2: 64, 3: 64, 4: 40, 7: 32}
"""Streams by classes: the standard error of a cell is below 1.5 points."""

SETTINGS = {
    "committee": {"committee": "default"},
    "single": {"committee": "single", "taxonomy": "class"},
}


@pytest.mark.parametrize("kind", ["2 %", "10 %", "50 %"])
def test_for_two_classes_the_headline_holds_the_frequency_in_the_bin_at_its_level(kind):
    case = Case(300, SHARES[kind], settings_of("single", 300, taxonomy="class"))
    found = [one for one in (measured(case, draw) for draw in range(DRAWS)) if one]
    assert len(found) > DRAWS // 2
    assert np.mean([one["headline"][0] for one in found]) >= LEVEL
    # The measure tells intervals that hold it from those that do not.
    assert np.mean([one["venn"][0] for one in found]) < LEVEL


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_headline_holds_the_frequency_in_the_bin_for_every_machine_and_class(
    name, kind, tell_line
):
    check_headline(name, kind, 1000, 12, tell_line)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("n", "draws"), [(300, 40), (5000, 4)])
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("name", SETTINGS)
def test_so_it_does_with_fewer_and_with_more_examples(name, kind, n, draws, tell_line):
    check_headline(name, kind, n, draws, tell_line)


def check_headline(name, kind, n, draws, tell_line):
    settings = settings_of(n=n, **SETTINGS[name])
    lines = list(means(f"{name}, {kind}, n = {n:,}", Case(n, SHARES[kind], settings), draws))
    for line in lines:
        tell_line(line)
    assert lines[0].interval == "headline"
    if kind == "four classes":  # it is about P(y | p): see below
        assert lines[0].of_point > lines[1].of_point
    else:
        assert lines[0].of_bin >= LEVEL


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("n", [500, 2600])
@pytest.mark.parametrize("k", BY_CLASSES)
def test_the_headline_holds_what_its_probability_means_for_two_classes_and_for_more(
    k, n, tell_line
):
    case = Case(n, BY_CLASSES[k], {"maps": ()}, has_band=False)
    line, *_ = means(f"default, {k} classes, n = {n:,}", case, MANY[k])
    assert line.interval == "headline"
    tell_line(line)
    assert 0.88 <= line.of_point <= 0.99
    assert line.error < 0.015


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", RANGED)
@pytest.mark.parametrize("delay", [0, 250, 2000])
def test_the_headline_holds_the_truth_at_its_level_in_each_range_of_p(delay, kind, tell_line):
    streams = spread(partial(by_range, RANGED[kind], delay), list(range(N_RANGED)))
    for look, figures in zip(("stream", "fresh"), np.sum(streams, axis=0), strict=True):
        counts, hits, widths = figures
        pairs = list(zip(hits, counts, strict=True))
        shown = "  ".join(f"{held / n:4.0%}" if n else "none" for held, n in pairs)
        width = widths.sum() / counts.sum()
        tell_line(f"{kind:<11}{delay:>5} late {look:<8}{shown}  width {width:.3f}")
        least = FEWEST if look == "stream" else FEWEST * len(LOOKS)
        assert min(held / n for held, n in pairs if n >= least) >= 0.87


def test_the_logistic_band_holds_the_truth_where_the_truth_is_logistic():
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=400)
        band = logistic_band(scores, rng.random(400) < expit(2.0 * scores - 0.5), np.array([0.7]))
        assert band is not None
        held.append(band[0][0] <= expit(0.9) <= band[1][0])
    assert 0.85 <= np.mean(held) <= 0.95
