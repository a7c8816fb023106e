"""Plant one-line faults in a copy of the tree, one at a time, and say which test notices each.

python scripts/plant_faults.py [AREA ...]

The faults are in tests/oracle/faults.toml. A fault that no test notices is a test that is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAULTS = ROOT / "tests" / "oracle" / "faults.toml"
KEPT = (
    "online_svm",
    "workers",
    "tests",
    "scripts",
    "docs",
    "deploy",
    "pyproject.toml",
    "README.md",
)
LIMIT = 1200  # seconds for the tests of one fault

Fault = Mapping[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the faults of the areas given, all without one; return how many were not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA")
    areas = parser.parse_args(arguments).areas
    listed = tomllib.loads(FAULTS.read_text("utf-8"))
    faults = [fault for fault in listed["fault"] if not areas or fault["area"] in areas]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        tree = Path(directory)
        _copy(tree)
        for number, fault in enumerate(faults, 1):
            noticed = planted(tree, fault, listed["tests"][fault["area"]])
            missed += noticed is None
            told = noticed or "NOT NOTICED"
            print(f"{number}/{len(faults)} {fault['area']}: {fault['name']}: {told}", flush=True)
    print(f"{len(faults) - missed} passed, {missed} failed")
    return min(missed, 1)


def planted(tree: Path, fault: Fault, tests: Sequence[str]) -> str | None:
    """Return the first test that fails with a fault in the copy, which is then mended again.

    Raises
    ------
    ValueError
        If the line of the fault is not in its file, or several times.
    """
    path = tree / fault["file"]
    text = path.read_text("utf-8")
    if text.count(fault["old"]) != 1:
        raise ValueError(f"{fault['name']}: its line is not once in {fault['file']}: mend the list")
    path.write_text(text.replace(fault["old"], fault["new"]), "utf-8")
    try:
        return _first_failure(tree, tests)
    finally:
        path.write_text(text, "utf-8")


def _first_failure(tree: Path, tests: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "the tests did not end"
    if run.returncode == 0:
        return None
    failed = (line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR")))
    return next(failed, f"exit code {run.returncode}").partition(" - ")[0]


def _copy(tree: Path) -> None:
    """Copy the tree with what was compiled of it, so that only what changes is compiled anew."""
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name)
        else:
            shutil.copy2(source, tree / name)


if __name__ == "__main__":
    sys.exit(main())
