"""OnlineCalibrator hands X to a user's own model as it is, and calibrates scores of unseen rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from system_tools import package

from online_svm import InductiveVennClassifier, OnlineCalibrator, OnlineClassifier
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.stream.split import shuffled

pl = package("polars", "pip install polars")
pa = package("pyarrow", "pip install 'online-svm[archive]'")

N = 240
RNG = np.random.default_rng(0)
AGE = RNG.normal(40.0, 12.0, N)
TOWN = RNG.choice(["Ulm", "Köln", "Bonn"], N)
Y = np.where(AGE + 12.0 * (TOWN == "Ulm") + RNG.normal(0.0, 12.0, N) > 44.0, "yes", "no")
FRAME = pd.DataFrame({"age": AGE, "town": TOWN, "paid": RNG.uniform(size=N) < 0.5})
GAPS = np.where(RNG.uniform(size=(N, 2)) < 0.2, np.nan, np.column_stack([AGE, AGE**2]))
TEXTS = [f"{town} {'old' if age > 44 else 'young'}" for age, town in zip(AGE, TOWN, strict=True)]
DICTS = FRAME[["age", "town"]].to_dict("records")


def by_name():
    encoded = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["town"]), (StandardScaler(), ["age"])
    )
    return make_pipeline(encoded, LogisticRegression())


def by_dtype():
    encoded = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
    )
    return make_pipeline(encoded, RandomForestClassifier(20, random_state=0))


def of_categories():
    return HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20)


class ByRow(ClassifierMixin, BaseEstimator):
    """A classifier of rows of any kind, which it tells by their text."""

    def fit(self, X, y):  # noqa: ARG002  (the rows are not learned)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.array([0.1 + 0.8 * (len(str(row)) % 2) for row in X])
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


MODELS = {
    "pandas by name": (by_name, FRAME),
    "pandas by dtype": (by_dtype, FRAME),
    "pandas of one kind": (
        lambda: make_pipeline(OrdinalEncoder(), LogisticRegression()),
        FRAME[["town", "paid"]],
    ),
    "pandas nullable": (by_name, FRAME.convert_dtypes()),
    "pandas with an index": (by_name, FRAME.set_axis([f"r{i}" for i in range(N)])),
    "pandas categories": (of_categories, FRAME.astype({"town": "category"})),
    "pandas with gaps": (of_categories, FRAME[["age"]].mask(FRAME[["age"]] > 55.0)),
    "polars by name": (by_name, pl.from_pandas(FRAME)),
    "polars categories": (
        of_categories,
        pl.from_pandas(FRAME).with_columns(pl.col("town").cast(pl.Categorical)),
    ),
    "Arrow by name": (by_name, pa.Table.from_pandas(FRAME)),
    "sparse rows": (LogisticRegression, sparse.csr_matrix(np.column_stack([AGE / 40, AGE > 44]))),
    "sparse array": (LogisticRegression, sparse.csr_array(np.column_stack([AGE / 40, AGE > 44]))),
    "texts": (lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS),
    "series of texts": (
        lambda: make_pipeline(TfidfVectorizer(), LogisticRegression()),
        pd.Series(TEXTS),
    ),
    "dicts": (lambda: make_pipeline(DictVectorizer(), LogisticRegression(max_iter=999)), DICTS),
    "gaps": (lambda: HistGradientBoostingClassifier(max_iter=20), GAPS),
    "lists": (LogisticRegression, [[float(age)] for age in AGE]),
    "three axes": (ByRow, np.stack([GAPS, GAPS], axis=1)),
    "search": (lambda: GridSearchCV(by_name(), {"logisticregression__C": [0.1, 1.0]}, cv=2), FRAME),
}


def part(X, begin, stop):
    return X.slice(begin, stop - begin) if isinstance(X, pa.Table) else X[begin:stop]


def scikit_learn_takes(model, X):
    """Return whether scikit-learn's own calibration of the fitted model takes these rows."""
    try:
        CalibratedClassifierCV(FrozenEstimator(model)).fit(X, Y).predict_proba(X)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_any_kind_reach_the_model_unchanged(name):
    make, X = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make().fit(part(X, 0, 100), Y[:100])
        calibrator = OnlineCalibrator.from_prefit(model)
        calibrator.partial_fit(part(X, 100, 150), Y[100:150])
        live = calibrator.progressive_proba(part(X, 150, N), Y[150:])
        calibrator.update_one(part(X, 0, 1) if len(getattr(X, "shape", ())) == 2 else X[0], Y[0])
        found = calibrator.predict_proba(X)
        intervals, labels = calibrator.predict_interval(X), calibrator.predict(X)
    assert scikit_learn_takes(model, X)
    alone = OnlineCalibrator().partial_fit(model.predict_proba(part(X, 100, 150)), Y[100:150])
    assert np.array_equal(
        live, alone.progressive_proba(model.predict_proba(part(X, 150, N)), Y[150:])
    )
    alone.update_one(model.predict_proba(part(X, 0, 1))[0], Y[0])
    assert np.array_equal(found, alone.predict_proba(model.predict_proba(X)))
    assert np.array_equal(intervals, alone.predict_interval(model.predict_proba(X)))
    assert labels.tolist() == np.array(["no", "yes"])[found.argmax(axis=1)].tolist()


