"""The windowed part of a report, made from the answers of the predictor itself."""

from dataclasses import asdict

import numpy as np
from predictor_answers import flat

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import unpack
from online_svm.stream.validity_report import ValidityReport

SETTINGS = {
    "committee": "single", "maps": (), "window": 100, "refit_every": 50, "metrics_every": 40,
    "metrics_window": 60,
}  # fmt: skip


def stream(m=320, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, np.where(X[:, 0] + rng.normal(size=m) > 0, "yes", "no").tolist()


def predictor(**changes):
    return OnlinePredictor(PredictorConfig(**SETTINGS | {"classes": ("no", "yes")} | changes))


def test_the_window_changes_no_answer_and_no_cumulative_figure_and_without_one_nothing_is_stored():
    X, labels = stream()
    with_window, without = predictor(), predictor(metrics_window=None)
    pairs = zip(
        flat(with_window.step_many(X, labels)), flat(without.step_many(X, labels)), strict=True
    )
    for one, other in pairs:
        if isinstance(one, ValidityReport):
            assert asdict(one) | {"windowed": None} == asdict(other)
        else:
            assert one == other
    header, arrays = unpack(without.snapshot())
    assert "windowed" not in header
    assert not [name for name in arrays if name.startswith("windowed")]
