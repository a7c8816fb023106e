import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.svm.implied_bank import PackedBank, class_weights
from online_svm.svm.implied_posterior import ImpliedPosterior
from online_svm.svm.kernel_model import KernelModel


def blobs(seed, n=120, classes=2, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + spread * np.column_stack((y, y % 2)), y


def bank_of_lines(*intercepts):
    """Machines f_j(x) = x + b_j, whose votes can be counted by hand."""
    model = KernelModel.build(
        Kernel("linear"), np.ones((1, 1)), np.ones((len(intercepts), 1)), np.array(intercepts)
    )
    return PackedBank.pack(model, np.full(len(intercepts), 2.0), -np.ones(len(intercepts)))


# Where C is large and the kernel wide, two optima of SVC itself differ by so much.
@pytest.mark.parametrize(
    ("C", "gamma", "near"), [(1.0, 0.5, 1e-6), (20.0, 0.05, 1e-4), (0.1, 2.0, 1e-6)]
)
def test_machines_and_votes_are_those_of_separate_fits(C, gamma, near):
    """The definition: one scikit-learn fit a weight, and counting."""
    X, y = blobs(0)
    queries, _ = blobs(1, n=200)
    model = ImpliedPosterior(n_models=19, C=C, gamma=gamma, tol=1e-8).fit(X, y)
    decisions = np.empty((200, 19))
    for j in range(19):
        z = (j + 1) / 20
        svc = SVC(C=C, gamma=gamma, class_weight={0: 1 - z, 1: z}, tol=1e-8).fit(X, y)
        decisions[:, j] = svc.decision_function(queries)
    assert np.abs(model._banks[0].decisions(queries) - decisions).max() < near
    votes = (decisions > 0).sum(axis=1)
    assert model.vote_shares(queries) == pytest.approx((votes + 1) / 21, abs=1e-12)


@pytest.mark.parametrize("odds", [0.2, 1.0, 5.0])
def test_prior_weights_keep_the_effective_number_and_space_the_posterior_evenly(odds):
    positive, negative = class_weights(99, odds, "prior")
    assert odds * positive + negative == pytest.approx(np.full(99, (1 + odds) / 2))
    assert positive / (positive + negative) == pytest.approx(np.arange(1, 100) / 100)
    balanced, even = class_weights(99, odds, "balanced"), class_weights(99, 1.0, "prior")
    np.testing.assert_allclose(balanced, even, rtol=0, atol=1e-15)


def test_a_point_on_a_surface_counts_half():
    bank = bank_of_lines(-1.0, 0.0, 1.0)
    assert bank.shares(np.array([[-2.0], [-1.0], [0.0], [0.5], [1.0], [2.0]])) == pytest.approx(
        np.array([1, 1.5, 2.5, 3, 3.5, 4]) / 5
    )


@pytest.mark.parametrize(
    ("intercepts", "points", "crossings"),
    [
        pytest.param([-2, -1, 0, 1], [-9, 0.5, 9, 0], [1, 1, 1, 1], id="a vote changes once"),
        # At 0 the votes are + - +, after - at z = 0: three changes. At 2 and at -2 they agree.
        pytest.param([1, -1, 1], [0, 2, -2], [3, 1, 1], id="surfaces that cross are degenerate"),
        pytest.param([1, -1, 1], [1, -1], [1, 1], id="touching a surface is no change"),
    ],
)
def test_a_vote_crosses_once_along_z_unless_surfaces_cross(intercepts, points, crossings):
    bank = bank_of_lines(*map(float, intercepts))
    assert bank.crossings(np.array(points, dtype=float)[:, None]).tolist() == crossings


def test_priors_multiply_the_odds():
    X, y = blobs(8)
    settings = {"n_models": 19, "class_weight": {0: 1.0, 1: 4.0}}
    plain = ImpliedPosterior(**settings).fit(X, y)
    own = ImpliedPosterior(**settings, priors="data").fit(X, y)
    asked = ImpliedPosterior(**settings, priors=[0.9, 0.1]).fit(X, y)
    assert plain.odds_ == pytest.approx([4.0])
    odds = [m.predict_proba(X)[:, 1] / m.predict_proba(X)[:, 0] for m in (plain, own, asked)]
    assert odds[1] == pytest.approx(odds[0] / 4)
    assert odds[2] == pytest.approx(odds[0] / 4 / 9)


def test_isotonic_calibration_is_that_of_scikit_learn_on_the_votes():
    X, y = blobs(10)
    held_out, labels = blobs(11, n=150)
    queries, _ = blobs(12)
    model = ImpliedPosterior(n_models=19).fit(X, y)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    reference.fit(model.vote_shares(held_out), labels)
    expected = reference.predict(model.vote_shares(queries))
    calibrated = model.calibrate(held_out, labels).predict_proba(queries)
    assert calibrated[:, 1] == pytest.approx(expected, abs=1e-12)
    assert model.fit(X, y).predict_proba(queries)[:, 1] == pytest.approx(model.vote_shares(queries))


def test_several_classes_are_banks_against_the_rest_divided_by_their_sum():
    X, y = blobs(13, n=150, classes=3, spread=3.0)
    queries, truth = blobs(14, n=150, classes=3, spread=3.0)
    model = ImpliedPosterior(n_models=19).fit(X, y)
    shares = model.vote_shares(queries)
    for k in range(3):
        alone = ImpliedPosterior(n_models=19).fit(X, y == k).vote_shares(queries)
        assert shares[:, k] == pytest.approx(alone, abs=1e-12)
    probabilities = model.predict_proba(queries)
    assert probabilities == pytest.approx(shares / shares.sum(axis=1, keepdims=True))
    assert (model.predict(queries) == truth).mean() > 0.8
    assert model.crossings(queries).shape == (150, 3)
    calibrated = model.calibrate(queries, truth).predict_proba(queries)
    assert calibrated.sum(axis=1) == pytest.approx(np.ones(150))


def test_bits_are_independent_of_batch_cache_and_memory_layout():
    X, y = blobs(15)
    model = ImpliedPosterior(n_models=19, C=10.0).fit(X, y)
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba(row[np.newaxis]) for row in X])
    assert together.tobytes() == alone.tobytes()
    again = ImpliedPosterior(n_models=19, C=10.0, cache_mb=1e-3).fit(np.asfortranarray(X), y)
    assert again._banks[0].decisions(X).tobytes() == model._banks[0].decisions(X).tobytes()
    assert again.predict_proba(X).tobytes() == together.tobytes()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda model: model.vote_shares([[np.nan]]), "X contains NaN; OnlineClassifier takes it"),
        (lambda model: model.crossings([[np.inf]]), "Input X contains inf"),
        (lambda model: model.calibrate([[0.0], [1.0]], ["a", "c"]), "label 'c' is not one of"),
    ],
    ids=["votes of what is no number", "crossings of what is infinite", "an unknown label"],
)
def test_rows_and_labels_that_cannot_be_used_are_refused(ask, message):
    model = ImpliedPosterior(n_models=3).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInput, match=message):
        ask(model)


@pytest.mark.parametrize(
    "setting",
    [
        {"n_models": 0}, {"n_models": 2.5}, {"max_steps": True}, {"tol": "small"}, {"C": -1.0},
        {"gamma": 0.0}, {"kernel": "sinc"}, {"weighting": "even"}, {"class_weight": "equal"},
        {"class_weight": {0: -1.0}}, {"priors": "mine"}, {"priors": [0.5, 0.6]},
        {"priors": [1.0, 0.0]}, {"priors": [0.2, 0.3, 0.5]},
    ],
)  # fmt: skip
def test_a_parameter_out_of_its_range_is_refused_by_name(setting):
    with pytest.raises(InvalidConfig, match=next(iter(setting))):
        ImpliedPosterior(**{"n_models": 3, **setting}).fit([[0.0], [1.0]], [0, 1])