DOORS = ("pandas by dtype", "polars by name", "Arrow by name", "sparse rows", "texts", "lists")
"""Rows of each kind, for the other methods that fit a model."""


@pytest.mark.parametrize(("name", "first"), [
    *((name, "fit") for name in MODELS),
    *((name, first) for name in DOORS for first in ("partial_fit", "progressive_proba")),
])  # fmt: skip
def test_models_are_fitted_with_rows_of_any_kind(name, first):
    make, X = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineCalibrator(make())
        getattr(model, first)(X, Y)
        found = model.predict_proba(X)
    stated = model.estimator_.predict_proba(X)
    assert np.array_equal(stated, make().fit(X, Y).predict_proba(X))
    assert found.shape == (N, 2)


def test_scores_of_an_unfrozen_model_are_cross_fitted():
    X, y = GAPS, Y
    make = MODELS["gaps"][0]
    order = shuffled(N, 0)
    held_out = cross_val_predict(make(), X, y, cv=StratifiedKFold(5), method="predict_proba")
    alone = OnlineCalibrator().partial_fit(held_out[order], y[order])
    wanted = alone.predict_proba(make().fit(X, y).predict_proba(X))
    assert np.array_equal(OnlineCalibrator(make()).fit(X, y).predict_proba(X), wanted)


def test_a_frozen_model_is_neither_fitted_nor_cloned():
    fitted = LogisticRegression().fit(AGE[:100, None], Y[:100])
    weights = fitted.coef_.copy()
    model = OnlineCalibrator(FrozenEstimator(fitted)).fit(AGE[100:, None], Y[100:])
    assert model.estimator_.estimator is fitted
    assert np.array_equal(fitted.coef_, weights)
    order = shuffled(N - 100, 0)
    stated = fitted.predict_proba(AGE[100:, None])[order]
    alone = OnlineCalibrator().partial_fit(stated, Y[100:][order])
    asked = AGE[:, None]
    assert np.array_equal(
        model.predict_proba(asked), alone.predict_proba(fitted.predict_proba(asked))
    )


def assert_as_good_as_scikit_learn(X, y):
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    forest = RandomForestClassifier(40, random_state=0)
    theirs = CalibratedClassifierCV(forest, ensemble=False).fit(train, y_train)
    ours = OnlineCalibrator(forest).fit(train, y_train)
    loss, wanted = (log_loss(y_test, each.predict_proba(test)) for each in (ours, theirs))
    assert loss < wanted + 0.02


def test_on_german_credit_it_is_as_good_as_the_calibration_of_scikit_learn(data_set):
    found = data_set("german")
    assert_as_good_as_scikit_learn(found.X, found.y)


def test_a_class_with_too_few_rows_for_folds_is_named():
    labels = np.array(["a", "b"] * 20 + ["c"])
    with pytest.raises(InvalidInput, match=r"class 'c' has one row.*from_prefit"):
        OnlineCalibrator(LogisticRegression()).fit(np.arange(41.0)[:, None], labels)
    labels[0] = "c"
    model = OnlineCalibrator(LogisticRegression()).fit(np.arange(41.0)[:, None], labels)
    assert model.predict_proba([[0.0]]).shape == (1, 3)


