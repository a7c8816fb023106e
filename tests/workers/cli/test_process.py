"""The command among other processes: pipes, completion, `python -m`, imports, descriptors, logs."""

import errno
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

import workers
from workers import log as logs
from workers.broker import embedded
from workers.broker.store import Store
from workers.cli import app as cli
from workers.log import Logger
from workers.push.ingest import push
from workers.push.sources import Reading, rows
from workers.python_process import importing

ROOT = Path(__file__).parents[3]
DESCRIPTORS = Path("/proc/self/fd")


def python(*arguments, **options):
    """Run Python; return what came of it."""
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run([sys.executable, *arguments], check=False, **options)


# Output that nobody reads any more: exit codes, and no traceback.


@pytest.fixture
def unheard(redis_url):
    """Run a command whose output, or all it says, goes to a pipe without a reader."""

    def run(*arguments, says=True, where=True):
        reading, writing = os.pipe()
        os.close(reading)
        done = python(
            *("-m", "workers.cli", *arguments, *["--redis", redis_url] * where),
            capture_output=False,
            stdout=writing,
            stderr=subprocess.PIPE if says else writing,
        )
        os.close(writing)
        return done.returncode, done.stderr

    return run


# The third writes so little that it meets the closed pipe only when it has ended.
@pytest.mark.parametrize(
    "command",
    [
        ("export", "answered"), ("tail", "answered", "-n", "0", "--json"),
        ("tail", "answered", "-n", "1"), ("worker", "--help"),
    ],
)  # fmt: skip
def test_a_command_whose_reader_is_gone_ends_quietly_with_code_0(answered, unheard, command):
    assert unheard(*command, where="--help" not in command) == (0, "")


@pytest.mark.parametrize("command", ["push", "verify", "backup", "worker", "status"])
def test_work_that_ends_because_nobody_reads_is_not_done(
    answered, unheard, redis_url, source, command, tmp_path
):
    """An error that nobody reads keeps its exit code: here that of a feed that is not there."""
    if command == "worker":
        push(rows("Phishing", Reading()), redis_url, "unread")
    arguments, code = {
        "push": (["unheard", str(source)], 1),
        "verify": ([answered[0]], 1),
        "backup": ([answered[0], str(tmp_path / "x"), "--json"], 1),
        "worker": (["unread", "--classes", "true,false"], 1),
        "status": (["nosuch"], 2),
    }[command]
    assert unheard(command, *arguments, says=False)[0] == code


def test_a_broken_pipe_that_is_not_the_output_is_a_fault(answered, redis_url, monkeypatch):
    def broken(*_):
        raise BrokenPipeError

    monkeypatch.setattr("workers.reading.registry.require", broken)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with pytest.raises(BrokenPipeError):
        cli.main(["tail", answered[0], "--redis", redis_url])


# A shell


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    """Run a line of bash in which `online-svm` is the command of these sources."""
    place = tmp_path_factory.mktemp("bin")
    command = place / "online-svm"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m workers.cli "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{place}:{os.environ['PATH']}", "COLUMNS": "100"}
    return lambda line: subprocess.run(
        ["bash", "--norc", "-c", line],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


COMPLETED = {
    ("",): sorted(cli.COMMANDS),
    ("status", "--js"): ["--json"],
    ("check", "--refit-e"): ["--refit-every"],
    ("worker", "f", "--kernel", ""): ["linear", "rbf"],
}


def test_the_shell_completes_commands_options_and_choices(bash):
    """By the script that users source."""
    lines = ["source <(_ONLINE_SVM_COMPLETE=source_bash online-svm)", "set -e"]
    for words in COMPLETED:
        typed = " ".join(map(repr, ("online-svm", *words)))
        lines += [f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}",
                  '_online_svm_completion online-svm; echo "${COMPREPLY[@]}"']  # fmt: skip
    done = bash("\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    offered = [sorted(line.split()) for line in done.stdout.splitlines()]
    assert dict(zip(COMPLETED, offered, strict=True)) == COMPLETED


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        ("complete_bash", {"COMP_WORDS": "online-svm\nstatus\n--", "COMP_CWORD": "2"}),
        ("complete_zsh", {"_TYPER_COMPLETE_ARGS": "online-svm status --"}),
    ],
)
def test_completing_one_command_loads_no_other(monkeypatch, run_command, how, asked):
    for name, text in (asked | {"_ONLINE_SVM_COMPLETE": how}).items():
        monkeypatch.setenv(name, text)
    loaded = []
    real = cli.application
    monkeypatch.setattr(cli, "application", lambda names: loaded.append(list(names)) or real(names))
    code, out, _ = run_command()
    assert (code, loaded, "--json" in out) == (0, [["status"]], True)


