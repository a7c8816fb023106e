"""ProbabilitySVC against SVC(probability=True), and against its named replacement.

Every data set is split several times, in parts that have all classes: half of it, at most 1,000
rows, to fit to, at most 2,000 others to answer. Columns are scaled; parameters are the defaults.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm import ProbabilitySVC
from online_svm.metrics.scores import auc, brier, log_loss
from online_svm.types import Floats, Ints
from scripts.bench.kept import Names, mean_and_error
from scripts.bench.quality.streams import STREAMS, Examples, Read, codes_of, of_file, of_sklearn
from scripts.bench.quality.streams import stream as drawn
from scripts.bench.report import Result, beside, check
from scripts.command_line import chosen, tell
from workers.cli.common import DataDir, note
from workers.errors import BadConfiguration

MAX_FITTED, MAX_ANSWERED = 1000, 2000
TIMED = 4000
"""Rows of the timed fits: with a few hundred, the checks of arguments would dominate."""

PEER = "SVC(probability=True)"
METHODS: dict[str, Callable[[], Any]] = {
    "ProbabilitySVC": ProbabilitySVC,
    PEER: lambda: SVC(probability=True, random_state=0),
    "CalibratedClassifierCV": lambda: CalibratedClassifierCV(SVC(), ensemble=False),
}
OURS = "ProbabilitySVC"
MAX_TIME_RATIO = 1.25


MEASURES = ("log_loss", "brier", "auc", "seconds", "width")
"""The processor time of the fit; the interval of the most probable class, 0 without intervals."""

Scores = Mapping[str, Sequence[Mapping[str, float]]]
"""By method, the measures of each split."""


def run(
    sets: Names = None,
    splits: Annotated[int, typer.Option(min=1, help="Of each data set.")] = 5,
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure log loss, Brier score, AUC and fit time of ProbabilitySVC against SVC's own.

    A line has three figures of a measure: ProbabilitySVC, SVC(probability=True) and
    CalibratedClassifierCV(SVC(), ensemble=False). The AUC of several classes is the mean over
    classes against the rest.
    """
    ProbabilitySVC().fit([[0.0], [1.0]], [0, 1])  # imports what is loaded at first use
    found: dict[str, Scores] = {}
    for name in chosen("--sets", sets, ",", tuple(SETS)):
        tell(name)
        try:
            found[name] = scores_of(SETS[name], splits, data_dir)
        except BadConfiguration as error:
            note(f"not measured: {name}: {error}")
            continue
        values = means(found[name])
        yield Result({"set": name, "splits": splits} | values, [_line(name, values)])
    if found:
        yield of_all(found)
    for n_classes in (2, 4):
        tell(f"fit of {TIMED} rows")
        yield fit_time(n_classes)