def test_a_class_that_the_model_never_saw_may_be_declared():
    X = AGE[:, None] / 40
    model = OnlineCalibrator(LogisticRegression())
    model.partial_fit(X, Y, classes=["maybe", "no", "yes"])
    assert model.predict_proba(X).shape == (N, 3)
    assert model.predict_proba(X)[:, 0].max() < 0.1
    fitted = LogisticRegression().fit(X, np.where(AGE > 44, 2, np.arange(N) % 2))
    both = OnlineCalibrator(FrozenEstimator(fitted)).fit(X, np.arange(N) % 2)
    assert both.classes_.tolist() == [0, 1, 2]


class Reversed(ByRow):
    """A classifier whose classes are not sorted, as those of other libraries may be."""

    def fit(self, X, y):  # noqa: ARG002  (the rows are not learned)
        self.classes_ = np.unique(y)[::-1]
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=float)[:, 0]

    def predict_proba(self, X):
        return np.column_stack([self.decision_function(X), 1.0 - self.decision_function(X)])


@pytest.mark.parametrize("kind", ["probability", "margin"])
def test_classes_of_a_model_may_have_any_order(kind):
    p = RNG.uniform(size=N)
    y = np.where(RNG.uniform(size=N) < p, "a", "b")
    fitted = Reversed().fit(p[:, None], y)  # its first class is "b"
    model = OnlineCalibrator.from_prefit(fitted, scores=kind).partial_fit(p[:, None], y)
    given = 1.0 - np.column_stack([p, 1.0 - p]) if kind == "probability" else -p
    alone = OnlineCalibrator(scores=kind).partial_fit(given, y)
    assert np.array_equal(model.predict_proba(p[:, None]), alone.predict_proba(given))


class Duck:
    """A model of no library at all."""

    classes_ = ("no", "yes")

    def predict_proba(self, X):
        return np.column_stack([1.0 - np.asarray(X), X])


def test_a_model_of_no_library_is_calibrated():
    p = RNG.uniform(size=N)
    model = OnlineCalibrator.from_prefit(Duck()).partial_fit(p, Y)
    alone = OnlineCalibrator().partial_fit(p, Y)
    assert np.array_equal(model.predict_proba(p), alone.predict_proba(p))