@pytest.mark.parametrize("package", ["online_svm", "workers"])
def test_both_packages_run_as_the_command(package):
    done = python("-m", package, "status", "--redis", "http://h")
    assert done.returncode == 2
    assert done.stderr.startswith("online-svm: redis URL")


def test_the_library_from_sources_alone_says_that_the_command_is_not_installed():
    main = str(ROOT / "online_svm" / "__main__.py")
    script = f"import runpy, sys; sys.argv = ['x', 'status']; runpy.run_path({main!r}, None, "
    done = python("-I", "-S", "-c", script + "'__main__')")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "online-svm: not installed: run python -m pip install -e .\n"


# What a small command costs

HEAVY = {
    "status": [
        *("structlog", "sklearn", "scipy", "numpy", "river"),
        *("pydantic_settings", "matplotlib"),
    ],
    "--help": ["numpy", "sklearn"],
}
HEAVY["tail"] = HEAVY["status"]


@pytest.fixture(scope="module")
def where():
    """A feed with one answer, as arguments: name and URL."""
    with embedded.temporary() as server, Store(server.url, "f") as store:
        store.call("XADD", store.keys.out, "1-1", "p", '{"seq":0,"status":"warming","reason":""}')
        yield "f", "--redis", server.url


@pytest.mark.parametrize("command", HEAVY)
def test_a_small_command_imports_nothing_heavy(where, command, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_DATA", "somewhere")  # no setting, so none needs loading
    arguments = [command] if command == "--help" else [command, *where]
    script = (
        f"import sys\nfrom workers.cli import main\ntry:\n    main({arguments!r})\n"
        "except SystemExit as ended:\n    assert not ended.code\n"
        f"print('imported', [name for name in {HEAVY[command]!r} if name in sys.modules])\n"
    )
    assert python("-c", script).stdout.endswith("imported []\n")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="needs /proc")
def test_a_command_leaves_no_descriptor_open(run_command):
    def count():
        assert run_command("check", "--help")[0] == 0
        return len(list(DESCRIPTORS.iterdir()))

    count()
    gc.collect()  # what other tests left to the collector is closed now, not between the two looks
    assert [count() for _ in range(5)] == [count()] * 5


def test_a_block_that_imports_nothing_leaves_later_garbage_to_the_collector():
    frozen = gc.get_freeze_count()
    with importing():
        pass
    assert gc.get_freeze_count() == frozen


def test_a_command_that_sets_no_logs_up_logs_to_standard_error_like_the_others(capsys):
    Logger("online_svm.redis").warning("no answer", after=0.5)
    told = capsys.readouterr()
    assert told.out == ""
    assert 'level=warning event="no answer" after=0.5' in told.err


def test_every_module_logs_through_the_logger_that_never_writes_to_standard_output():
    root = Path(workers.__file__).parent
    found = [path.name for path in root.rglob("*.py") if "structlog" in path.read_text()]
    assert sorted(found) == ["app.py", "log.py"]


def test_no_value_forges_a_log_line_or_makes_it_long(capsys):
    logs.configure()
    log = structlog.get_logger()
    log.info("at work", epoch=3)
    log.info("rejected", reason='x\n2026 level=error event="forged"\x1b[2J\u2028', raw=b"\xff\n")
    log.info("rejected", reason="a" * 1_000_000)
    first, forged, long = capsys.readouterr().err.splitlines()
    assert first.startswith("timestamp=")
    assert 'level=info event="at work" epoch=3' in first
    assert forged.isprintable()
    assert len(long) < 2 * logs.MAX_VALUE_CHARACTERS


def test_files_that_a_command_makes_are_private(world, tmp_path, monkeypatch):
    world.push(30)
    world.answer()
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    try:
        for arguments in (
            ("report", world.feed, "--out", "report.html"),
            ("report", world.feed, "--card", "--out", "card.html"),
            ("export", world.feed, "answers.csv"),
            ("backup", world.feed, "feed.sqlite"),
        ):
            code, _, said = world.run(*arguments)
            assert code == 0, said
        made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
        assert len(made) >= 3
        assert set(made.values()) == {0o600}, made
        assert os.umask(0o022) == 0o022, "the process that called has its own again"
    finally:
        os.umask(before)


def test_a_full_disk_is_told_in_one_line(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "/data/file")

    monkeypatch.setattr("workers.broker.embedded.running", full)
    with pytest.raises(SystemExit) as ended:
        cli.main(["redis", "status"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "online-svm: /data/file: No space left on device; make room\n"
