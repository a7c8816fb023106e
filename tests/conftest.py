"""What every test shares: Hypothesis settings, and a real Redis.

The embedded server, a Valkey 9.1, is installed with the package. A test of what a plain machine
lacks is skipped by name: the oldest Redis that is supported, on which most tests of Redis run as
well, the redis-server of the system, other programs and packages, and the benchmark data. With
`--nothing-missing` it fails.
"""

import gc
import itertools
import os
import signal
from collections import Counter
from pathlib import Path

import one_thread  # noqa: F401  (before anything that loads numpy)
import pytest
import structlog
import system_tools
from hypothesis import settings
from late_refits import late_refits

from workers.broker import embedded, feed_reader
from workers.broker.store import Store
from workers.cli import app as cli
from workers.cli import progress
from workers.config.environment import PREFIX
from workers.push.datasets import DataNotFound, load

# A busy machine may take longer than any sensible deadline for one example.
settings.register_profile("online-svm", deadline=None, derandomize=True)
settings.load_profile("online-svm")

# No test sees the settings of who runs it; where the data sets are is for all to know.
for _name in [name for name in os.environ if name.startswith(PREFIX)]:
    if _name != "ONLINE_SVM_DATA":
        del os.environ[_name]

_SIGNALS = {kind: signal.getsignal(kind) for kind in (signal.SIGTERM, signal.SIGINT)}

_numbers = itertools.count(1)
_homes = itertools.count(1)


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory):
    """Keep what processes leave for later ones out of the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield Path(os.environ["XDG_STATE_HOME"])


@pytest.fixture(scope="session", autouse=True)
def _short_reads():
    """Let a read wait 20 ms for input: many tests look what a feed does without any."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(feed_reader, "BLOCK_MS", 20)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_progress():
    """A slow machine must not print how far a command is, where a test compares what it prints."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(progress, "PROGRESS_SECONDS", 60.0)
        yield


@pytest.fixture(autouse=True)
def _own_state_home(_state_home, monkeypatch):
    """Let no test know the feeds of another: a server may have the port of one that ended."""
    monkeypatch.setenv("XDG_STATE_HOME", str(_state_home / str(next(_homes))))


@pytest.fixture(autouse=True)
def _own_signals():
    """Let no test find signals ignored, as a worker leaves them that ends here after a stop.

    A process that a test starts would lose the SIGTERM that comes during its imports. What is given
    back is what there was at first: a fixture of a whole module may have run a worker too.
    """
    _give_back_signals()
    yield
    _give_back_signals()


def _give_back_signals():
    for kind, handler in _SIGNALS.items():
        signal.signal(kind, handler)


@pytest.fixture(scope="session")
def embedded_url():
    """URL of an embedded server for the whole session."""
    with embedded.temporary() as server:
        yield server.url


@pytest.fixture(scope="session")
def oldest_url():
    """URL of a Redis 6.2, the oldest that is supported, for the whole session."""
    with embedded.temporary(system_tools.oldest_redis()) as server:
        yield server.url


@pytest.fixture(scope="session")
def system_url():
    """URL of a redis-server of the system, Redis 7 or later, for the whole session."""
    with embedded.temporary(system_tools.redis_server(7)) as server:
        yield server.url


@pytest.fixture(params=["embedded", "system"])
def counting_url(request):
    """URL of each server in turn that counts what a stream got and lost: from Redis 7 on."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A Redis Cluster of three primaries, for the whole session."""
    from redis_cluster import running_cluster

    with running_cluster(tmp_path_factory.mktemp("cluster"), replicas=0) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster_url(cluster):
    return cluster.url


@pytest.fixture(scope="session")
def sentinel_url(tmp_path_factory):
    """URL of a Redis that sentinels watch, for the whole session."""
    from redis_cluster import running_watched

    with running_watched(tmp_path_factory.mktemp("sentinel")) as watched:
        yield watched.url


