"""Commands in a folder, also their home, full of modules that shadow all that they load.

Each module writes its name to a file, and raises. So an import from the folder is seen even where
the command survives it.
"""

import json
import os
import subprocess
import sys
import urllib.request
from functools import cache
from pathlib import Path
from subprocess import PIPE

import pytest
from processes import LIMIT, Process, free_port
from system_tools import package
from world import World, wait_until

package("starlette", "pip install 'online-svm[http]'")

from served_gateway import Client  # noqa: E402  (it needs that package)

ROOT = Path(__file__).parents[2]

LOADED = """\
import importlib, pkgutil, sys
import online_svm, scripts, workers
for package in (online_svm, workers):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError:
                pass  # of an extra that is not installed
print(*{name.partition(".")[0] for name in sys.modules} | sys.stdlib_module_names)
"""

SHADOW = """\
with open({imported!r}, "a") as file:
    file.write({name!r} + "\\n")
raise RuntimeError("imported from the current directory")
"""

SCRIPT = """\
#!{python}
import sys
from workers.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""
"""What pip makes of the entry point `online-svm`."""


@cache
def loaded():
    """Return the top-level names of all modules that any command loads, or could."""
    found = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in found.stdout.split() if name.isidentifier() and name != "__main__"}


class HostileFolder:
    """The folder: it is the home of who starts a command, and the current directory."""

    def __init__(self, place):
        self.folder = place / "shared"
        self.folder.mkdir()
        self._imported = place / "imported"
        for name in loaded():
            text = SHADOW.format(imported=str(self._imported), name=name)
            (self.folder / f"{name}.py").write_text(text)
        self.program = place / "bin" / "online-svm"
        self.program.parent.mkdir()
        self.program.write_text(SCRIPT.format(python=sys.executable))
        self.program.chmod(0o755)
        homes = {"HOME": str(self.folder), "XDG_STATE_HOME": str(place / "state")}
        self.options = {"cwd": self.folder, "env": os.environ | homes}

    def begin(self, *command, **options):
        return Process([*map(str, command)], **self.options | options)

    def run(self, *command, seconds=LIMIT, **options):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with self.begin(*command, **pipes | options) as process:
            out, err = process.communicate(timeout=seconds)
        assert process.returncode == 0, err
        return out

    def check(self):
        found = self._imported.read_text().split() if self._imported.exists() else []
        assert found == []


COMPARED = ("Phishing", "--limit", "150", "--set", "base:window=100,refit_every=50", "--set",
            "wide:gamma=0.1", "--json")  # fmt: skip


LATER = ("json", "logging", "multiprocessing", "numpy", "pydantic", "redis", "typer")


@pytest.fixture
def hostile(tmp_path):
    """The folder, from which nothing may have been imported in the end."""
    made = HostileFolder(tmp_path)
    yield made
    made.check()


@pytest.fixture
def filled(embedded_url, feed):
    with World(embedded_url, feed) as world:
        world.push()
        yield world


def page_in(told):
    with urllib.request.urlopen(json.loads(told)["url"], timeout=LIMIT) as reply:
        return reply.read()


@pytest.mark.parametrize("program", ["script", pytest.param("module", marks=pytest.mark.slow)])
def test_a_worker_its_refits_and_its_page_work(filled, hostile, program):
    safely = (sys.executable, "-P", "-m", "workers.cli")
    started = (hostile.program,) if program == "script" else safely
    worker = filled.worker("--dashboard", "0", program=started, **hostile.options)
    worker.wait_for(filled.store, filled.pushed)
    wait_until(lambda: "the page is at" in worker.said)
    assert "refit" not in worker.stopped()  # no refit failed
    filled.check()


def test_python_m_imports_nothing_from_there_once_it_runs(filled, hostile, tmp_path):
    """What `-m` itself imports comes from there before anything of ours runs: hence `-P`."""
    for path in hostile.folder.glob("*.py"):
        if path.stem not in LATER:
            path.unlink()
    filled.worker(**hostile.options).wait_for(filled.store, filled.pushed)
    filled.check()


def test_the_page_and_the_gateway_work(filled, hostile):
    where = (filled.feed, "--redis", filled.url, "--json")
    with hostile.begin(hostile.program, "dashboard", *where, "--port", "0", stdout=PIPE) as page:
        assert b"online-svm" in page_in(page.stdout.readline())
    package("starlette", "pip install 'online-svm[http]'")
    filled.worker(program=(hostile.program,), **hostile.options)
    filled.wait_for(filled.pushed)
    port = free_port()
    command = (hostile.program, "gateway", *where, "--port", port)
    with hostile.begin(*command, stdout=PIPE) as gateway:
        assert json.loads(gateway.stdout.readline())["port"] == port
        path = f"/feeds/{filled.feed}/examples?timeout=30"
        ask = Client(port).post
        wait_until(lambda: ask(path, {"x": [1, 2, 3]}).status == 200, pause=0.2)


def test_processes_of_a_backtest_work(hostile):
    told = hostile.run(hostile.program, "backtest", *COMPARED, "--processes", "2", seconds=120)
    assert [json.loads(line)["name"] for line in told.splitlines()] == ["base", "wide"]
