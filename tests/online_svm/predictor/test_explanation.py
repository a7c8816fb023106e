"""The contributions of features to an answer."""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.explanation import contributions
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example


def test_a_category_is_compared_with_the_most_frequent_one():
    rng = np.random.default_rng(4)
    predictor = OnlinePredictor(PredictorConfig(classes=("a", "b"), refit_every=50))
    for _ in range(200):
        land = "DE" if rng.random() < 0.7 else "FR"
        size, label = float(rng.normal()), "b" if land == "FR" else "a"
        predictor.step(Example({"land": land, "size": size, "note": None}, label))
    row = predictor.schema.row({"land": "FR", "size": 0.0, "note": None})
    usual = predictor.schema.row({"land": "DE", "size": 0.0, "note": None})
    state, names = predictor.frozen(), predictor.schema.names
    found = contributions(predictor, row)
    assert names[found[0].feature] == "land"
    assert found[0].typical is None
    own, other = (state.answer(np.array([x])).point[0, 1] for x in (row, usual))
    assert found[0].effect == own - other > 0.3
    assert contributions(OnlinePredictor(PredictorConfig()), [1.0]) == ()
    before = predictor.snapshot()
    contributions(predictor, row)
    assert predictor.snapshot() == before