X2 = np.column_stack([AGE / 40, AGE > 44])
Y3 = np.arange(N) % 3
OVO = SVC(decision_function_shape="ovo").fit(X2, Y3)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OnlineCalibrator.from_prefit(LinearSVC().fit(X2, Y)),
         "LinearSVC has no predict_proba; scores='margin' takes its"),
        (lambda: OnlineCalibrator(LinearSVC()).fit(X2, Y), "scores='margin' takes its"),
        (lambda: OnlineCalibrator(RandomForestClassifier(), "margin").partial_fit(X2, Y),
         "no decision_function; scores='probability' takes its"),
        (lambda: OnlineCalibrator.from_prefit(LogisticRegression()), "give a classifier after its"),
        (lambda: OnlineCalibrator(FrozenEstimator(by_name())).fit(FRAME, Y), "after its fit"),
        (lambda: OnlineCalibrator.from_prefit(LogisticRegression), "give a fitted instance"),
        (lambda: OnlineCalibrator.from_prefit(LinearRegression().fit(X2, AGE)), "has no classes_"),
        (lambda: OnlineCalibrator(LinearRegression()).fit(X2, Y3), "neither predict_proba nor"),
        (lambda: OnlineCalibrator.from_prefit(
            MultiOutputClassifier(LogisticRegression()).fit(X2, np.column_stack([Y3, Y3 > 0]))),
         "several outputs"),
        (lambda: OnlineCalibrator.from_prefit(OVO, scores="margin").partial_fit(X2, Y3), "ovr"),
        (lambda: OnlineCalibrator(OVO, "margin").fit(X2, Y3), "ovr"),
        (lambda: OnlineCalibrator(make_pipeline(StandardScaler(), OVO), "margin").fit(X2, Y3),
         "ovr"),
        (lambda: InductiveVennClassifier(OVO).fit(X2, Y3), "ovr"),
        (lambda: OnlineCalibrator(
            SVC(decision_function_shape="ovo"), "margin").fit(X2, np.arange(N) % 4), "ovr"),
        (lambda: InductiveVennClassifier(RandomForestClassifier()).fit(X2, Y),
         "no decision_function; OnlineCalibrator takes"),
        (lambda: OnlineCalibrator.from_prefit(by_name().fit(FRAME, Y)).predict_proba(X2),
         "Pipeline"),
        (lambda: OnlineCalibrator.from_prefit(
            MODELS["texts"][0]().fit(TEXTS, Y)).predict_proba(X2), "Pipeline: 'numpy.ndarray'"),
        (lambda: OnlineCalibrator.from_prefit(by_name().fit(FRAME, Y)).predict_proba(
            pl.from_pandas(FRAME).lazy()), r"give X\.collect\(\)"),
        (lambda: OnlineCalibrator(by_name()).fit(iter(DICTS), Y), r"give list\(X\)"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_used_is_named_with_the_way_on(make, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


P = RNG.uniform(size=N)
BOTH = pd.DataFrame({"yes": P, "no": 1.0 - P})


@pytest.mark.parametrize(
    "named",
    [
        BOTH, pl.from_pandas(BOTH), pa.Table.from_pandas(BOTH), BOTH["yes"], BOTH[["yes"]],
        BOTH["yes"].rename("risk"), pl.Series("yes", P), pa.chunked_array([P]),
        pd.DataFrame(np.column_stack([1.0 - P, P])), BOTH.astype("Float64"),
    ],
)  # fmt: skip
def test_columns_of_scores_are_found_by_the_names_of_the_classes(named):
    model = OnlineCalibrator().partial_fit(named, Y)
    wanted = OnlineCalibrator().partial_fit(np.column_stack([1.0 - P, P]), Y)
    assert np.array_equal(model.predict_proba(named), wanted.predict_proba(P))


def test_columns_of_other_labels_than_texts_are_found_too():
    stated = np.column_stack([P / 2, 1.0 - P, P / 2])
    for labels, names in (
        (Y3, [2, 0, 1]),
        (Y3, ["2", "0", "1"]),
        (Y3 + 0.0, ["2.0", "0.0", "1.0"]),
    ):
        frame = pd.DataFrame(stated[:, [2, 0, 1]], columns=names)
        model = OnlineCalibrator().partial_fit(frame, labels)
        alone = OnlineCalibrator().partial_fit(stated, labels)
        assert np.array_equal(model.predict_proba(frame), alone.predict_proba(stated))


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (BOTH.set_axis(["p", "q"], axis=1), "give one for each of the classes, 'no', 'yes'"),
        (BOTH.set_axis(["yes", "q"], axis=1), "the columns 'yes', 'q'"),
        (BOTH.set_axis(["yes", "yes"], axis=1), "two columns have the name 'yes'"),
        (BOTH["no"], "the columns 'no'"),
        (BOTH.to_dict("records"), r"pandas\.DataFrame"),
        (pl.from_pandas(BOTH).lazy(), "collect"),
        (iter(P), "list"),
        (0.5, "array-like"),
        (np.zeros((N, 2, 2)), "shape"),
    ],
)
def test_scores_in_other_forms_are_refused_by_name(named, says):
    with pytest.raises(InvalidInput, match=says):
        OnlineCalibrator().partial_fit(named, Y)


@pytest.mark.parametrize("beyond", [1e-12, 1e-5])
def test_probabilities_beyond_their_ends_by_rounding_are_clipped(beyond):
    p = np.where(P < 0.1, -beyond, np.where(P > 0.9, 1.0 + beyond, P))
    model = OnlineCalibrator().partial_fit(p, Y)
    alone = OnlineCalibrator().partial_fit(p.clip(0.0, 1.0), Y)
    assert np.array_equal(model.predict_proba(P), alone.predict_proba(P))
    both = OnlineCalibrator().partial_fit(np.column_stack([1.0 - p, p]), Y)
    assert np.array_equal(both.predict_proba(P), alone.predict_proba(P))


@pytest.mark.parametrize("scores", [[1.1, 0.5], [-2e-5, 0.5], [[0.5, 1.1], [0.5, 0.5]]])
def test_probabilities_further_beyond_are_refused_without_advice_to_call_them_margins(scores):
    with pytest.raises(ValueError, match="send a probability from 0 to 1") as caught:
        OnlineCalibrator().partial_fit(scores, ["a", "b"])
    assert "margin" not in str(caught.value)


