"""Kept machine code: never of other sources than the present ones, and no more than needed."""

import ast
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from online_svm.compiled.code_cache import ROOT, _imported, sources

CALLER = "from online_svm.compiled.jit import jit\nfrom online_svm.svm.near import near\n\n"
CALLER += "@jit\ndef far(x):\n    return near(x) + 1.0\n"
NEAR = "from online_svm.compiled.jit import making\nfrom online_svm.factor import FACTOR\n\n"
NEAR += "@making\ndef near(x):\n    return x * FACTOR\n"

RUN = "from online_svm.svm.caller import far; import sys"
RUN += "; print(far(1.0), sum(far._cache_hits.values()), far._cache.cache_path)"


class Copy:
    """A copy of the package, with a function that calls one of another file, with a constant."""

    def __init__(self, directory):
        self._directory, self.package = directory, directory / "online_svm"
        shutil.copytree(ROOT, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        (self.package / "svm" / "caller.py").write_text(CALLER)
        (self.package / "svm" / "near.py").write_text(NEAR)
        (self.package / "factor.py").write_text("FACTOR = 10.0\n")

    def started(self, program, environment):
        clean = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
        ran = subprocess.run(
            [sys.executable, "-c", program], cwd=self._directory, env=clean | environment,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran

    def run(self, **environment):
        """Return the result, whether it came of kept code, and where that is."""
        result, hits, place = self.started(RUN, environment).stdout.split()
        return float(result), bool(int(hits)), Path(place)


@pytest.fixture
def copied(tmp_path):
    return Copy(tmp_path)


def kept(directory):
    return sorted(path.name for path in directory.iterdir() if path.suffix in (".nbi", ".nbc"))


@pytest.mark.parametrize("variable", [None, "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_change_in_another_file_is_seen_wherever_the_code_is_kept(copied, tmp_path, variable):
    """Beside the sources, in a directory of the user's choice, or in that of a user's caches."""
    environment = {variable: str(tmp_path / "kept")} if variable else {}
    if variable == "XDG_CACHE_HOME":  # taken where the sources' directory cannot be written
        (copied.package / "svm" / "__pycache__").write_text("")
    assert copied.run(**environment)[:2] == (11.0, False)
    assert copied.run(**environment)[:2] == (11.0, True)
    near = copied.package / "svm" / "near.py"
    near.write_text(NEAR.replace("x * FACTOR", "2.0 * x * FACTOR"))
    assert copied.run(**environment)[:2] == (21.0, False)
    (copied.package / "factor.py").write_text("FACTOR = 20.0\n")
    assert copied.run(**environment)[:2] == (41.0, False)
    result, was_kept, place = copied.run(**environment)
    assert (result, was_kept) == (41.0, True)
    assert place.is_relative_to(tmp_path / "kept" if variable else copied.package)


def test_a_change_in_a_file_that_is_not_imported_costs_nothing(copied):
    copied.run()
    (copied.package / "predictor.py").write_text("# another\n")
    assert copied.run()[:2] == (11.0, True)


def test_the_code_of_other_versions_is_deleted_and_that_of_other_pythons_is_not(copied):
    *_, place = copied.run()
    first = kept(place)
    (place / "caller.far-5.py39-0123456789abcdef.1.nbc").write_bytes(b"another Python's")
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    (place / f"caller.far-5.{version}.nbi").write_bytes(b"of a version that kept no digest")
    (place / f"gone.old-5.{version}-0123456789abcdef.1.nbc").write_bytes(b"of a file that is gone")
    for factor in range(3):
        (copied.package / "factor.py").write_text(f"FACTOR = {factor}.0\n")
        assert copied.run()[0] == factor + 1.0
    assert "caller.far-5.py39-0123456789abcdef.1.nbc" in kept(place)
    assert len(kept(place)) == len(first) + 1


def test_where_nothing_can_be_kept_the_code_is_compiled_with_a_warning(copied, tmp_path):
    for place in (copied.package / "svm" / "__pycache__", copied.package / "__pycache__"):
        place.write_text("")
    (tmp_path / "file").write_text("")
    program = "from online_svm.svm.caller import far; print(far(1.0))"
    ran = copied.started(program, {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert ran.stdout == "11.0\n"
    assert "set NUMBA_CACHE_DIR to a directory that can be written" in ran.stderr


def test_code_that_can_no_longer_be_kept_runs_all_the_same(copied):
    program = "import resource; from online_svm.svm.caller import far"
    program += "; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); print(far(1.0))"
    assert copied.started(program, {}).stdout == "11.0\n"


def modules():
    """Return the name of each module that compiles functions."""
    for path in sorted(ROOT.rglob("*.py")):
        if "compiled.jit import" in path.read_text():
            yield ".".join(["online_svm", *path.relative_to(ROOT).with_suffix("").parts])


def reached(function, seen):
    """Yield the file of each compiled function that the code of one may call."""
    if function in seen:
        return
    seen.add(function)
    yield Path(function.__code__.co_filename).resolve()
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += [function.__globals__.get(name) for name in function.__code__.co_names]
    for value in values:
        if isinstance(value, Dispatcher):
            yield from reached(value.py_func, seen)


@pytest.mark.parametrize("name", list(modules()))
def test_the_sources_of_a_function_are_those_of_all_that_it_calls(name):
    module = import_module(name)
    own = Path(module.__file__).resolve()
    compiled = [f for f in vars(module).values() if isinstance(f, Dispatcher)]
    called = {path for f in compiled for path in reached(f.py_func, set())}
    assert {path for path in called if path.is_relative_to(ROOT)} <= sources(own)


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.stem)
def test_the_imports_of_a_file_are_those_that_python_reads(path):
    expected = set()
    for node in ast.walk(ast.parse(path.read_text())):
        named = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import is not followed"
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for module in named:
            place = ROOT.parent.joinpath(*module.split("."))
            found = (place.with_suffix(".py"), place / "__init__.py")
            expected |= {f for f in found if f.is_file() and f.is_relative_to(ROOT)}
    assert expected <= set(_imported(path.read_bytes()))


def test_make_clean_removes_the_caches_and_what_the_demo_drew(tmp_path):
    shutil.copy(ROOT.parent / "Makefile", tmp_path)
    for name in ("online_svm/svm", "workers", "tests", "scripts"):
        (tmp_path / name / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "__pycache__" / "a.f-1.py311.1.nbc").write_text("")
        (tmp_path / name / "a.py").write_text("")
    for name in ("demo-output", "build", ".pytest_cache", ".hypothesis", "x.egg-info"):
        (tmp_path / name).mkdir()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == sorted(
        [
            *("Makefile", "online_svm", "online_svm/svm", "online_svm/svm/a.py"),
            *("scripts", "scripts/a.py", "tests", "tests/a.py", "workers", "workers/a.py"),
        ]
    )
