"""The command as a whole: help, exit codes, what it imports, how long that takes."""

import resource
import subprocess
import sys

import pytest

from online_svm.errors import InvalidConfig, InvalidInput, InvalidSnapshot
from workers.broker import embedded
from workers.broker.store import Store
from workers.cli import app as cli
from workers.cli import common
from workers.cli.options import COMMON
from workers.config.settings import WorkerSettings, load
from workers.errors import Fenced, RefitFailed


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    # It stands for the colours that some CI services ask for.
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", False)


@pytest.fixture
def run(run_command):
    """Run a command without an option of Redis."""
    return run_command


def test_the_help_groups_the_commands_by_what_people_do(run):
    code, out, _ = run("--help")
    assert code == 0
    found = {}
    for line in out.splitlines():
        if line.startswith("╭─ "):
            group = found.setdefault(line.strip("╭╮─ "), [])
        elif line.startswith("│ ") and line[2] != " " and not line.startswith("│ -"):
            group.append(line.split()[1])
            assert len(line.split()) > 5, "a command has no words"
    del found["Options"]
    assert {group: tuple(names) for group, names in found.items()} == cli.GROUPS


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_its_own_help(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"online-svm {command}" in out


def parts(command, path):
    """Yield each command below one with the words that lead to it."""
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from parts(part, (*path, name))


def names(command):
    return {option.name for option in command.params}


def test_every_help_shows_all_of_its_text(run, monkeypatch):
    """Text such as [name] is no markup."""
    monkeypatch.setenv("COLUMNS", "1000")
    found = dict(parts(cli.application(), ()))
    assert sorted(words[0] for words in found if len(words) == 1) == sorted(cli.COMMANDS)
    for path, command in found.items():
        _, out, _ = run(*path, "--help-all" if "help_all" in names(command) else "--help")
        shown = " ".join(out.split())
        options = [option.help for option in command.params if not getattr(option, "hidden", False)]
        for text in filter(None, (command.help, *options)):
            for paragraph in text.replace("\\[", "[").split("\n\n"):
                assert " ".join(paragraph.split()) in shown, path
    assert "a section for each configuration: [name], then" in run("backtest", "--help")[1]


def test_the_version_is_that_of_the_package(run):
    from online_svm import __version__

    assert run("--version") == (0, f"{__version__}\n", "")


def test_an_unknown_command_is_refused(run):
    code, _, err = run("predict")
    assert code == 2
    assert "predict" in err


def test_every_setting_is_a_flag_of_the_worker(run):
    _, out, _ = run("worker", "--help-all")
    for name in WorkerSettings.model_fields:
        assert f"--{name.replace('_', '-')}" in out


def test_the_help_of_the_worker_shows_the_dozen_settings_that_people_set(run):
    _, out, _ = run("worker", "--help")
    shown = {line.split()[1] for line in out.splitlines() if line[2:4] == "--"}
    own = {"--redis", "--config", "--dashboard", "--quiet", "--help-all", "--help"}
    assert len(COMMON) == 12
    assert shown == own | {f"--{name.replace('_', '-')}" for name in COMMON}


@pytest.mark.parametrize("command", ["worker", "check"])
def test_the_help_shows_what_a_setting_may_be(run, command):
    _, out, _ = run(command, "--help-all")
    rows = {line.split()[1]: line for line in out.splitlines() if line[2:4] == "--"}
    for flag, written in {
        "--kernel": "<rbf|linear|poly>",
        "--learner": "<svc|psvm>",
        "--split": "<interleaved|oldest|crossfit>",
        "--taxonomy": "<class|class-quantile|class-rank|margin|venn-abers>",
        "--downstream": "<trim|block>",
        "--class-weight": "<A=1,B=2|balanced>",
        "--window": "<VALUE|none>",
        "--maps": "A,B,...",
    }.items():
        assert f" {written} " in rows[flag]
    text = " ".join(word for word in out.split() if word != "│")
    assert "Of platt, isotonic, binning, venn-abers, temperature, vector," in text
    assert "implied, mixed; separated by commas. (default platt,isotonic,binning)" in text


def test_the_demo_makes_a_directory_only_where_none_was_named(run, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr("workers.demo.run.run", lambda picture, *_, **__: drawn.append(picture))
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--picture", "made/curves.png")[0] == 2
    assert run("demo")[0] == 0
    assert run("demo", "--picture", "own.PNG")[0] == 0
    assert [str(path) for path in drawn] == ["demo-output/curves.png", "own.PNG"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo-output"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("X: 3 columns"), 2),
        (InvalidConfig("C: must be positive"), 2),
        (InvalidSnapshot("not a snapshot"), 4),
        (RefitFailed("the refit process failed"), 1),
        (Fenced("a newer worker"), 3),
    ],
)
def test_an_error_raised_on_purpose_ends_a_command_with_one_line_and_its_code(
    run, monkeypatch, error, code
):
    def broken(*arguments):
        raise error

    monkeypatch.setattr("workers.reading.registry.listed", broken)
    monkeypatch.setattr("workers.broker.store.Store.__enter__", lambda store: store)
    said = f"online-svm: {error}\n"
    assert run("status", "--redis", "redis://127.0.0.1:1") == (code, "", said)


def test_a_fault_of_the_program_is_a_traceback(monkeypatch):
    def broken(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr("workers.broker.store.Store.__enter__", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["status", "--redis", "redis://127.0.0.1:1"])


def test_an_unknown_variable_is_refused_by_the_worker(run, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_REFIT_EVRY", "3")
    code, _, err = run("worker", "f")
    assert code == 2
    assert "did you mean ONLINE_SVM_REFIT_EVERY?" in err


EVERY_WAY_IN = [
    *(("status",), ("tail", "f"), ("push", "f", "Phishing"), ("export", "f", "-")),
    *(("verify", "f"), ("check", "f"), ("worker", "f"), ("note", "f", "x"), ("fork", "f")),
    *(("combine", "f", "g", "--into", "h"), ("reset", "f", "--yes"), ("check",)),
    ("backup", "f", "--out", "x"),
]


@pytest.mark.parametrize("command", EVERY_WAY_IN, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bach = 3\n", "unknown setting 'bach': did you mean batch?"),
        ("redis = 'redis://a'\n[worker]\nredis = 'redis://b'\n", "setting redis: the file gives"),
        ("batch = 0\n", "setting batch: "),
    ],
)
def test_every_command_refuses_a_file_that_cannot_work(run, tmp_path, command, text, message):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    for more in ([], ["--redis", "redis://127.0.0.1:1"]):
        code, out, err = run(*command, "--config", str(path), *more)
        assert (code, out) == (2, "")
        assert err.startswith(f"online-svm: {message}")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "variable", "text", "host"),
    [
        ("flag", "variable", "redis = 'redis://top'", "flag"),
        (None, "variable", "redis = 'redis://top'", "variable"),
        (None, None, "redis = 'redis://top'", "top"),
        (None, None, "[worker]\nredis = 'redis://table'", "table"),
        ("flag", None, None, "flag"),
    ],
)
def test_every_command_finds_redis_by_the_rule_of_the_settings(
    tmp_path, monkeypatch, flag, variable, text, host
):
    path = None
    if text is not None:
        path = tmp_path / "settings.toml"
        path.write_text(text)
    if variable is not None:
        monkeypatch.setenv("ONLINE_SVM_REDIS", f"redis://{variable}")
    given = flag and f"redis://{flag}"
    assert common.redis_url(given, path) == f"redis://{host}"
    assert load({"redis": given} if given else {}, path).url == f"redis://{host}"


