"""The page of the architecture names files, functions and folders that exist, and all folders."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
FUNCTIONS = sorted(set(re.findall(r"`([\w/]+\.py)::([\w.]+)`", PAGE)))
PATHS = sorted(set(re.findall(r"`((?:online_svm|workers|tests|scripts|docs)/[\w/.]+)", PAGE)))
DRAWING, ORDER = re.findall(r"```text\n(.*?)```", PAGE, re.S)


def drawn():
    """Return the folders of the drawing as paths."""
    found, above = set(), []
    for line in DRAWING.splitlines():
        indent, name = re.match(r"( *)([\w/]+)/ ", line).groups()
        above = [*above[: len(indent) // 2], name]
        found.add("/".join(above))
    return found


def members(path):
    """Return the functions and classes of a file, and the methods as `Class.method`."""
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (
                f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)
            )


def test_every_function_and_path_that_the_page_names_is_there():
    assert [f"{path}::{name}" for path, name in FUNCTIONS if name not in members(path)] == []
    assert [path for path in PATHS if not (ROOT / path).exists()] == []
    assert len(FUNCTIONS) > 10
    assert len(PATHS) > 25


@pytest.mark.parametrize("package", ["online_svm", "workers"])
def test_the_drawing_has_the_folders_that_there_are_and_no_others(package):
    there = {
        path.parent.relative_to(ROOT).as_posix()
        for pattern in ("__init__.py", "*.lua")
        for path in (ROOT / package).rglob(pattern)
    }
    # Folders within this one are told of in a word.
    told = {path for path in there if not re.match(r"online_svm/calibration/\w", path)}
    assert {path for path in drawn() if path.split("/")[0] == package} == told


def test_the_order_of_imports_on_the_page_is_the_one_that_is_tested():
    source = ast.parse((ROOT / "tests/test_imports.py").read_text("utf-8"))
    layers = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("LIBRARY", "SERVICE")
    }
    pages = re.split(r"\nworkers ", ORDER.removeprefix("online_svm "))
    for text, name in zip(pages, ("LIBRARY", "SERVICE"), strict=True):
        printed = [{part.strip() for part in layer.split(",")} for layer in text.split(">")]
        assert printed == [layer for layer in layers[name] if layer != {"__main__"}]
