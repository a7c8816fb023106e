"""What every headline keeps to, and how a report scores it beside the Venn predictor."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.scores import accuracy, brier, log_loss
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.answer_columns import COLUMNS
from online_svm.stream.prediction import PredictionBlock, ValidityReport

SHORT = {"window": 80, "refit_every": 40, "refit_lag": 0, "metrics_every": 240}
CONFIGS = {
    "single": {"classes": ("a", "b"), "committee": "single"},
    "single of three": {"classes": ("a", "b", "c"), "committee": "single"},
    "committee": {"classes": ("a", "b"), "committee": "default"},
    "committee of three": {"classes": ("a", "b", "c"), "committee": "default"},
    "discovered": {"committee": "default"},
}


def stream(names, count=240, seed=0):
    """Return rows and labels, the last of the names only in the second half."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(names), count)
    codes[: count // 2] %= max(2, len(names) - 1)
    X = rng.normal(size=(count, 3))
    X[:, 0] += codes
    return X, [names[code] for code in codes]


def answered(config, names):
    X, labels = stream(names)
    answers = OnlinePredictor(config).step_many(X, labels)
    blocks = [one for one in answers if isinstance(one, PredictionBlock) and one.status == "ok"]
    reports = [one for one in answers if isinstance(one, ValidityReport)]
    return blocks, [labels[n] for block in blocks for n in block.n], reports


@pytest.fixture(scope="module", params=CONFIGS)
def run(request):
    config = PredictorConfig(**SHORT, **CONFIGS[request.param])
    return answered(config, config.classes or ("a", "b", "c"))


def test_the_interval_holds_the_probability_and_the_label_has_the_largest(run):
    for block in run[0]:
        assert (block.lower >= 0).all()
        assert (block.lower <= block.point).all()
        assert (block.point <= block.upper).all()
        assert (block.upper <= 1).all()
        np.testing.assert_allclose(block.point.sum(axis=1), 1.0, atol=1e-12)
        assert (block.label == block.point.argmax(axis=1)).all()


def test_the_hull_holds_the_point_of_the_venn_predictor(run):
    for block in run[0]:
        assert (block.venn_lower <= block.venn_point).all()
        assert (block.venn_point <= block.venn_upper).all()


def test_a_headline_of_the_venn_predictor_is_its_mean_and_its_hull(run):
    named = [block for block in run[0] if block.method == "venn"]
    for block in named:
        assert (block.point == block.venn_point).all()
        if block.interval_level is None:
            assert (block.lower == block.venn_lower).all()
            assert (block.upper == block.venn_upper).all()


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "discovered"])
def test_a_report_scores_headline_and_venn_predictor_each_by_its_own_probabilities(name):
    config = PredictorConfig(**SHORT, **CONFIGS[name])
    blocks, labels, (report,) = answered(config, config.classes)
    assert report.scored == len(labels) > 150
    codes = np.array([config.classes.index(label) for label in labels])
    for found, source in ((report.headline, ""), (report.venn, "venn_")):
        point, lower, upper = (
            np.concatenate([getattr(block, source + part) for block in blocks])
            for part in ("point", "lower", "upper")
        )
        chosen = np.arange(len(codes)), point.argmax(axis=1)
        assert found.log_loss == pytest.approx(log_loss(point, codes), rel=1e-12)
        assert found.brier == pytest.approx(brier(point, codes), rel=1e-12)
        assert found.predicted.accuracy == accuracy(chosen[1], codes)
        assert found.predicted.probability == pytest.approx(point[chosen].mean(), rel=1e-12)
        assert found.predicted.lower == pytest.approx(lower[chosen].mean(), rel=1e-12)
        assert found.predicted.upper == pytest.approx(upper[chosen].mean(), rel=1e-12)


def test_every_method_that_an_answer_may_name_is_described(run):
    (column,) = [column for column in COLUMNS if column.name == "method"]
    for block in run[0]:
        assert f"`{block.method}`:" in column.description