@pytest.mark.parametrize("source", ["flag", "variable", "file"])
def test_none_is_the_embedded_server_wherever_it_is_said(tmp_path, monkeypatch, source):
    monkeypatch.setattr(common, "attached_url", lambda: "unix:///embedded")
    path = None
    if source == "file":
        path = tmp_path / "settings.toml"
        path.write_text("redis = 'none'\n")
    elif source == "variable":
        monkeypatch.setenv("ONLINE_SVM_REDIS", "none")
    assert common.redis_url("none" if source == "flag" else None, path) == "unix:///embedded"


def test_no_error_shows_the_password(run):
    url = "redis://me:hunter2@127.0.0.1:1/0"
    for command in (["status"], ["tail", "f"], ["worker", "f"], ["check", "f"], ["verify", "f"]):
        code, out, err = run(*command, "--redis", url)
        assert code == 2
        assert "hunter2" not in out + err


HEAVY = (
    *("structlog", "numba", "sklearn", "scipy", "numpy", "river"),
    *("pydantic_settings", "matplotlib"),
)


def python(*arguments):
    """Run Python; return its output and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small(*command):
    """Return a program that runs a small command and names what it imported of `HEAVY`."""
    return (
        "import sys\nfrom workers.cli import main\n"
        f"try:\n    main({list(command)!r})\n"
        "except SystemExit as ended:\n    assert not ended.code\n"
        f"print('imported', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )


@pytest.fixture(scope="module")
def where():
    """A feed with one answer, as arguments: name and URL."""
    with embedded.temporary() as server, Store(server.url, "f") as store:
        store.call("XADD", store.keys.out, "1-1", "p", '{"seq":0,"status":"warming","reason":""}')
        yield "f", "--redis", server.url


@pytest.mark.parametrize("command", ["status", "tail"])
def test_a_small_command_imports_nothing_heavy(where, command, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_DATA", "somewhere")  # no setting, so none needs loading
    out, _ = python("-c", small(command, *where))
    assert out.endswith("imported []\n")


def test_the_help_imports_neither_numba_nor_scikit_learn():
    out, _ = python("-c", small("--help"))
    imported = out.splitlines()[-1]
    assert "numba" not in imported
    assert "sklearn" not in imported


@pytest.mark.parametrize("command", ["--help", "status", "tail"])
def test_a_small_command_takes_less_than_half_a_second(where, command):
    # Processor time, the best of three: what else runs on the machine must not matter.
    arguments = () if command == "--help" else where
    seconds = (python("-m", "workers.cli", command, *arguments)[1] for _ in range(3))
    assert any(each < 0.5 for each in seconds)
