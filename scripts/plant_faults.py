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
FOLDERS = ("online_svm", "workers", "tests", "scripts", "docs", "deploy")
COPIED = (*FOLDERS, "pyproject.toml", "README.md")
LIMIT_SECONDS = 1200  # for the tests of one fault

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
        copy_tree(tree)
        for number, fault in enumerate(faults, 1):
            noticed = planted(tree, fault, listed["tests"][fault["area"]])
            missed += noticed is None
            result = noticed or "NOT NOTICED"
            print(f"{number}/{len(faults)} {fault['area']}: {fault['name']}: {result}", flush=True)
    print(f"{len(faults) - missed} passed, {missed} failed")
    return min(missed, 1)


def planted(tree: Path, fault: Fault, tests: Sequence[str]) -> str | None:
    """Return the first test that fails with a fault in the copy, which is then restored."""
    path = tree / fault["file"]
    text = path.read_text("utf-8")
    if text.count(fault["old"]) != 1:
        raise ValueError(f"{fault['name']}: its line is not once in {fault['file']}: mend the list")
    path.write_text(text.replace(fault["old"], fault["new"]), "utf-8")
    try:
        return next(iter(failures(tree, tests)), None)
    finally:
        path.write_text(text, "utf-8")


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
