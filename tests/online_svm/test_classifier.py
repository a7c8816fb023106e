"""OnlineClassifier: scikit-learn's own checks, the predictor's answers, frames, labels, weights."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter
from system_tools import package

from online_svm import (
    Example,
    InductiveVennClassifier,
    OnlineClassifier,
    OnlinePredictor,
    OnlineSVC,
    PredictorConfig,
)
from online_svm.errors import InvalidConfig, InvalidExample, InvalidInput
from online_svm.stream.split import shuffled

QUICK = {"committee": "single", "window": 200, "refit_every": 50}


@parametrize_with_checks([OnlineClassifier(), OnlineClassifier(missing="mean", **QUICK)])
def test_it_passes_all_checks_of_scikit_learn(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # else the check of arrays of other kinds is skipped
    check(estimator)


def blobs(count=260, labels=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(labels), count)
    return rng.normal(size=(count, 3)) + 1.2 * codes[:, None], np.array(labels)[codes]


def table(count=260, seed=0):
    """Return rows of every kind with gaps, as columns, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.random(count) < 0.5
    lacks = rng.random(count) < 0.1
    days = np.datetime64("2024-01-05", "ms") + np.arange(count) * np.timedelta64(1, "h")
    columns = {
        "amount": np.where(lacks, np.nan, rng.normal(size=count) + y).tolist(),
        "country": [None if i % 17 == 3 else "DFI"[i % 2 + label] for i, label in enumerate(y)],
        "member": [bool(m) for m in rng.random(count) < 0.3],
        "count": rng.integers(0, 9, count).tolist(),
        "at": days.astype("datetime64[us]").tolist(),
    }
    return columns, y


def stepped(config, rows, labels):
    """Return the answers of the predictor to rows, one step each, and the predictor."""
    predictor = OnlinePredictor(config)
    return [predictor.step(Example(x, y)) for x, y in zip(rows, labels, strict=True)], predictor


def test_each_row_has_the_answer_that_the_predictor_gives_it():
    X, y = blobs()
    model = OnlineClassifier(**QUICK)
    before = model.progressive_proba(X[:200], y[:200])
    answers, predictor = stepped(PredictorConfig(classes=("a", "b"), **QUICK), X[:200], y[:200])
    assert before.tolist() == [list(a.probabilities or (0.5, 0.5)) for a in answers]
    assert len({a.model for a in answers}) > 4
    asked = [predictor.step(Example(x)) for x in X[200:]]
    assert model.predict_proba(X[200:]).tolist() == [list(a.probabilities) for a in asked]
    assert model.predict_interval(X[200:]).tolist() == [[*map(list, a.intervals)] for a in asked]
    assert model.predict(X[200:]).tolist() == [a.label for a in asked]


def test_asking_leaves_no_trace_and_parts_are_the_whole():
    X, y = blobs()
    whole, parts = (OnlineClassifier(**QUICK, order="given") for _ in range(2))
    whole.fit(X, y)
    for begin in range(0, 260, 13):
        asked = parts.predict_proba(X[begin : begin + 1]) if begin else np.array([[0.5, 0.5]])
        met = parts.progressive_proba(X[begin : begin + 1], y[begin : begin + 1], ["a", "b"])
        assert asked.tolist() == met.tolist()
        parts.partial_fit(X[begin + 1 : begin + 13], y[begin + 1 : begin + 13])
        parts.predict_interval(X)
    assert pickle.dumps(whole) == pickle.dumps(parts)
    assert whole.predict_proba(X).tolist() == parts.predict_proba(X).tolist()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_have_names_and_kinds(library):
    columns, y = table()
    library = package(library, "pip install polars")
    frame = library.DataFrame(columns)
    model = OnlineClassifier(**QUICK)
    before = model.progressive_proba(frame[:200], y[:200])
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    texts = ["true" if label else "false" for label in y]
    answers, predictor = stepped(
        PredictorConfig(classes=("false", "true"), **QUICK), rows[:200], texts[:200]
    )
    assert before.tolist() == [list(a.probabilities or (0.5, 0.5)) for a in answers]
    asked = [predictor.step(Example(x)) for x in rows[200:]]
    assert model.predict_proba(frame[200:]).tolist() == [list(a.probabilities) for a in asked]
    assert model.feature_names_in_.tolist() == list(columns)
    assert model.score(frame[200:], y[200:]) > 0.6
    with pytest.raises(InvalidInput, match="feature names should match"):
        model.predict(library.DataFrame({f"{name}s": columns[name] for name in columns}))


def test_a_frame_of_numbers_may_be_asked_as_an_array_by_place():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["c", "a", "b"])
    model = OnlineClassifier(**QUICK).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        asked = model.predict_proba(X)
    assert asked.tolist() == model.predict_proba(frame).tolist()


