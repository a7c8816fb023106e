"""What the image runs: the built wheel, as a user without rights, on a root that is read-only."""

import json
import os
import signal
import site
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from monitored_feed import COUNT, push
from processes import LIMIT, Process, free_port
from shipped_redis import ShippedRedis
from system_tools import missing, tool
from world import wait_until

import online_svm
from workers.admin.verify import verify
from workers.broker.store import Store

ROOT = Path(__file__).parents[2]
HOME = "/opt/online-svm"  # where the image has it
FEED = "fraud"


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    """A Redis 7 with the shipped settings and users."""
    with ShippedRedis(tmp_path_factory.mktemp("redis"), "system") as server:
        server.start()
        yield server


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel and install it alone; what it needs stands beside it."""
    check_sandbox()
    folder = tmp_path_factory.mktemp("image")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    quiet = ["--quiet", "--no-deps"]

    def call(*command):
        subprocess.run(command, check=True, timeout=240, cwd=folder)

    source = folder / "source"
    archive = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "online_svm", "workers", "scripts/__init__.py",
         "scripts/building", "pyproject.toml", "README.md", "LICENSE"],
        check=True, capture_output=True, timeout=LIMIT,
    ).stdout.decode()  # fmt: skip
    for name in filter(None, archive.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    call(*pip, "wheel", *quiet, "--wheel-dir", folder / "wheels", source)
    (wheel,) = (folder / "wheels").iterdir()
    call(*pip, "install", *quiet, "--target", folder / "root/lib", wheel)
    (folder / "root/bin").mkdir()
    for made in (folder / "root/lib/bin").iterdir():
        made.rename(folder / "root/bin" / made.name)
    return folder / "root"


def check_sandbox():
    """Skip where no sandbox can be made."""
    tried = [tool("bwrap", "bubblewrap"), "--unshare-user", "--ro-bind", "/", "/", "true"]
    told = subprocess.run(tried, capture_output=True, text=True, timeout=LIMIT)
    if told.returncode:
        missing(f"needs a sandbox: bwrap cannot make a sandbox here: {told.stderr.strip()}")


def site_packages():
    return [path for path in sys.path if path.endswith("site-packages")] + site.getsitepackages()


def _python_below_tmp():
    """Return options that show this Python again where it stands below /tmp, as on CI.

    The Python of a virtual environment is a link, maybe to another link: each of them is shown.
    """
    links, python = set(), Path(sys.executable)
    while python.is_symlink():
        python = python.parent / python.readlink()
        links.add(str(python.parent))
    places = sorted({sys.prefix, sys.base_prefix, *site_packages(), *links})
    return [word for at in places if at.startswith("/tmp/") for word in ("--ro-bind", at, at)]


def sandboxed(installed, secrets, *command, extra=()):
    """Return a command line that runs a command as the container would."""
    environment = {
        "PATH": f"{HOME}/bin:/usr/bin:/bin",
        "PYTHONPATH": os.pathsep.join([f"{HOME}/lib", *site_packages()]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "XDG_STATE_HOME": "/tmp",
        "ONLINE_SVM_LOG_FORMAT": "json",
        "ONLINE_SVM_REDIS_PASSWORD_FILE": "/run/secrets/worker-password",
    }
    return [
        tool("bwrap", "bubblewrap"),
        *["--unshare-user", "--uid", "10001", "--gid", "10001", "--unshare-pid", "--unshare-ipc"],
        *["--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc"],
        *["--tmpfs", "/run", "--ro-bind", str(secrets / "worker.password")],
        *["/run/secrets/worker-password", "--tmpfs", "/tmp", *_python_below_tmp()],
        *["--tmpfs", "/opt", "--ro-bind", str(installed), HOME, "--remount-ro", "/opt"],
        *["--chdir", "/tmp", "--clearenv"],
        *[word for name, value in environment.items() for word in ("--setenv", name, value)],
        *extra,
        "online-svm",
        *command,
    ]


def probe(port, path):
    """Return the status of a probe; None where nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_image_works_on_a_read_only_root(installed, redis, tmp_path):
    port, log = free_port(), tmp_path / "worker.log"
    settings = ["--classes", "a,b", "--window", "60", "--refit-every", "20", "--quiet"]
    settings += ["--committee", "single", "--metrics", str(port)]
    where = ["--redis", f"redis://osvm-worker@127.0.0.1:{redis.port}"]
    command = sandboxed(installed, redis.secrets, "worker", FEED, *where, *settings)
    with Store(redis.url("admin"), FEED) as store, log.open("w") as target:
        push(store)
        with Process(command, stderr=target) as process:
            wait_until(lambda: probe(port, "/livez") == 200, 120.0, "the worker lives")
            wait_until(lambda: store.length(store.keys.out) == COUNT, 120.0, "it is answered")
            assert probe(port, "/readyz") == 200
            stop(process)
            assert process.wait() == 0, log.read_text()
        assert json.loads(log.read_text().splitlines()[0])["event"] == "metrics are served"
        state = store.state()
        assert state.snapshot is not None
        assert state.position.seq == COUNT
        assert store.call("GET", store.keys.lease) is None
        assert verify(store).n_differences == 0


def stop(process):
    """Send SIGTERM to the worker, as a container session does: it is the child of the sandbox."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    inner = Path(f"/proc/{children[0]}/task/{children[0]}/children").read_text().split()
    os.kill(int((inner or children)[0]), signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_sandbox_is_what_it_says(installed, redis):
    script = (
        "import os, workers; print(os.getuid(), workers.__file__);"
        "print(os.access('/', os.W_OK), os.access('/usr/bin', os.W_OK), os.access('/tmp', os.W_OK))"
    )
    begin = sandboxed(installed, redis.secrets)[:-1]

    def said(*command):
        told = subprocess.run([*begin, *command], capture_output=True, text=True, timeout=LIMIT)
        assert (told.returncode, told.stderr) == (0, "")
        return told.stdout

    assert said(sys.executable, "-c", script).split() == [
        "10001", f"{HOME}/lib/workers/__init__.py", "False", "False", "True",
    ]  # fmt: skip
    assert said("online-svm", "--version") == f"{online_svm.__version__}\n"
