import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from online_svm.calibration.joint import probabilities_into
from online_svm.compiled.elementary import exp, exp_nonpositive, expm1, exps, log, log1p, logs
from online_svm.compiled.kernel import LEVELS, LIBRARY
from online_svm.compiled.kernels import Kernel

RNG = np.random.default_rng(0)
INFINITY, NAN = math.inf, math.nan
UNDERFLOW = -708.0  # below it exp_nonpositive is 0
NEAR = 0.29  # below it log1p takes its argument as it is
LEAST, LARGEST = 5e-324, 1.7976931348623157e308
OVERFLOW, SUBNORMAL = 709.782712893384, -708.3964185322641  # the last of the kind


def near(centre, n):
    """Numbers on both sides of a centre, at distances of all magnitudes."""
    return centre + RNG.choice([-1.0, 1.0], n) * 10.0 ** RNG.uniform(-17, -0.3, n)


def around(*values):
    """Each value and some hundred floats next to it on either side."""
    bits = np.array(values, dtype=np.float64).view(np.int64)[:, None] + np.arange(-100, 101)
    return bits.view(np.float64).ravel()


def small(n):
    return RNG.choice([-1.0, 1.0], n) * 10.0 ** RNG.uniform(-323, 0, n)


EXPONENTS = np.concatenate(
    [
        RNG.uniform(-745.0, 709.0, 400_000),
        RNG.uniform(-3.0, 3.0, 400_000),
        small(200_000),
        around(OVERFLOW, SUBNORMAL, -745.1332191019411, 0.5 * math.log(2), -0.5 * math.log(2)),
        [0.0, -0.0, LEAST, -LEAST, LARGEST, -LARGEST, INFINITY, -INFINITY, 709.8, -745.2, -1e4],
    ]
)
POSITIVE = np.concatenate(
    [
        np.exp(RNG.uniform(-744.0, 709.0, 400_000)),
        RNG.uniform(0.4, 2.5, 400_000),
        near(1.0, 200_000),
        around(1.0, math.sqrt(0.5), math.sqrt(2.0), 2.0**-1022, 2.0, 0.5),
        [0.0, -0.0, LEAST, 2 * LEAST, LARGEST, INFINITY],
    ]
)
ABOVE_MINUS_ONE = np.concatenate(
    [
        POSITIVE - 1.0,
        small(400_000),
        RNG.uniform(-0.9, 3.0, 400_000),
        around(-NEAR, NEAR, math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0),
        [0.0, -0.0, LEAST, -LEAST],
    ]
)
NONPOSITIVE = -np.abs(EXPONENTS)


OURS = [exp, expm1, log, log1p, exp_nonpositive]
CASES = [
    (0, np.exp, EXPONENTS), (1, np.expm1, EXPONENTS), (2, np.log, POSITIVE),
    (3, np.log1p, ABOVE_MINUS_ONE), (4, np.exp, NONPOSITIVE[NONPOSITIVE >= UNDERFLOW]),
]  # fmt: skip
NAMES = ["exp", "expm1", "log", "log1p", "exp_nonpositive"]


def applied(which, x):
    return np.array([OURS[which](each) for each in x.tolist()])


@pytest.mark.parametrize(("which", "reference", "x"), CASES, ids=NAMES)
def test_a_million_values_are_within_an_ulp_of_those_in_extended_precision(which, reference, x):
    # Eleven bits more (or sixty): what the reference is off by does not count.
    assert np.finfo(np.longdouble).nmant >= 63
    with np.errstate(over="ignore", divide="ignore", under="ignore"):
        exact = reference(x.astype(np.longdouble))
        rounded = exact.astype(np.float64)
    ours = applied(which, x)
    is_finite = np.isfinite(rounded)
    np.testing.assert_array_equal(ours[~is_finite], rounded[~is_finite])
    unit = np.spacing(np.abs(rounded[is_finite])).astype(np.longdouble)
    assert np.max(np.abs(ours[is_finite] - exact[is_finite]) / unit) < 1.0


def test_zeros_infinities_and_what_is_no_number():
    assert [exp(x) for x in (-INFINITY, 0.0, -0.0, INFINITY)] == [0.0, 1.0, 1.0, INFINITY]
    assert [expm1(x) for x in (-INFINITY, INFINITY)] == [-1.0, INFINITY]
    assert [log(x) for x in (0.0, -0.0, 1.0, INFINITY)] == [-INFINITY, -INFINITY, 0.0, INFINITY]
    assert [log1p(x) for x in (-1.0, INFINITY)] == [-INFINITY, INFINITY]
    assert [exp_nonpositive(x) for x in (0.0, -1e4, -INFINITY)] == [1.0, 0.0, 0.0]
    for function in (expm1, log1p):
        assert [str(function(zero)) for zero in (0.0, -0.0)] == ["0.0", "-0.0"]
    for function in (exp, expm1, log, log1p):
        assert math.isnan(function(NAN))
    assert [math.isnan(log(x)) for x in (-1.0, -INFINITY, -LEAST)] == [True] * 3
    assert math.isnan(log1p(-1.0000000000000002))


def test_arrays_of_any_shape_keep_it_and_their_values():
    values = np.asfortranarray(POSITIVE[:24].reshape(4, 6))
    values.setflags(write=False)
    np.testing.assert_array_equal(logs(values).ravel(), applied(2, values.ravel()))
    np.testing.assert_array_equal(exps(logs(values)).ravel(), applied(0, logs(values).ravel()))
    assert logs(values).shape == exps(values).shape == (4, 6)


DIGEST = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import test_elementary as t
total = hashlib.sha256()
for which, _, x in t.CASES:
    total.update(t.applied(which, x[::7]).tobytes())
print(total.hexdigest())
"""


def digest(**variables):
    run = [sys.executable, "-c", DIGEST, str(Path(__file__).parent)]
    found = subprocess.run(
        run, env=os.environ | variables, check=True, capture_output=True, text=True
    )
    return found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS[: LEVELS.index(LIBRARY.processor_level()) + 1])
def test_another_level_and_the_plain_functions_of_the_c_library_change_no_bit(level):
    plain = "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA,-FMA4"
    assert digest(ONLINE_SVM_LEVEL=level, GLIBC_TUNABLES=plain) == digest()


def test_products_and_sums_are_rounded_apart_unless_they_are_asked_to_be_one():
    a, rounded = 1.0 + 2.0**-30, 1.0 + 2.0**-29
    # A sum of kernel values is fused: 2^-60 of the product is left.
    fused = Kernel("linear")(np.array([[1.0, a]]), np.array([[-rounded, a]]))
    assert fused.tolist() == [[2.0**-60]]
    # The line z = slope x + bias of a softmax is not.
    theta, found = np.array([2.0**60 * a, 0.0, -(2.0**60) * rounded, 0.0]), np.empty((1, 2))
    probabilities_into(np.array([[a, 0.0]]), theta, True, found)
    assert found.tolist() == [[0.5, 0.5]]