def scores_of(read: Read, splits: int, data_dir: Path | None = None) -> Scores:
    """Return the scores of every method on so many splits of a data set."""
    found: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for seed in range(splits):
        X, codes = read(data_dir, seed)
        most = min(len(codes) // 2, MAX_FITTED)
        rest = min(len(codes) - most, MAX_ANSWERED)
        splitter = StratifiedShuffleSplit(1, train_size=most, test_size=rest, random_state=seed)
        fitted, answered = next(splitter.split(codes, codes))
        scaler = StandardScaler().fit(X[fitted])
        parts = scaler.transform(X[fitted]), codes[fitted], scaler.transform(X[answered])
        for method, make in METHODS.items():
            found[method].append(_scored(make(), *parts, codes[answered]))
    return found


def _scored(model: Any, X: Floats, codes: Ints, asked: Floats, truth: Ints) -> dict[str, float]:
    seconds = _fit_seconds(model, X, codes)
    proba, width = model.predict_proba(asked), 0.0
    if isinstance(model, ProbabilitySVC):
        bounds = model.predict_interval(asked)[np.arange(len(asked)), proba.argmax(axis=1)]
        width = float((bounds[:, 1] - bounds[:, 0]).mean())
    columns = range(1, 2) if proba.shape[1] == 2 else np.unique(truth)
    area = float(np.mean([auc(proba[:, k], truth == k) for k in columns]))
    values = log_loss(proba, truth), brier(proba, truth), area, seconds, width
    return dict(zip(MEASURES, values, strict=True))


def _fit_seconds(model: Any, X: Floats, codes: Ints) -> float:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", FutureWarning)  # that `probability` goes
        warnings.simplefilter("ignore", UserWarning)  # that a class has fewer rows than folds
        began = time.process_time()
        model.fit(X, codes)
        return time.process_time() - began


def fit_time(n_classes: int) -> Result:
    """Return the times of fits in turn, the least of three each, and their bound."""
    X, codes = _made(
        datasets.make_classification, n_samples=TIMED, n_features=10, n_informative=6,
        n_classes=n_classes, flip_y=0.05,
    )(None, 0)  # fmt: skip
    times = [[_fit_seconds(METHODS[name](), X, codes) for name in (OURS, PEER)] for _ in range(3)]
    ours, peer = map(min, zip(*times, strict=True))
    result = beside(f"fit, {TIMED:,} rows of {n_classes} classes", ours, peer)
    result.checks.append(check("fit time / that of SVC", ours / peer, MAX_TIME_RATIO))
    return result


def means(scores: Scores) -> dict[str, dict[str, float]]:
    """Return the mean of each measure for each method, as `means[measure][method]`."""
    return {
        measure: {
            method: float(np.mean([one[measure] for one in of_method]))
            for method, of_method in scores.items()
        }
        for measure in MEASURES
    }


def _line(name: str, found: Mapping[str, Mapping[str, float]]) -> str:
    shown = [f"{name:<16}"]
    for measure, label in (("log_loss", "log loss"), ("brier", "Brier"), ("auc", "AUC")):
        shown.append(f"{label} {' '.join(f'{one:.4f}' for one in found[measure].values())}")
    shown.append("ms" + "".join(f"{1e3 * one:5.0f}" for one in found["seconds"].values()))
    return "  ".join([*shown, f"width {found['width'][OURS]:.3f}"])


def of_all(found: Mapping[str, Scores]) -> Result:
    """Return the means over data sets, on how many ours is better or worse, and the bounds."""
    of_each = [means(scores) for scores in found.values()]
    whole = {
        measure: {
            method: float(np.mean([one[measure][method] for one in of_each])) for method in METHODS
        }
        for measure in MEASURES
    }
    compared = {measure: _compared(found, measure) for measure in ("log_loss", "brier", "auc")}
    ratios = {measure: whole[measure][OURS] / whole[measure][PEER] for measure in compared}
    checks = [
        check("log loss / that of SVC", ratios["log_loss"], 1.0),
        check("Brier score / that of SVC", ratios["brier"], 1.0),
        check("AUC / that of SVC", ratios["auc"], 0.9995, is_least=True),
    ]
    lines = [_line(f"mean of {len(found)}", whole)]
    lines += [
        f"{measure:<16}better on {one['better']}, worse on {one['worse']}; by more than two "
        f"standard errors {one['surely better']} and {one['surely worse']}"
        for measure, one in compared.items()
    ]
    return Result({"sets": len(found), "compared": compared} | whole, lines, checks)


def _compared(found: Mapping[str, Scores], measure: str) -> dict[str, int]:
    """Return on how many data sets ours is better or worse than SVC, and beyond noise."""
    counts = dict.fromkeys(("better", "worse", "surely better", "surely worse"), 0)
    sign = -1.0 if measure == "auc" else 1.0
    for scores in found.values():
        pairs = zip(scores[PEER], scores[OURS], strict=True)
        gains = [sign * (peer[measure] - ours[measure]) for peer, ours in pairs]
        mean, error = mean_and_error(gains)
        if abs(mean) < 1e-6:  # the same order of the same decision values
            continue
        verdict = "better" if mean > 0 else "worse"
        counts[verdict] += 1
        counts[f"surely {verdict}"] += error is not None and abs(mean) > 2 * error
    return counts


def _of_stream(name: str) -> Read:
    """Return a reader of a stream of `bench quality`; each seed draws a synthetic stream again."""
    is_drawn = STREAMS[name].order == "drawn"
    return lambda data_dir, seed: drawn(name, seed if is_drawn else 0, data_dir)


def _made(make: Callable[..., Any], **options: Any) -> Read:
    def read(_: Path | None, seed: int) -> Examples:
        X, y = make(random_state=seed, **options)
        return X, codes_of(y)

    return read


SETS: dict[str, Read] = {
    **{name: of_file(name) for name in ("australian", "bupa", "diabetes", "elec2", "ionosphere")},
    **{
        name: _of_stream(name)
        for name in ("adult", "bananas", "phishing", "shuttle", "web", "agrawal", "random-rbf")
    },
    "hastie": _made(datasets.make_hastie_10_2, n_samples=3000),
    "circles": _made(datasets.make_circles, n_samples=1500, noise=0.25, factor=0.6),
    **{name: _of_stream(name) for name in ("car", "segment", "waveform", "wine")},
    "digits": of_sklearn("digits"),
    "rings": _made(datasets.make_gaussian_quantiles, n_samples=1500, n_features=3, n_classes=5),
}
"""On these nothing was chosen: twenty, six of them of more than two classes."""