def nightly():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 3))
    y = np.where(X[:, 0] + rng.logistic(size=900) > 0.0, "b", "a")
    models = [LogisticRegression(C=c).fit(X[:200] * f, y[:200]) for c, f in ((1, 1), (0.1, 2))]
    return X[200:], y[200:], models


def test_a_replaced_model_has_a_calibration_of_its_own():
    X, y, (monday, tuesday) = nightly()
    model = OnlineCalibrator.from_prefit(monday, "monday").partial_fit(X[:300], y[:300])
    model.replace(tuesday, "tuesday").partial_fit(X[300:600], y[300:600])
    alone = OnlineCalibrator()
    for each, rows, name in ((monday, slice(300), "monday"), (tuesday, slice(300, 600), "tuesday")):
        alone.partial_fit(each.predict_proba(X[rows]), y[rows], version=name)
    found, wanted = model.predict_proba(X), alone.predict_proba(tuesday.predict_proba(X), "tuesday")
    assert np.array_equal(found, wanted)
    assert model.version_ == "tuesday"
    assert model.estimator.estimator is tuesday


def test_a_model_that_cannot_replace_the_other_changes_nothing():
    X, y, (monday, _) = nightly()
    model = OnlineCalibrator.from_prefit(monday, 1).partial_fit(X, y)
    before = model.predict_proba(X)
    other = LogisticRegression().fit(X, np.where(y == "a", "c", y))
    for estimator, version, says in (
        (other, 2, "its class 'c' is none of"),
        (LogisticRegression(), 2, "after its fit"),
        (LinearSVC().fit(X, y), 2, "scores='margin'"),
        (monday, 2.5, "version of a score"),
    ):
        with pytest.raises(ValueError, match=says):
            model.replace(estimator, version)
    assert np.array_equal(model.predict_proba(X), before)
    assert model.version_ == 1


def test_a_saved_calibrator_goes_on_with_the_model_that_load_is_given(tmp_path):
    X, y, (monday, tuesday) = nightly()
    model = OnlineCalibrator.from_prefit(monday, "monday", seed=3, settings={"metrics_every": 7})
    model.partial_fit(X[:300], y[:300]).replace(tuesday, "tuesday").partial_fit(X[300:], y[300:])
    model.save(tmp_path / "model")
    copy = OnlineCalibrator.load(tmp_path / "model", tuesday)
    assert copy.get_params().keys() == model.get_params().keys()
    assert {**copy.get_params(), "estimator": 0} == {**model.get_params(), "estimator": 0}
    assert (copy.version_, copy.n_features_in_) == ("tuesday", 3)
    assert np.array_equal(copy.predict_interval(X), model.predict_interval(X))
    for version in ("monday", None):
        on = [each.progressive_proba(X, y, version=version) for each in (model, copy)]
        assert np.array_equal(*on)
    with pytest.raises(InvalidInput, match=r"no copy of the LogisticRegression.*load\(path, est"):
        OnlineCalibrator.load(tmp_path / "model")
    with pytest.raises(InvalidSnapshot, match=r"load it with OnlineCalibrator\.load"):
        OnlineClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("labels", [("a", "b"), (False, True), (10, 9)])
def test_a_saved_calibrator_of_scores_alone_goes_on(tmp_path, labels):
    y = np.array(labels)[(P > 0.5).astype(int)]
    model = OnlineCalibrator(window=100).partial_fit(P, y)
    model.save(tmp_path / "model")
    copy = OnlineCalibrator.load(tmp_path / "model")
    assert copy.get_params() == model.get_params()
    assert copy.classes_.tolist() == model.classes_.tolist()
    on = [each.progressive_proba(P, y) for each in (model, copy)]
    assert np.array_equal(*on)


@pytest.mark.parametrize(
    "content",
    [b"hello, this is text\n" * 9, b"", b'{"a": 1}', b"PK\x03\x04" + bytes(99), bytes(99),
     b"\x80\x04\x95" + bytes(99)],
)  # fmt: skip
@pytest.mark.parametrize("kind", [OnlineCalibrator, OnlineClassifier])
def test_a_file_of_another_kind_is_named_as_such(tmp_path, kind, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InvalidSnapshot, match="neither a saved estimator nor a backup"):
        kind.load(tmp_path / "file")
