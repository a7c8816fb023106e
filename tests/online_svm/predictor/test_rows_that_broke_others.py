"""Rows that raised an error elsewhere, as reported to river (github.com/online-ml/river/issues)."""

import numpy as np
import pandas as pd
import pytest

from online_svm import Example, OnlinePredictor, PredictorConfig
from online_svm.stream.frames import examples

QUICK = {"window": 120, "refit_every": 30, "refit_lag": 0}
PARCEL = {"customer": "GLS 1091", "postal": "3044EW", "city": "Rotterdam", "weekday": 2}
FEW, ALL = {"a": 13}, {"a": 13, "b": None, "c": ""}

REPORTED = {
    # TypeError, str - float: texts beside a number; and a label that is a text.
    "817": ([PARCEL, PARCEL | {"city": "Breda"}],
            [PARCEL | {"weekday": "2"}, PARCEL | {"city": " Breda"}]),
    # TypeError, str - float: a column of a CSV file that has texts among its numbers.
    "859": ([{"port": "80"}, {"port": "http"}], [{"port": 80.0}, {"port": "http"}]),
    # TypeError: numbers of a CSV file are texts until someone converts them.
    "1056": ([{"v": "0.5", "w": "-1"}, {"v": "2e1", "w": "3"}],
             [{"v": 0.5, "w": -1}, {"v": 20, "w": 3.0}]),
    # ValueError: an empty cell in a column of whole numbers.
    "582": ([{"v": "5", "w": ""}, {"v": "", "w": "2"}], [{"v": 5, "w": None}, {"w": 2}]),
    # A numeric feature that is None now and then.
    "301": ([{"v": None, "w": 1}, {"v": 4, "w": None}], [{"w": 1}, {"v": 4, "w": float("nan")}]),
    # ValueError, sample larger than population: fewer features than the first examples had.
    "1560": ([FEW, {"a": 2, "b": 2, "c": 0}], [ALL, {"a": 2, "b": 2, "c": 0}]),
    # TypeError, str - str: a distance between texts.
    "1565": ([{"a": "river"}, {"a": "sea"}], [{"a": "river "}, {"a": "\tsea"}]),
}  # fmt: skip
"""By number: two rows, and the same rows as other programs would want them, or otherwise spelled.
"""


def rows_of(pair, count=90):
    """Return examples of two rows by turns, some of them with the wrong label."""
    rng = np.random.default_rng(0)
    return [Example(pair[i % 2], "test" if (i + (rng.random() < 0.1)) % 2 else "other")
            for i in range(count)]  # fmt: skip


@pytest.mark.parametrize("number", REPORTED)
def test_what_broke_others_is_answered_and_learned(number):
    asked, plain = REPORTED[number]
    predictor, twin = (OnlinePredictor(PredictorConfig(**QUICK)) for _ in range(2))
    answers = [predictor.step(example) for example in rows_of(asked)]
    assert predictor.n == 90
    assert [answer.label for answer in answers[-2:]] == ["other", "test"]
    assert answers == [twin.step(example) for example in rows_of(plain)]


def test_a_feature_that_was_never_seen_changes_no_answer():  # river #2001: it became NaN
    predictor, twin = (OnlinePredictor(PredictorConfig(**QUICK)) for _ in range(2))
    for example in rows_of([{"x": 1.0}, {"x": 5.0}]):
        predictor.step(example)
        twin.step(example)
    assert predictor.step(Example({"x": 3.0, "y": 2.0})) == twin.step(Example({"x": 3.0}))


def test_a_data_frame_with_a_column_of_many_texts_takes_bounded_columns():  # river #1253: memory
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"cat": [f"c{i}" for i in rng.integers(1, 100, 500)],
                          "size": rng.normal(size=500)})  # fmt: skip
    frame["cat"] = frame["cat"].astype("string")
    frame["y"] = np.where(frame["size"] > 0.0, "yes", "no")
    predictor = OnlinePredictor(PredictorConfig(**QUICK | {"window": None, "max_categories": 64}))
    answers = [predictor.step(example) for example in examples(frame, "y")]
    are_right = [a.label == y for a, y in zip(answers, frame["y"], strict=True)]
    assert np.mean(are_right[250:]) > 0.8
    assert predictor.active.result.scaling.coding.width == 65
