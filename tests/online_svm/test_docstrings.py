"""What a base class or a protocol says of a method is said there alone."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASES = {"Protocol", "ABC"}


@cache
def documented():
    """Return each class of either package, with its methods and their docstrings."""
    return [*_documented()]


def _documented():
    for package in ("online_svm", "workers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    for method in node.body:
                        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method):
                            yield node, method, str(ast.get_docstring(method))


def is_base(node):
    return any(ast.unparse(base).split("[")[0] in BASES for base in node.bases)


def test_no_method_repeats_the_docstring_of_a_protocol_or_an_abstract_class():
    said = {(method.name, text) for node, method, text in documented() if is_base(node)}
    repeated = {
        f"{node.name}.{method.name}"
        for node, method, text in documented()
        if not is_base(node) and (method.name, text) in said
    }
    assert said
    assert repeated == set()
