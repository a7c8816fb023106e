import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.svm.implied.class_path import class_weights
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.implied_posterior import ImpliedPosterior
from online_svm.svm.kernel_model import KernelModel


def blobs(seed, n=120, classes=2, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 2)) + spread * np.column_stack((y, y % 2)), y


def votes_of_separate_fits(X, y, queries, n_models, C, gamma):
    """The definition: one scikit-learn fit a weight, and counting."""
    votes = np.zeros(len(queries))
    for j in range(1, n_models + 1):
        z = j / (n_models + 1)
        svc = SVC(C=C, gamma=gamma, class_weight={0: 1 - z, 1: z}, tol=1e-8).fit(X, y)
        votes += svc.decision_function(queries) > 0
    return votes


def bank_of_lines(*intercepts):
    """Machines f_j(x) = x + b_j, whose votes can be counted by hand."""
    model = KernelModel.build(
        Kernel("linear"), np.ones((1, 1)), np.ones((len(intercepts), 1)), np.array(intercepts)
    )
    return PackedBank.pack(model, np.full(len(intercepts), 2.0), -np.ones(len(intercepts)))


@pytest.mark.parametrize(("C", "gamma"), [(1.0, 0.5), (20.0, 0.05), (0.1, 2.0)])
def test_the_votes_are_those_of_separate_fits(C, gamma):
    X, y = blobs(0)
    queries, _ = blobs(1, n=200)
    model = ImpliedPosterior(n_models=39, C=C, gamma=gamma, tol=1e-8).fit(X, y)
    expected = votes_of_separate_fits(X, y, queries, 39, C, gamma)
    # Weights so small that no multiplier is free leave an interval for b, but no other freedom.
    assert model.vote_shares(queries) == pytest.approx((expected + 1) / 41, abs=1e-12)


def test_every_machine_of_the_bank_is_optimal_for_its_weights():
    X, y = blobs(2)
    model = ImpliedPosterior(n_models=19, C=5.0, gamma=0.3, tol=1e-8).fit(X, y)
    scores = model._banks[0].decisions(X)
    for j in range(19):
        z = (j + 1) / 20
        svc = SVC(C=5.0, gamma=0.3, class_weight={0: 1 - z, 1: z}, tol=1e-9).fit(X, y)
        assert np.abs(scores[:, j] - svc.decision_function(X)).max() < 1e-6


@pytest.mark.parametrize("odds", [0.2, 1.0, 5.0])
def test_prior_weights_keep_the_effective_number_and_space_the_posterior_evenly(odds):
    positive, negative = class_weights(99, odds, "prior")
    spaced = np.arange(1, 100) / 100
    assert odds * positive + negative == pytest.approx(np.full(99, (1 + odds) / 2))
    assert positive / (positive + negative) == pytest.approx(spaced)
    assert negative == pytest.approx(0.5 + (0.5 - positive) * odds)
    assert positive == pytest.approx(spaced * (1 + odds) / (2 * (1 - (1 - odds) * spaced)))
    assert (positive < (1 + odds) / (2 * odds)).all()


def test_balanced_weights_are_prior_weights_at_odds_of_one():
    for prior, balanced in zip(
        class_weights(9, 1.0, "prior"), class_weights(9, 7.0, "balanced"), strict=True
    ):
        assert prior == pytest.approx(balanced, abs=1e-15)


def test_the_two_schemes_agree_when_the_classes_are_equally_heavy():
    X, y = blobs(3)
    queries, _ = blobs(4)
    shares = [
        ImpliedPosterior(n_models=19, C=2.0, weighting=scheme).fit(X, y).vote_shares(queries)
        for scheme in ("balanced", "prior")
    ]
    assert np.abs(shares[0] - shares[1]).max() <= 1 / 21


def test_a_point_on_a_surface_counts_half():
    bank = bank_of_lines(-1.0, 0.0, 1.0)
    assert bank.shares(np.array([[-2.0], [-1.0], [0.0], [0.5], [1.0], [2.0]])) == pytest.approx(
        np.array([1, 1.5, 2.5, 3, 3.5, 4]) / 5
    )
    symmetric = ImpliedPosterior(n_models=5, kernel="linear").fit([[-1.0], [1.0]], [0, 1])
    assert symmetric.vote_shares([[0.0]])[0] == 0.5


def test_a_vote_that_changes_once_along_z_crosses_once_whatever_the_ends_say():
    bank = bank_of_lines(-2.0, -1.0, 0.0, 1.0)
    assert bank.crossings(np.array([[-9.0], [0.5], [9.0], [0.0]])).tolist() == [1, 1, 1, 1]


