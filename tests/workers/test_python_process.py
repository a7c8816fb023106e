"""How this program runs as Python processes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workers import python_process

ROOT = Path(__file__).parents[2]

STARTS = """\
import subprocess
from workers.python_process import command, environment
subprocess.run(command("-c", "import workers; print(workers.__file__)"), env=environment())
"""


def test_one_module_starts_python_and_no_command_line_lacks_the_safe_path():
    paths = [path for folder in ("workers", "scripts") for path in (ROOT / folder).rglob("*.py")]
    texts = {path: path.read_text("utf-8") for path in paths if path.stem != "python_process"}
    unsafe = re.compile(r'get_context|sys\.executable, (?!"-P")')
    assert [path for path, text in texts.items() if unsafe.search(text)] == []
    ours = [path for path, text in texts.items() if "sys.executable" in text]
    assert [path for path in ours if path.is_relative_to(ROOT / "workers")] == []


@pytest.mark.parametrize("found", ["by the current directory", "by PYTHONPATH"])
def test_a_process_runs_the_sources_of_the_one_that_started_it(tmp_path, found):
    """Though others are installed, and none of its own."""
    (tmp_path / "workers").mkdir()
    for name in ("__init__.py", "python_process.py"):
        shutil.copy(ROOT / "workers" / name, tmp_path / "workers")
    places = {"PYTHONPATH": str(tmp_path)} if found == "by PYTHONPATH" else {}
    others = {name: text for name, text in os.environ.items() if name != "PYTHONSAFEPATH"}
    told = subprocess.run(
        [sys.executable, "-c", STARTS], env=others | places, capture_output=True, text=True,
        cwd="/" if places else tmp_path,
    )  # fmt: skip
    assert told.stdout.strip() == str(tmp_path / "workers" / "__init__.py"), told.stderr


def test_installed_packages_do_not_come_before_the_standard_library(monkeypatch):
    monkeypatch.setattr(python_process.site, "getsitepackages", lambda: [python_process.ROOT])
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert python_process.environment()["PYTHONPATH"] == "elsewhere"
