"""The package installs from a checkout on a machine without a C compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from emulated_machine import installed

from online_svm.compiled.kernel import LIBRARY

ROOT = Path(__file__).parents[2]
NEEDED = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml")
FOUND = """
import json
from online_svm.compiled.kernel import LIBRARY
print(json.dumps([LIBRARY.__file__, LIBRARY.level]))
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the build reads, without anything that was built."""
    copy = tmp_path / "checkout"
    for package in ("online_svm", "workers", "scripts"):
        copytree(ROOT / package, copy / package, ignore=ignore_patterns("*.so", "__pycache__"))
    for name in NEEDED:
        (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture
def without_compiler(tmp_path):
    """The environment of a machine whose PATH has no program at all."""
    installed(tmp_path / "probe", "--no-deps", "typing-extensions")  # skips without an index
    (tmp_path / "path").mkdir()
    variables = {
        name: text for name, text in os.environ.items() if name not in ("CC", "PYTHONPATH")
    }
    return variables | {"PATH": str(tmp_path / "path")}


@pytest.mark.slow
@pytest.mark.timeout(600)  # Zig is fetched, and builds all levels
@pytest.mark.parametrize("is_editable", [False, True])
def test_it_installs_without_a_c_compiler(checkout, without_compiler, tmp_path, is_editable):
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=120)
    command = [place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["-e", checkout] if is_editable else [checkout]
    subprocess.run(command, env=without_compiler, cwd=tmp_path, check=True, timeout=600)
    (packages,) = place.glob("lib/python*/site-packages")
    where = checkout if is_editable else packages
    found = subprocess.run(
        [sys.executable, "-c", FOUND],
        env=without_compiler | {"PYTHONPATH": str(where)},
        cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True,
    ).stdout  # fmt: skip
    file, level = json.loads(found)
    assert Path(file).is_relative_to(where)
    assert level == LIBRARY.processor_level()