@pytest.mark.parametrize(
    "labels",
    [(False, True), (3, 20), (2.0, -1.0), ("no", "yes"), (0, 1, 2), ("10", "9"),
     (np.datetime64("2024-01-01"), np.datetime64("2025-01-01"))],
)  # fmt: skip
def test_labels_of_any_type_come_back_as_they_were(labels):
    X, y = blobs(labels=labels)
    plain, codes = np.unique(y, return_inverse=True)
    model, by_code = (OnlineClassifier(**QUICK).fit(X, each) for each in (y, codes))
    assert model.classes_.dtype == y.dtype
    assert model.classes_.tolist() == plain.tolist()
    found = model.predict(X)
    assert found.dtype == y.dtype
    assert np.mean(found == y) > 0.6
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    if len(labels) == 2:  # whatever order the texts of labels have
        assert (plain[np.argmax(model.predict_proba(X), axis=1)] == found).all()
        assert ((model.decision_function(X) > 0) == (found == plain[1])).all()
        assert np.mean(found == plain[by_code.predict(X)]) > 0.9


def test_class_weight_moves_what_is_predicted_and_leaves_probabilities_calibrated():
    X, y = blobs(1200, labels=(0, 1))
    kept = (y == 0) | (np.arange(1200) % 8 == 0)
    X, y = X[kept], y[kept]
    plain = OnlineClassifier(**QUICK, order="given").fit(X[:500], y[:500])
    for given in ("balanced", {1: 6.0}):
        model = OnlineClassifier(class_weight=given, order="given", **QUICK).fit(X[:500], y[:500])
        p = model.predict_proba(X[500:])[:, 1]
        assert abs(p.mean() - y[500:].mean()) < 0.05
        assert model.predict(X[500:]).mean() > 1.5 * plain.predict(X[500:]).mean()
        assert ((model.decision_function(X[500:]) > 0) == model.predict(X[500:])).all()
    p = model.predict_proba(X)
    assert (model.predict(X) == (6.0 * p[:, 1] > p[:, 0])).all()


def test_it_works_within_scikit_learn():
    X, y = blobs()
    pipe = make_pipeline(StandardScaler(), OnlineClassifier(**QUICK))
    found = GridSearchCV(pipe, {"onlineclassifier__C": [0.1, np.float64(10.0)]}, cv=2).fit(X, y)
    assert found.best_score_ > 0.8
    frozen = FrozenEstimator(found.best_estimator_).fit(X[:2], y[:2])
    assert (frozen.predict(X) == found.predict(X)).all()
    assert cross_val_predict(pipe, X, y, cv=3, method="predict_proba").shape == (260, 2)
    assert "OnlineClassifier" in found.best_estimator_._repr_html_()
    assert "refit_every=50" in repr(OnlineClassifier(**QUICK))


def test_a_copy_goes_on_as_the_original_does():
    X, y = blobs()
    model = OnlineClassifier(**QUICK).fit(X[:130], y[:130])
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    whole = model.progressive_proba(X[130:], y[130:]).tolist()
    assert [other.progressive_proba(X[130:], y[130:]).tolist() for other in others] == [whole] * 2


def test_what_cannot_work_is_named():
    X, y = blobs(40)
    for changes, why in [
        ({"window": 3}, "window: .*10"),
        ({"settings": {"nonsense": 1}}, "nonsense: "),
        ({"settings": {"window": 50}}, "window is a parameter of its own"),
        ({"settings": {"horizon": 5}}, "horizon is none of an estimator"),
        ({"class_weight": {"c": 2.0}}, "'c' is not among the declared classes"),
    ]:
        with pytest.raises(InvalidConfig, match=why):
            OnlineClassifier(**changes).fit(X, y)
    model = OnlineClassifier(**QUICK).fit(X, y)
    with pytest.raises(InvalidExample, match="'c' is not declared"):
        model.partial_fit(X[:1], ["c"])
    told = r"one class only, 'c'; give rows .*, or name .*: partial_fit\(X, y, classes=\[\.\.\.\]\)"
    with pytest.raises(InvalidInput, match=told):
        OnlineClassifier().partial_fit(X[:1], ["c"])
    with pytest.raises(InvalidInput, match=told):
        OnlineClassifier().fit(X[:3], ["c"] * 3)
    with pytest.raises(
        InvalidConfig, match="order: 'sorted' is unknown; use 'shuffled' or 'given'"
    ):
        OnlineClassifier(order="sorted").fit(X, y)
    with pytest.raises(InvalidExample, match="send 0 or a size from"):
        model.predict(np.full((1, 3), 1e200))
    with pytest.raises(InvalidInput, match="no rows"):
        OnlineClassifier().fit(pd.DataFrame({"a": []}), [])


def test_a_model_that_failed_to_learn_is_the_one_it_was():
    X, y = blobs(80)
    model = OnlineClassifier(**QUICK).fit(X, y)
    before = model.predict_proba(X).tolist()
    with pytest.raises(InvalidExample):
        model.partial_fit(X[:2], ["a", "c"])
    assert model.predict_proba(X).tolist() == before


