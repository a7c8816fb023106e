"""A release as users have it: installed in an empty environment, far from any checkout."""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from scripts.release.archives import NotReleasable

SECONDS = 900.0  # that one command may take, such as an installation from a slow package index

ROWS = 300

_IMPORT = "import online_svm; online_svm.OnlineClassifier(); print(online_svm.__file__)"

_LIBRARY = """
from sklearn.datasets import make_classification
from online_svm import OnlineClassifier, ProbabilitySVC
X, y = make_classification(120, 4, random_state=0)
for model in (OnlineClassifier(), ProbabilitySVC()):
    assert model.fit(X, y).predict_proba(X[:3]).shape == (3, 2)
"""


def check(python: str, wheel: Path, folder: Path, is_quick: bool) -> None:
    """Install the wheel for a Python, the library first and then the service, and use both."""
    at = Environment(python, folder / f"at-{Path(python).name}-{abs(hash(python))}")
    took = at.install(str(wheel))
    if not Path(at.run("python", "-c", _IMPORT).strip()).is_relative_to(at.place):
        raise NotReleasable("the library that was imported is not the one of the wheel")
    version = wheel.name.split("-")[1]
    _equal("--version", at.run("online-svm", "--version").strip(), version)
    output = at.run("online-svm", "worker", "feed", code=2)
    _equal(
        "worker", output.endswith("pip install 'online-svm[service]'\n") and output.count("\n"), 1
    )
    print(f"{at.version}: the library alone: {took:.0f} s, {at.megabytes()} MB")
    if is_quick:
        return
    at.run("python", "-c", _LIBRARY)
    took = at.install(f"{wheel}[service]")
    print(f"{at.version}: with [service]: {took:.0f} s more, {at.megabytes()} MB")
    at.run("online-svm", "demo", "--speed", "20")
    _equal("demo", (at.cwd / "demo-output" / "curves.png").is_file(), True)
    _check_worker(at)
    print(f"{at.version}: demo, push, worker, status, tail and verify run from the wheel")


class Environment:
    """An empty environment, and an empty directory to run its commands in."""

    def __init__(self, python: str, folder: Path) -> None:
        self.place = folder / "environment"
        self.cwd = folder / "empty"
        self.cwd.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", self.place], check=True)
        self.version = self.run("python", "-V").strip()
        self._own = self.megabytes()

    def install(self, what: str) -> float:
        """Install a package with pip, and return the seconds that took."""
        began = time.monotonic()
        self.run("python", "-m", "pip", "install", "--quiet", what)
        return time.monotonic() - began

    def megabytes(self) -> int:
        """Return the size of all that was installed into it, pip left out."""
        total = sum(path.lstat().st_size for path in self.place.rglob("*") if path.is_file())
        return round(total / 1e6) - getattr(self, "_own", 0)

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """Run a program of the environment and return all that it printed.

        Raises
        ------
        NotReleasable
            If it ends with another code.
        """
        ended = subprocess.run(
            self.command(program, *arguments),
            cwd=self.cwd, env=self.variables(), capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        output = ended.stdout + ("" if code == 0 and ended.returncode == 0 else ended.stderr)
        if ended.returncode != code:
            what = " ".join((program, *arguments))
            raise NotReleasable(f"{what}: {ended.returncode}: {output[-2000:]}")
        return output

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line of a program of the environment."""
        return [str(self.place / "bin" / program), *arguments]

    def variables(self) -> Mapping[str, str]:
        """Return the variables of a machine that knows no checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**kept, "XDG_STATE_HOME": str(self.cwd), "MPLCONFIGDIR": str(self.cwd)}


def _check_worker(at: Environment) -> None:
    """Answer a feed with the embedded Redis, stop the worker, and prove its answers."""
    at.run("online-svm", "push", "feed", "Phishing", "--limit", str(ROWS))
    worker = subprocess.Popen(
        at.command("online-svm", "worker", "feed", "--quiet"), cwd=at.cwd, env=at.variables()
    )
    try:
        until = time.monotonic() + SECONDS
        while json.loads(at.run("online-svm", "status", "feed", "--json"))["seq"] < ROWS:
            if time.monotonic() > until or worker.poll() is not None:
                raise NotReleasable(f"the worker answered not all of {ROWS} examples")
            time.sleep(0.5)
    finally:
        worker.terminate()
        code = worker.wait(SECONDS)
    _equal("the exit code of the worker", code, 0)
    at.run("online-svm", "tail", "feed", "--json", "-n", "1")
    at.run("online-svm", "verify", "feed")
    at.run("online-svm", "redis", "stop")


def _equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise NotReleasable(f"{what}: {found!r}, expected {expected!r}")
