"""The command among others in a shell: pipes, completion, `python -m`, and flags in the help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.cli import app as cli

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    """Run a line of bash in which `online-svm` is the command of these sources."""
    place = tmp_path_factory.mktemp("bin")
    command = place / "online-svm"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m workers.cli "$@"\n')
    command.chmod(0o755)

    def run(line):
        # Without a wide terminal the lines of the help would wrap.
        environment = os.environ | {"PATH": f"{place}:{os.environ['PATH']}", "COLUMNS": "100"}
        return subprocess.run(
            ["bash", "--norc", "-c", line],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.mark.parametrize("command", ["worker", "combine", "tail", ""])
def test_the_help_of_which_only_the_head_is_read_ends_quietly_with_code_0(bash, command):
    done = bash(f"online-svm {command} --help | head -3; echo ${{PIPESTATUS[0]}}")
    assert done.stdout.splitlines()[-1] == "0"
    assert "Usage: online-svm" in done.stdout
    assert done.stderr == ""


def completed(bash, *words):
    """Return what bash offers for the last word of a line, by the script that users source."""
    done = bash(
        "source <(_ONLINE_SVM_COMPLETE=source_bash online-svm)\n"
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
        'set -e; _online_svm_completion online-svm; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_the_shell_completes_every_command(bash):
    assert sorted(completed(bash, "online-svm", "")) == sorted(cli.COMMANDS)
    assert completed(bash, "online-svm", "stat") == ["status"]


def test_the_shell_completes_the_options_and_choices_of_a_command(bash):
    assert completed(bash, "online-svm", "status", "--js") == ["--json"]
    assert completed(bash, "online-svm", "check", "--refit-e") == ["--refit-every"]
    assert completed(bash, "online-svm", "worker", "f", "--kernel", "") == ["rbf", "linear", "poly"]
    assert completed(bash, "online-svm", "worker", "f", "--kernel", "p") == ["poly"]


@pytest.mark.parametrize(
    "asked",
    [
        {"COMP_WORDS": "online-svm\nstatus\n--", "COMP_CWORD": "2", "how": "complete_bash"},
        {"_TYPER_COMPLETE_ARGS": "online-svm status --", "how": "complete_zsh"},
    ],
)
def test_completing_one_command_loads_no_other(monkeypatch, capsys, asked):
    monkeypatch.setenv("_ONLINE_SVM_COMPLETE", asked.pop("how"))
    for name, text in asked.items():
        monkeypatch.setenv(name, text)
    loaded = []
    real = cli.application
    monkeypatch.setattr(cli, "application", lambda names: loaded.append(list(names)) or real(names))
    with pytest.raises(SystemExit) as ended:
        cli.main([])
    assert ended.value.code == 0
    assert loaded == [["status"]]
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize("package", ["online_svm", "workers"])
def test_both_packages_run_as_the_command(package):
    done = subprocess.run(
        [sys.executable, "-m", package, "status", "--redis", "http://h"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("online-svm: redis URL")


def test_the_library_from_sources_alone_says_that_the_command_is_not_installed():
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"""
import runpy, sys

sys.argv = ["online_svm", "status"]
runpy.run_path({str(ROOT / "online_svm" / "__main__.py")!r}, run_name="__main__")
""",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "online-svm: not installed: run python -m pip install -e .\n"


def help_pages(command, words=()):
    """Yield the words that ask for each page of the help."""
    yield [*words, "--help"]
    for name, part in getattr(command, "commands", {}).items():
        yield from help_pages(part, [*words, name])


def test_no_page_of_the_help_gives_a_flag_a_value(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    pages = list(help_pages(cli.application()))
    assert ["redis", "stop", "--help"] in pages
    for words in pages:
        with pytest.raises(SystemExit):
            cli.main(words)
        shown = capsys.readouterr().out
        assert "--help" in shown
        assert "<bool>" not in shown, words
