"""No file computes with what has other last bits on another machine, or in another library.

`online_svm/compiled/__init__.py` says what of numpy and Python is left.
"""

import ast
from pathlib import Path

import pytest

import online_svm

PACKAGE = Path(online_svm.__file__).parent

TRANSCENDENTAL = {
    *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "power", "float_power"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan"),
    *("arctan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh"),
    *("arctanh", "hypot", "cbrt", "gamma", "lgamma", "erf", "erfc", "logaddexp", "logaddexp2"),
}
LINEAR_ALGEBRA = {"dot", "vdot", "inner", "matmul", "einsum", "tensordot", "linalg", "convolve"}
# Their sums are in pairs, whose cut another version may place elsewhere.
MOMENTS = {"mean", "average", "var", "std", "nansum", "nanmean", "nanvar", "nanstd"}
# What no two versions promise: numbers drawn, and fits.
DRAWS = {"random", "interp", "polyfit", "quantile", "percentile"}
REFUSED = TRANSCENDENTAL | LINEAR_ALGEBRA | MOMENTS | DRAWS

OUTSIDE = {
    "metrics/detection.py": "of stored answers, for pages and reports",
    "metrics/scores.py": "of whole runs; a feed takes CLIP alone",
    "predictor/explanation.py": "explains an answer, which it does not change",
    "refit/older_rows.py": "of whole runs: the advice of a backtest",
    "svm/out_of_fold.py": "of ProbabilitySVC, whose machines are those of libsvm",
    "svm/probability_svc.py": "no feed is answered by it, and its machines are those of libsvm",
}
"""What no answer, report, alarm, state or decision of a feed goes through, and why."""

FILES = sorted(
    str(path.relative_to(PACKAGE))
    for path in PACKAGE.rglob("*.py")
    if str(path.relative_to(PACKAGE)) not in OUTSIDE
)


def refused_in(tree):
    """Return what a file computes with that it must not, each as line and name."""
    for node in ast.walk(tree):
        if name := refused(node):
            yield node.lineno, name


def refused(node):
    """Return the name of what a node of the tree must not compute with, if it does."""
    match node:
        case ast.Attribute(ast.Name("math" | "np" as module), name) if name in REFUSED:
            return f"{module}.{name}"
        case ast.Call(ast.Attribute(_, name)) if name in LINEAR_ALGEBRA | MOMENTS:
            return f".{name}()"
        case ast.ImportFrom(str(name)) | ast.Import([ast.alias(name)]) if name.startswith("scipy"):
            return name
        case ast.BinOp(_, ast.MatMult()):
            return "@"
        case ast.BinOp(base, ast.Pow(), _) if not (is_integer(base) or is_power_of_two(node)):
            return "**"  # Python asks the C library for it even where the exponent is 2
    return None


def is_integer(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def is_power_of_two(node):
    return ast.unparse(node).startswith("2.0 ** ")


@pytest.mark.parametrize("name", FILES)
def test_a_file_computes_with_what_is_the_same_on_any_machine(name):
    assert list(refused_in(ast.parse((PACKAGE / name).read_text("utf-8")))) == []


def test_each_file_that_is_left_out_would_be_refused():
    for name in OUTSIDE:
        assert list(refused_in(ast.parse((PACKAGE / name).read_text("utf-8"))))


DIFFERING = """
import scipy.stats
from scipy import special
math.log(x)
np.exp(x)
np.linalg.norm(x)
np.random.default_rng(0)
a @ b
a.dot(b)
x.mean()
x ** 0.5
x ** 2
x ** y
"""


@pytest.mark.parametrize("line", DIFFERING.split("\n")[1:-1])
def test_what_differs_between_machines_is_found(line):
    assert list(refused_in(ast.parse(line)))
