"""Mutate engine, broker and session in a copy of the tree, and count what their tests catch.

python scripts/mutate.py [--count 60] [--seed 0] [--tree DIR]

The places are drawn by the seed. A mutation is caught if a test of its module fails: first the
tests of the same name, then the folder's. Tests that fail without a mutation are left out.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "online_svm", "workers", "tests", "scripts", "docs", "deploy", "pyproject.toml", "README.md"
)  # fmt: skip
LIMIT_SECONDS = 1200  # for the tests of one mutation

FOLDERS = ("online_svm/predictor", "workers/broker", "workers/session")
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
DROPPED = (ast.Expr, ast.AugAssign, ast.Raise)  # statements that can go without a NameError


class Site(NamedTuple):
    """A place in a syntax tree that can be mutated."""

    line: int
    change: str
    apply: Callable[[], None]  # mutates the syntax tree in place


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the mutations and print the test that catches each; return 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="number of mutations")
    parser.add_argument("--seed", type=int, default=0, help="draws the places")
    parser.add_argument("--tree", type=Path, default=ROOT, help="checkout that is mutated")
    options = parser.parse_args(arguments)
    chosen = drawn(options.tree, options.count, options.seed)
    with tempfile.TemporaryDirectory(prefix="mutated-") as directory:
        tree = Path(directory)
        copy_tree(tree, options.tree)
        folders = dict.fromkeys(str(Path(file).parent) for file, _ in chosen)
        broken = {f: failures(tree, [f"tests/{f}"], stops_at_first=False) for f in folders}
        caught = 0
        for count, (file, number) in enumerate(chosen, 1):
            place, test = planted(tree, file, number, broken[str(Path(file).parent)])
            caught += test is not None
            print(f"{count}/{len(chosen)} {place}: {test or 'MISSED'}", flush=True)
    print(f"{caught} caught, {len(chosen) - caught} missed")
    return int(caught < len(chosen))


def drawn(tree: Path, count: int, seed: int) -> list[tuple[str, int]]:
    """Return files and numbers of their sites, in turn from each folder."""
    generator = random.Random(seed)  # noqa: S311 - no secret
    of_folders = []
    for folder in FOLDERS:
        files = [path.relative_to(tree).as_posix() for path in sorted((tree / folder).glob("*.py"))]
        places = [
            (file, i)
            for file in files
            for i in range(len(sites(ast.parse((tree / file).read_text("utf-8")))))
        ]
        generator.shuffle(places)
        of_folders.append(places)
    return [place for row in zip(*of_folders, strict=False) for place in row][:count]


def planted(tree: Path, file: str, number: int, broken: Sequence[str]) -> tuple[str, str | None]:
    """Mutate one site of a file, and return its place and the first test that fails."""
    path = tree / file
    text = path.read_text("utf-8")
    module = ast.parse(text)
    site = sites(module)[number]
    site.apply()
    path.write_text(ast.unparse(module), "utf-8")
    folder = Path("tests", file).parent
    own = folder / f"test_{path.name}"
    tests = [str(own)] if (tree / own).exists() else []
    try:
        failed = failures(
            tree, [*tests, str(folder), *(f"--deselect={one.split()[-1]}" for one in broken)]
        )
    finally:
        path.write_text(text, "utf-8")
    return f"{file}:{site.line}: {site.change}", next(iter(failed), None)


def sites(module: ast.Module) -> list[Site]:
    r"""Return every place in the functions of a module that can be mutated, in a fixed order.

    >>> [one.change for one in sites(ast.parse("def f(x):\n    return x < 2"))]
    ['return None', 'Lt to LtE', '2 to 3']
    """
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [
        node
        for function in ast.walk(module)
        if isinstance(function, functions)
        for statement in function.body
        for node in (function, *ast.walk(statement))
    ]
    return [site for node in {id(node): node for node in nodes}.values() for site in _of(node)]


def _of(node: ast.AST) -> Iterator[Site]:
    """Yield the mutations of a node; a dropped statement is a mutation of its block."""
    for name in ("op", "ops"):
        swapped = getattr(node, name, None)
        operator = swapped[0] if isinstance(swapped, list) else swapped
        if operator is not None and (other := SWAPPED.get(type(operator))) is not None:
            value = [other(), *swapped[1:]] if isinstance(swapped, list) else other()
            change = f"{type(operator).__name__} to {other.__name__}"
            yield Site(node.lineno, change, partial(setattr, node, name, value))  # type: ignore[attr-defined]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        changed = node.value + 1
        yield Site(
            node.lineno, f"{node.value} to {changed}", partial(setattr, node, "value", changed)
        )
    if isinstance(node, ast.Return) and not _is_none(node.value):
        yield Site(node.lineno, "return None", partial(setattr, node, "value", ast.Constant(None)))
    for name in ("body", "orelse", "finalbody"):
        found = getattr(node, name, None)
        block = found if isinstance(found, list) else []  # of a lambda the body is an expression
        for place, statement in enumerate(block):
            if isinstance(statement, DROPPED) and not _is_text(statement):
                drop = partial(block.__setitem__, place, ast.Pass())
                yield Site(statement.lineno, f"dropped {ast.unparse(statement)}"[:60], drop)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def failures(tree: Path, tests: Sequence[str], stops_at_first: bool = True) -> list[str]:
    """Return the tests that fail, by default the first one alone."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    try:
        run = subprocess.run(
            [*command, "-x"] if stops_at_first else command,
            cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ["the tests did not end"]
    if run.returncode == 0:
        return []
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    names = [line.partition(" - ")[0] for line in failed]
    return names or [f"exit code {run.returncode}"]


def copy_tree(target: Path, source: Path = ROOT) -> None:
    """Copy the tree with its compiled files, so that only what changes is compiled again."""
    for name in COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        else:
            shutil.copy2(source / name, target / name)


if __name__ == "__main__":
    sys.exit(main())