@pytest.fixture(params=["embedded", "oldest"])
def redis_url(request):
    """URL of the newest and the oldest server in turn; the mark `servers` names others."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """Run what a mark `servers` covers once on each kind of server that it names."""
    mark = metafunc.definition.get_closest_marker("servers")
    if mark is not None and "redis_url" in metafunc.fixturenames:
        kinds = pytest.mark.parametrize("redis_url", mark.args, indirect=True)
        metafunc.definition.add_marker(kinds)


@pytest.fixture
def own_redis():
    """A server of the test's own, to be restarted, filled up or flushed."""
    with embedded.temporary() as server:
        yield server


@pytest.fixture
def feed():
    """A feed name that no other test uses."""
    return f"feed-{next(_numbers)}"


@pytest.fixture
def store(redis_url, feed):
    """The store of a feed that does not exist yet."""
    with Store(redis_url, feed, block_ms=20) as store:
        yield store


@pytest.fixture
def world(redis_url, feed, run_command):
    """A feed that does not exist yet, and all that a test does with it; see `world.py`."""
    from world import World

    with World(redis_url, feed, run_command) as world:
        yield world


@pytest.fixture
def lagging():
    """Let refits take effect `refit_every` - 1 examples late, from the first one on."""
    with late_refits():
        yield


@pytest.fixture
def run(run_command, redis_url):
    """Run `online-svm` as `run_command` does, on the server of the test."""
    return lambda *arguments: run_command(*arguments, "--redis", redis_url)


@pytest.fixture
def run_command(capsys):
    """Run `online-svm` in this process; return exit code, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([*map(str, arguments)])
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return run


@pytest.fixture(scope="session")
def data_set():
    """Load a benchmark set by name; whoever asks for it is marked `data`."""
    return load


@pytest.fixture
def tell_line(record_property):
    """Show a line of a table in the summary of the run, whichever process the test is in."""
    return lambda line: record_property("line", str(line))


def pytest_terminal_summary(terminalreporter):
    """Show what tests told by `tell_line`."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    told = [text for one in reports for name, text in one.user_properties if name == "line"]
    if told:
        terminalreporter.section("tables")
        terminalreporter.write("\n".join([*sorted(told), ""]))


def pytest_configure(config):
    system_tools.nothing_missing = config.getoption("--nothing-missing")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skipped(config.getoption("--skipped-to")))


@pytest.hookimpl(trylast=True)  # once the tests of other markers are left out
def pytest_collection_modifyitems(items):
    """Begin with the files of the longest time limits: at the end one process would wait alone."""
    limits = Counter()
    for item in items:
        mark = item.get_closest_marker("timeout")
        limits[item.path] = max(limits[item.path], mark.args[0] if mark else 0)
    items.sort(key=lambda item: -limits[item.path])


def pytest_addoption(parser):
    parser.addoption(
        "--nothing-missing", action="store_true",
        help="fail where a program, a package or the benchmark data is missing",
    )  # fmt: skip
    parser.addoption(
        "--skipped-to", type=Path, metavar="FILE",
        help="write what was skipped to FILE, a line each; `pytest @FILE` runs it",
    )  # fmt: skip


class _Skipped:
    """Counts what was skipped, by reason, and writes which tests and modules it was to a file."""

    def __init__(self, path):
        self._path, self._reasons = path, {}

    def _note(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self._reasons[report.nodeid] = report.longrepr[2]

    pytest_runtest_logreport = pytest_collectreport = _note

    def pytest_terminal_summary(self, terminalreporter):
        for reason, count in Counter(self._reasons.values()).most_common():
            terminalreporter.write_line(f"{count:6,} {reason}")

    def pytest_sessionfinish(self):
        if self._path is not None:
            self._path.write_text("".join(f"{name}\n" for name in self._reasons))


def _skipping_without_data(item):
    """Skip a test that needs data where a file is missing; the reason says how to get it."""
    try:
        return (yield)
    except DataNotFound as error:
        system_tools.missing(str(error))


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_skipping_without_data)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skipping_without_data)


@pytest.fixture(autouse=True)
def _collectable():
    """Let collections see all objects again: a command freezes them once its imports are done.

    The garbage of the tests before it would stay otherwise, and the pipes that it holds.
    """
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _plain_logs():
    """Undo a test's log settings: they hold its standard error, which closes with it."""
    yield
    structlog.reset_defaults()