def test_surfaces_that_cross_are_counted_as_degenerate():
    # At 0 the votes are + - +, after - at z = 0: three changes. At 2 and at -2 they agree.
    bank = bank_of_lines(1.0, -1.0, 1.0)
    assert bank.crossings(np.array([[0.0], [2.0], [-2.0]])).tolist() == [3, 1, 1]
    # Touching a surface without passing it is no change.
    assert bank.crossings(np.array([[1.0], [-1.0]])).tolist() == [1, 1]


def test_swapping_the_classes_mirrors_the_probabilities():
    X, y = blobs(5)
    queries, _ = blobs(6)
    first = ImpliedPosterior(n_models=29, C=3.0, tol=1e-8).fit(X, y).vote_shares(queries)
    second = ImpliedPosterior(n_models=29, C=3.0, tol=1e-8).fit(X, 1 - y).vote_shares(queries)
    assert first == pytest.approx(1 - second, abs=1e-12)


def test_the_estimate_follows_the_posterior_of_two_gaussians():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 1)) + y[:, None]
    model = ImpliedPosterior(n_models=99, C=1.0, kernel="linear").fit(X, y)
    grid = np.linspace(-1, 2, 20)[:, None]
    truth = 1 / (1 + np.exp(-(grid[:, 0] - 0.5)))
    assert np.abs(model.predict_proba(grid)[:, 1] - truth).max() < 0.1


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


def test_the_votes_of_a_weighted_bank_estimate_the_posterior_under_its_own_prior_odds():
    # Data with equal classes, but the positives weigh three times as much: r = 3.
    rng = np.random.default_rng(9)
    y = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 1)) + y[:, None]
    grid = np.linspace(0, 1.5, 20)[:, None]
    data_odds = np.exp(grid[:, 0] - 0.5)
    posterior = data_odds / (1 + data_odds)
    for scheme in ("balanced", "prior"):
        settings = {"kernel": "linear", "class_weight": {1: 3.0}, "weighting": scheme}
        model = ImpliedPosterior(99, **settings).fit(X, y)
        weighted = model.odds_[0] * data_odds / (1 + model.odds_[0] * data_odds)
        assert np.abs(model.vote_shares(grid) - weighted).mean() < 0.03
        assert np.abs(model.vote_shares(grid) - posterior).mean() > 0.1
        own = ImpliedPosterior(99, **settings, priors="data").fit(X, y)
        assert np.abs(own.predict_proba(grid)[:, 1] - posterior).mean() < 0.03


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


def test_bits_depend_neither_on_the_batch_nor_on_the_cache_nor_on_the_memory_layout():
    X, y = blobs(15)
    model = ImpliedPosterior(n_models=19, C=10.0).fit(X, y)
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba(row[np.newaxis]) for row in X])
    assert together.tobytes() == alone.tobytes()
    again = ImpliedPosterior(n_models=19, C=10.0, cache_mb=1e-3).fit(np.asfortranarray(X), y)
    assert again._banks[0].decisions(X).tobytes() == model._banks[0].decisions(X).tobytes()
    assert again.predict_proba(X).tobytes() == together.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite_are_asked_about_in_vain(value):
    model = ImpliedPosterior(n_models=3).fit([[0.0], [1.0]], [0, 1])
    for method in (model.vote_shares, model.crossings):
        with pytest.raises(InvalidInput, match="Input X contains"):
            method([[value]])


def test_a_label_that_was_not_fitted_cannot_calibrate():
    model = ImpliedPosterior(n_models=3).fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInput, match="label 'c' is not one of"):
        model.calibrate([[0.0], [1.0]], ["a", "c"])


@pytest.mark.parametrize(
    "setting",
    [
        {"n_models": 0},
        {"n_models": 2.5},
        {"max_steps": True},
        {"tol": "small"},
        {"C": -1.0},
        {"gamma": 0.0},
        {"kernel": "sinc"},
        {"weighting": "even"},
        {"class_weight": "equal"},
        {"class_weight": {0: -1.0}},
        {"priors": "mine"},
        {"priors": [0.5, 0.6]},
        {"priors": [1.0, 0.0]},
        {"priors": [0.2, 0.3, 0.5]},
    ],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(setting):
    with pytest.raises(InvalidConfig, match=next(iter(setting))):
        ImpliedPosterior(**{"n_models": 3, **setting}).fit([[0.0], [1.0]], [0, 1])


def test_a_limit_on_the_steps_that_is_reached_is_said():
    X, y = blobs(17)
    with pytest.warns(ConvergenceWarning, match="max_steps=1 reached"):
        ImpliedPosterior(n_models=3, max_steps=1).fit(X, y)


def test_it_keeps_the_conventions_of_scikit_learn():
    check_estimator(ImpliedPosterior(n_models=9), on_skip=None)
