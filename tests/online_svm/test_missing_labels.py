"""A missing label is refused in one sentence, through every door, and becomes no class."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from system_tools import package

from online_svm import (
    ImpliedPosterior,
    InductiveVennClassifier,
    OnlineCalibrator,
    OnlineClassifier,
    OnlineSVC,
    ProbabilisticSVC,
    ProbabilitySVC,
    river,
)
from online_svm.errors import InvalidInput

MISSING = [
    None, float("nan"), np.float64("nan"), pd.NaT, pd.NA, np.datetime64("NaT", "s"), Decimal("NaN"),
    Decimal("sNaN"),
]  # fmt: skip
KINDS = {"text": ["a", "b"], "boolean": [False, True], "number": [0, 1]}
each_label = pytest.mark.parametrize("missing", MISSING, ids=repr)
each_kind = pytest.mark.parametrize("kind", KINDS)
SENTENCE = r"^y: a label is (None|nan|NaT|<NA>|NaN|sNaN); leave such rows out$"
X = np.random.default_rng(0).normal(size=(20, 2))


def refuses(call):
    with pytest.raises(InvalidInput, match=SENTENCE):
        call()


@each_label
@each_kind
@pytest.mark.parametrize("form", [list, pd.Series, lambda y: np.array(y, dtype=object)])
def test_scikit_learn_doors_refuse_a_missing_label(missing, kind, form):
    classes = KINDS[kind]
    y = form([*classes * 9, classes[0], missing])
    online = [
        OnlineClassifier(), OnlineSVC(), InductiveVennClassifier(), OnlineCalibrator(GaussianNB()),
    ]  # fmt: skip
    for model in (*online, ProbabilitySVC(), ProbabilisticSVC(), ImpliedPosterior()):
        refuses(lambda model=model: model.fit(X, y))
    for model in online:
        refuses(lambda model=model: model.partial_fit(X, y, classes=classes))
        assert not hasattr(model, "classes_")
    for model in (OnlineClassifier(), OnlineCalibrator(GaussianNB())):
        refuses(lambda model=model: model.progressive_proba(X, y, classes=classes))
    frame = pd.DataFrame(X, columns=["f", "g"])
    refuses(lambda: OnlineClassifier().fit(frame, y))


def test_masked_values_are_not_read_as_what_is_below_the_mask():
    hidden = np.arange(20) == 7
    y = np.ma.array(np.arange(20) % 2, mask=hidden)
    masked = np.ma.array(X, mask=np.column_stack([hidden, hidden]))
    for model in (OnlineClassifier(), OnlineSVC(), OnlineCalibrator(GaussianNB())):
        with pytest.raises(InvalidInput, match=r"^y: a label is masked; leave such rows out$"):
            model.fit(X, y)
    with pytest.raises(InvalidInput, match=r"^y: a label is masked; leave such rows out$"):
        river.OnlineClassifier().learn_one({"f": 1.0}, np.ma.masked)
    way_on = r"^X: masked values are not taken; give them as NaN: X\.astype\(float\)\.filled"
    for model in (OnlineClassifier(missing="mean"), OnlineSVC()):
        with pytest.raises(InvalidInput, match=way_on):
            model.fit(masked, y.data)
    with pytest.raises(InvalidInput, match=way_on):
        OnlineCalibrator(scores="margin").fit(masked[:, 0], y.data)
    filled = masked.astype(float).filled(float("nan"))
    assert np.isnan(filled[7]).all()
    OnlineClassifier(missing="mean").fit(filled, y.data)
    plain = np.ma.array(X, mask=False), np.ma.array(y.data, mask=False)
    assert OnlineClassifier().fit(*plain).classes_.tolist() == [0, 1]


def test_labels_of_arrow_are_those_of_python():
    pa = package("pyarrow", installed_by="pip install 'online-svm[archive]'")
    frame = pd.DataFrame(X, columns=["f", "g"])
    model = river.OnlineClassifier()
    model.learn_many(frame, pa.array(["a", "b"] * 10))
    model.learn_one({"f": 1.0, "g": 0.0}, pa.scalar("a"))
    assert [*model.predict_proba_one({"f": 0.0, "g": 0.0})] == ["a", "b"]
    refuses(lambda: model.learn_many(frame, pa.array(["a", None] * 10)))
    refuses(lambda: model.learn_one({"f": 1.0}, pa.scalar(None)))


TEXTS = ["a", "b"] * 9 + ["a", None]
COUNTS = [0, 1] * 9 + [0, None]


def test_a_missing_label_of_any_column_type_is_refused():
    for y in (
        pd.Series(TEXTS, dtype="string"), pd.Series(TEXTS, dtype="category"),
        pd.Series(COUNTS, dtype="Int64"),
    ):  # fmt: skip
        refuses(lambda y=y: OnlineClassifier().fit(X, y))


def test_a_missing_label_in_a_column_of_polars_is_refused():
    polars = package("polars", "pip install polars")
    for y in (polars.Series(TEXTS), polars.Series(COUNTS)):
        refuses(lambda y=y: OnlineClassifier().fit(X, y))


def test_a_missing_class_is_refused():
    refuses(lambda: OnlineClassifier().partial_fit(X, ["a", "b"] * 10, classes=["a", "b", None]))


@each_label
@each_kind
@pytest.mark.parametrize("is_declared", [False, True])
def test_river_doors_refuse_a_missing_label(missing, kind, is_declared):
    model = river.OnlineClassifier(classes=KINDS[kind] if is_declared else None)
    refuses(lambda: model.learn_one({"f": 1.0}, missing))
    y = pd.Series([*KINDS[kind] * 9, KINDS[kind][0], missing], dtype=object)
    refuses(lambda: model.learn_many(pd.DataFrame(X, columns=["f", "g"]), y))
    assert list(model.predict_proba_one({"f": 1.0})) == (KINDS[kind] if is_declared else [])
