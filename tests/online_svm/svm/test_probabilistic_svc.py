import clarabel
import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.svm.probabilistic_svc import ProbabilisticSVC
from online_svm.svm.probability_tube import tube_edges

NAN = np.nan


def conic_optimum(K, y, prob, C, C_prob, eta):
    """The paper's primal problem (2), written with f = K beta + b, by an interior-point solver."""
    n, is_label = len(y), y != 0
    a = np.log(1 / eta - 1)
    rows = []  # s (f_i) >= s * edge - xi
    for i in range(n):
        if is_label[i]:
            rows.append((i, y[i], 1.0, C))
            continue
        if prob[i] - eta > 0:
            rows.append((i, 1.0, -np.log(1 / (prob[i] - eta) - 1) / a, C_prob))
        if prob[i] + eta < 1:
            rows.append((i, -1.0, np.log(1 / (prob[i] + eta) - 1) / a, C_prob))
    points, signs, least, prices = map(np.array, zip(*rows, strict=True))
    m = len(rows)
    # min 1/2 v'v + prices'xi over (v, b, xi), where v = L'beta and K = L L'
    values, vectors = np.linalg.eigh(K)
    L = (vectors * np.sqrt(np.maximum(values, 0.0)))[points]
    A = sparse.bmat(
        [
            [-signs[:, None] * L, -signs[:, None], -sparse.eye(m)],
            [sparse.csc_matrix((m, n)), None, -sparse.eye(m)],
        ],
        format="csc",
    )
    P = sparse.block_diag([sparse.eye(n), sparse.csc_matrix((m + 1, m + 1))], format="csc")
    q = np.concatenate((np.zeros(n + 1), prices))
    bound = np.concatenate((-least, np.zeros(m)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(2 * m)]
    found = clarabel.DefaultSolver(P, q, A, bound, cones, options).solve()
    assert "Solved" in str(found.status)
    return found.obj_val


def primal_objective(model, X, y, prob, C, C_prob, eta):
    """What the fitted function costs, slacks and all."""
    f, is_label = model.decision_function(X), y != 0
    lower, upper = tube_edges(np.where(is_label, 0.5, prob), eta)
    hinge = np.maximum(0, 1 - y * f)[is_label].sum()
    outside = (np.maximum(0, lower - f) + np.maximum(0, f - upper))[~is_label].sum()
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    return 0.5 * beta @ rbf_kernel(X, gamma=model.gamma_) @ beta + C * hinge + C_prob * outside


def random_problem(seed):
    """Mixed, all labels, all probabilities, p at 0 and 1, duplicates, or one class beside them."""
    rng = np.random.default_rng(seed)
    kind = ("mixed", "labels", "probabilities", "certain", "duplicates", "one class")[seed % 6]
    n = int(rng.integers(4, 60))
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    if kind == "duplicates":
        X = X[rng.integers(0, max(2, n // 3), n)]
    truth = expit(2 * X[:, 0] + rng.normal(size=n))
    y = np.where(rng.random(n) < truth, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if kind == "one class":
        y[:] = 1.0
    share = {"labels": 0.0, "probabilities": 1.0}.get(kind, 0.6)
    given = rng.random(n) < share
    given[-1] |= kind == "one class"
    p = rng.choice([0.0, 0.02, 0.5, 0.98, 1.0], n) if kind == "certain" else truth
    prices = rng.choice([0.1, 1.0, 100.0], 2)
    settings = (*prices, float(rng.choice([0.02, 0.1, 0.3, 0.49])), float(rng.choice([0.1, 1, 5])))
    return X, np.where(given, 0.0, y), np.where(given, p, NAN), settings


@pytest.mark.parametrize("seed", range(50))
def test_the_objective_is_that_of_a_conic_solver(seed):
    X, y, prob, (C, C_prob, eta, gamma) = random_problem(seed)
    model = ProbabilisticSVC(C=C, C_prob=C_prob, gamma=gamma, eta=eta).fit(X, y, prob)
    expected = conic_optimum(rbf_kernel(X, gamma=gamma), y, prob, C, C_prob, eta)
    allowed = 1e-6 * max(1.0, abs(expected))
    assert abs(model.objective_ - expected) <= allowed
    # The function that is published, with its b, costs as much: there is no duality gap.
    assert abs(primal_objective(model, X, y, prob, C, C_prob, eta) - expected) <= 2 * allowed


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_with_labels_only_it_is_the_ordinary_machine(kernel):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, "yes", "no")
    reference = SVC(C=2.0, kernel=kernel, gamma=0.5, coef0=1.0, degree=2, tol=1e-9).fit(X, y)
    model = ProbabilisticSVC(C=2.0, kernel=kernel, gamma=0.5, coef0=1.0, degree=2).fit(X, y)
    queries = rng.normal(size=(50, 3))
    assert np.abs(model.decision_function(queries) - reference.decision_function(queries)).max() < (
        1e-5
    )
    assert (model.predict(queries) == reference.predict(queries)).all()
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=1e-5)


def test_without_a_free_multiplier_b_is_the_midpoint_as_in_libsvm():
    # Three points far apart with a small C: every multiplier sits at its bound or at zero.
    X, y = np.array([[0.0], [100.0], [200.0], [300.0]]), np.array([-1, 1, 1, -1])
    model = ProbabilisticSVC(C=0.25, gamma=1.0).fit(X, y)
    assert (np.abs(model.dual_coef_) == 0.25).all()
    reference = SVC(C=0.25, gamma=1.0).fit(X, y)
    assert model.intercept_[0] == pytest.approx(reference.intercept_[0], abs=1e-12) == 0.0
    tubes = ProbabilisticSVC(C_prob=0.1, gamma=1.0, eta=0.1).fit(
        X, np.zeros(4), [0.2, 0.75, 0.8, 0.3]
    )
    lower, upper = tube_edges(np.array([0.75, 0.3]), 0.1)
    assert (np.abs(tubes.dual_coef_) == 0.1).all()
    # The two tubes nearest 1/2 bound it: b - 0.1 may not reach one's edge, nor b + 0.1 the other's.
    assert tubes.intercept_[0] == pytest.approx(0.5 * (upper[1] + lower[0]), abs=1e-12)


def test_b_is_the_finite_end_where_nothing_bounds_it_on_the_other_side():
    # Both ask f to be at least something: f is constant, and just enough for the stricter one.
    X = np.array([[0.0], [1.0]])
    model = ProbabilisticSVC(eta=0.1).fit(X, [0, 0], [0.95, 1.0])
    lower, upper = tube_edges(np.array([0.95, 1.0]), 0.1)
    assert np.isinf(upper).all()
    assert model.dual_coef_.size == 0
    assert model.decision_function([[5.0]])[0] == lower.max()
    one_class = ProbabilisticSVC(eta=0.1).fit(X, [1, 0], [NAN, 0.95])
    assert one_class.decision_function([[5.0]])[0] == 1.0


def test_a_function_value_of_one_has_the_probability_one_minus_eta():
    model = ProbabilisticSVC(C=1e4, kernel="linear", eta=0.2).fit([[-1.0], [1.0]], [-1, 1])
    assert model.predict_proba([[-1.0], [0.0], [1.0]])[:, 1] == pytest.approx([0.2, 0.5, 0.8])


def test_bits_are_independent_of_batch_and_cache():
    X, y, prob, (C, C_prob, eta, gamma) = random_problem(0)
    settings = {"C": C, "C_prob": C_prob, "gamma": gamma, "eta": eta}
    model = ProbabilisticSVC(**settings).fit(X, y, prob)
    together = model.predict_proba(X)
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(len(X))])
    assert together.tobytes() == alone.tobytes()
    cramped = ProbabilisticSVC(**settings, cache_mb=1e-3).fit(np.asfortranarray(X), y, prob)
    assert cramped.predict_proba(X).tobytes() == together.tobytes()


@pytest.mark.parametrize(
    ("y", "prob", "message"),
    [
        ([1, 0], [NAN, 1.1], "prob: value 1 is 1.1; it must lie in"),
        ([1, 0], [NAN, -0.1], "prob: value 1 is -0.1; it must lie in"),
        ([1, 0], [NAN, np.inf], "prob: value 1 is inf"),
        ([1, 0], [NAN, NAN], "prob: value 1 is nan; it must be given where y is 0"),
        ([1, -1], [NAN, 0.5], "prob: value 1 is 0.5; it must be NaN where y is a class"),
        ([1, 2], [NAN, NAN], "y: value 1 is 2; it must be -1, \\+1 or 0"),
        ([1, 1], [NAN, NAN], "y: one class only"),
        ([1, 0], [0.5], "prob: expected one value for each of 2 examples"),
        ([1, 0], ["a", "b"], "both must be numbers"),
        ([-1, 0, 1], None, "pass `prob` where y is 0"),
    ],
)
def test_targets_that_cannot_be_used_are_refused_by_name(y, prob, message):
    with pytest.raises(InvalidInput, match=message):
        ProbabilisticSVC().fit(np.arange(float(len(y)))[:, None], y, prob)


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        *((InvalidInput, {"eta": eta}) for eta in (0.0, 0.5, -0.1, 0.7, NAN, "0.1")),
        (InvalidConfig, {"C": 0.0}),
        (InvalidConfig, {"C_prob": -1.0}),
        (InvalidConfig, {"tol": NAN}),
        (InvalidConfig, {"gamma": "auto"}),
        (InvalidConfig, {"kernel": "sinc"}),
    ],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(error, setting):
    with pytest.raises(error, match=f"^{next(iter(setting))}: "):
        ProbabilisticSVC(**setting).fit([[0.0], [1.0]], [-1, 1])
