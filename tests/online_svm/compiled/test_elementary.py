import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from online_svm.compiled import elementary, intrinsics
from online_svm.compiled.elementary import exp, exp_nonpositive, expm1, exps, log, log1p, logs
from online_svm.compiled.jit import jit

RNG = np.random.default_rng(0)
INFINITY, NAN = math.inf, math.nan
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
        around(-elementary.NEAR, elementary.NEAR, math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0),
        [0.0, -0.0, LEAST, -LEAST],
    ]
)
NONPOSITIVE = -np.abs(EXPONENTS)


@jit
def each(which, x, found):
    for i in range(len(x)):
        if which == 0:
            found[i] = exp(x[i])
        elif which == 1:
            found[i] = expm1(x[i])
        elif which == 2:
            found[i] = log(x[i])
        elif which == 3:
            found[i] = log1p(x[i])
        else:
            found[i] = exp_nonpositive(x[i])


OURS = [exp, expm1, log, log1p, exp_nonpositive]
CASES = [
    (0, np.exp, EXPONENTS),
    (1, np.expm1, EXPONENTS),
    (2, np.log, POSITIVE),
    (3, np.log1p, ABOVE_MINUS_ONE),
    (4, np.exp, NONPOSITIVE[NONPOSITIVE >= elementary.UNDERFLOW]),
]
NAMES = ["exp", "expm1", "log", "log1p", "exp_nonpositive"]


def applied(which, x):
    found = np.empty(len(x))
    each(which, x, found)
    return found


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


@pytest.mark.parametrize("which", range(5), ids=NAMES)
def test_a_value_alone_has_the_bits_that_it_has_among_others(which):
    x = CASES[which][2][::2001]
    alone = [OURS[which](value) for value in x.tolist()]
    np.testing.assert_array_equal(np.array(alone), applied(which, x))


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


@pytest.mark.slow
def test_another_processor_and_the_plain_functions_of_the_c_library_change_no_bit(tmp_path):
    def digest(**variables):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / str(len(variables)))}
        run = [sys.executable, "-c", DIGEST, str(Path(__file__).parent)]
        found = subprocess.run(
            run, env=environment | variables, check=True, capture_output=True, text=True
        )
        return found.stdout

    plain = "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA,-FMA4"
    # No fused multiply-add in the compiled code, and none in the C library that it then calls.
    other = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "", "GLIBC_TUNABLES": plain}
    assert digest(**other) == digest()


@jit
def product_and_sum(a, b, c):
    return a * b + c


@jit
def fused(a, b, c):
    return intrinsics.fma(a, b, c)


def test_products_and_sums_are_rounded_apart_unless_they_are_asked_to_be_one():
    a = 1.0 + 2.0**-30
    assert product_and_sum(a, a, -(1.0 + 2.0**-29)) == 0.0
    assert fused(a, a, -(1.0 + 2.0**-29)) == 2.0**-60