def test_fit_shuffles_by_its_seed_and_partial_fit_never_does():
    X, y = blobs()
    order = shuffled(260, 3)
    assert sorted(order) == [*range(260)] != order.tolist()
    fitted = OnlineClassifier(**QUICK, seed=3).fit(X, y)
    in_order = OnlineClassifier(**QUICK, seed=3, order="given").fit(X[order], y[order])
    taught = OnlineClassifier(**QUICK, seed=3).partial_fit(X[order], y[order])
    assert fitted.predict_proba(X).tolist() == in_order.predict_proba(X).tolist()
    assert fitted.predict_proba(X).tolist() == taught.predict_proba(X).tolist()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = [
        OnlineClassifier(**QUICK, seed=3).fit(frame, y),
        OnlineClassifier(**QUICK, seed=3).partial_fit(frame.iloc[order], y[order]),
    ]
    assert named[0].predict_proba(frame).tolist() == named[1].predict_proba(frame).tolist()


def test_missing_values_are_refused_with_the_parameter_that_takes_them():
    X, y = blobs(80)
    holed = np.where(X > 1.5, np.nan, X)
    model = OnlineClassifier(**QUICK).fit(X, y)
    for refuses in (lambda: OnlineClassifier().fit(holed, y), lambda: model.predict(holed)):
        with pytest.raises(InvalidInput, match=r'^X contains NaN; .* missing="mean"') as refused:
            refuses()
        assert "\n" not in str(refused.value)
    assert OnlineClassifier(**QUICK, missing="mean").fit(holed, y).predict(holed).shape == (80,)


def test_weights_of_rows_and_sparse_rows_are_refused_in_one_sentence():
    X, y = blobs(80)
    model = OnlineClassifier(**QUICK)
    with pytest.raises(InvalidInput, match=r"^sample_weight: .*class_weight, or leave it out$"):
        model.fit(X, y, sample_weight=np.ones(80))
    with pytest.raises(InvalidInput, match=r"^sample_weight: "):
        model.partial_fit(X, y, sample_weight=np.ones(80))
    with pytest.raises(TypeError, match="unexpected argument 'weights'"):
        model.fit(X, y, weights=np.ones(80))
    assert not has_fit_parameter(model, "sample_weight")
    model.fit(X, y, sample_weight=None)
    for refuses in (model.fit, model.partial_fit, lambda X, _: model.predict(X)):
        with pytest.raises(
            InvalidInput, match=r"^X: sparse rows are not taken; .* X\.toarray\(\)$"
        ):
            refuses(csr_matrix(X), y)


def test_an_array_with_text_is_refused_with_the_way_on():
    with pytest.raises(InvalidInput, match=r"'a'; give rows with text .* as a data frame"):
        OnlineClassifier().fit([["a", 1], ["b", 2]], [True, False])


FORMS = pd.DataFrame({"v": [0.1, 0.9, 0.5] * 20, "u": ["x", "y", "x"] * 20})
ANSWERS = np.array(["no", "yes", "no"] * 20)


def lazy_frame():
    return package("polars", "pip install polars").from_pandas(FORMS).lazy()


def columns_of_one_name():
    arrow = package("pyarrow", "pip install 'online-svm[archive]'")
    return arrow.table([FORMS["v"], FORMS["v"]], names=["v", "v"])


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineSVC, InductiveVennClassifier])
@pytest.mark.parametrize(
    ("form", "says"),
    [
        (lazy_frame, r"give X\.collect\(\)"),
        (FORMS.to_dict("records"), r"pandas\.DataFrame\(X\)"),
        (FORMS.to_dict("list"), r"pandas\.DataFrame\(X\)"),
        (np.array(FORMS.to_dict("records")), r"pandas\.DataFrame\(X\)"),
        (FORMS.set_axis(["v", "v"], axis=1), "two columns have the name 'v'"),
        (columns_of_one_name, "two columns have the name 'v'"),
        (iter(FORMS["v"]), r"give list\(X\)"),
    ],
)
def test_rows_in_other_forms_are_refused_with_one_that_is_taken(kind, form, says):
    X = form() if callable(form) else form
    with pytest.raises(InvalidInput, match=says):
        kind().fit(X, ANSWERS)
    fitted = kind().fit(FORMS[["v"]], ANSWERS)
    with pytest.raises(InvalidInput, match=says):
        fitted.predict(X)


@pytest.mark.parametrize("X", [FORMS, FORMS[["v"]].to_numpy()])
def test_contributions_are_what_a_usual_value_changes(X):
    model = OnlineClassifier(committee="single").fit(X, ANSWERS)
    rows = X.head(3) if isinstance(X, pd.DataFrame) else X[:3]
    found, p = model.contributions(rows), model.predict_proba(rows)
    assert len(found) == 3
    for i, effects in enumerate(found):
        assert [one.name for one in effects] in (["v", "u"], ["u", "v"], ["v"], ["0"])
        assert [abs(one.effect) for one in effects] == sorted(
            (abs(one.effect) for one in effects), reverse=True
        )
        for one in effects:
            if one.typical is None:
                continue
            changed = rows.copy()
            if isinstance(changed, pd.DataFrame):
                changed.loc[changed.index[i], one.name] = one.typical
            else:
                changed[i, one.feature] = one.typical
            label = p[i].argmax()
            assert one.effect == p[i, label] - model.predict_proba(changed)[i, label]
