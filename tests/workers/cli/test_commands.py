"""All commands as tables: help, refusals, exit codes, objects of --json, where Redis is found."""

import orjson
import pytest

from online_svm import __version__
from online_svm.errors import InvalidConfig, InvalidInput, InvalidSnapshot
from workers.broker.store import Store
from workers.cli import app as cli
from workers.cli import common
from workers.cli.options import COMMON
from workers.config.settings import WorkerSettings, load
from workers.errors import Fenced, RefitFailed

GONE = "redis://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    # It stands for the colours that some CI services ask for.
    monkeypatch.setattr("typer.rich_utils.FORCE_TERMINAL", False)


# Help


def test_the_help_groups_the_commands_by_what_people_do(run_command):
    code, out, _ = run_command("--help")
    found = {}
    for line in out.splitlines():
        if line.startswith("╭─ "):
            group = found.setdefault(line.strip("╭╮─ "), [])
        elif line.startswith("│ ") and line[2] != " " and not line.startswith("│ -"):
            group.append(line.split()[1])
            assert len(line.split()) > 5, "a command has no words"
    del found["Options"]
    assert (code, {group: tuple(names) for group, names in found.items()}) == (0, cli.GROUPS)


def parts(command, path=()):
    """Yield each command below one with the words that lead to it."""
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from parts(part, (*path, name))


COMMANDS = dict(parts(cli.application()))


def test_each_command_is_in_the_table_of_commands():
    assert sorted(path[0] for path in COMMANDS if len(path) == 1) == sorted(cli.COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "online-svm")
def test_the_help_of_a_command_shows_all_of_its_text(run_command, path):
    """Text such as [name] is no markup."""
    command = COMMANDS[path]
    has_rare = "help_all" in {option.name for option in command.params}
    code, out, _ = run_command(*path, "--help-all" if has_rare else "--help")
    shown = " ".join(out.split())
    assert code == 0
    assert " ".join(("online-svm", *path)) in shown
    assert "<bool>" not in shown
    options = [option.help for option in command.params if not getattr(option, "hidden", False)]
    for text in filter(None, (command.help, *options)):
        for paragraph in text.replace("\\[", "[").split("\n\n"):
            assert " ".join(paragraph.split()) in shown


def options_of(out):
    """Return the line of each option of a page of the help."""
    return {line.split()[1]: line for line in out.splitlines() if line[2:4] == "--"}


def test_the_help_of_the_worker_shows_the_dozen_settings_that_people_set(run_command):
    def flags(names):
        return {f"--{name.replace('_', '-')}" for name in names}

    own = {"--redis", "--config", "--from", "--dashboard", "--quiet", "--help-all", "--help"}
    assert len(COMMON) == 12
    assert set(options_of(run_command("worker", "--help")[1])) == own | flags(COMMON)
    in_full = run_command("worker", "--help-all")[1]
    assert all(flag in in_full for flag in flags(WorkerSettings.model_fields))


@pytest.mark.parametrize("command", ["worker", "check"])
def test_the_help_shows_what_a_setting_may_be(run_command, command):
    _, out, _ = run_command(command, "--help-all")
    for flag, written in {
        "--kernel": "<rbf|linear>",
        "--taxonomy": "<class|class-rank|venn-abers>",
        "--class-weight": "<A=1,B=2|balanced>",
        "--window": "<VALUE|none>",
        "--maps": "A,B,...",
    }.items():
        assert f" {written} " in options_of(out)[flag]
    text = " ".join(word for word in out.split() if word != "│")
    assert "implied, mixed; separated by commas. (default platt,isotonic,binning)" in text


# Refusals: told in one line before anything is done, with exit code 2.

LONG, TOO_LONG = "a" * 256, ": File name too long"
REFUSED = [
    # settings
    (("worker", "f", "--batch", "0"), "setting batch: "),
    (("worker", "f", "--gamma", "-1"), "gamma: must be positive, or 'scale'"),
    (("worker", "f", "--classes", "a"), "classes: declare at least two labels"),
    (("worker", "f", "--config", "/nowhere.toml"), "no such file"),
    (("worker", "f", "--config", "/dev/null"), "/dev/null: it is no regular file; give --config"),
    (("worker", "bad name"), "feed name 'bad name'"),
    # names that no file can have
    (("push", "f", LONG), TOO_LONG),
    (("push", "f", f"{LONG}.csv"), TOO_LONG),
    (("worker", "f", "--config", LONG), TOO_LONG),
    (("check", "--config", LONG), TOO_LONG),
    (("fork", LONG, "--to", "g"), TOO_LONG),
    (("verify", LONG), TOO_LONG),
    (("backtest", LONG), TOO_LONG),
    (("explain", LONG, "3"), TOO_LONG),
    (("report", LONG), TOO_LONG),
    # Redis, and who says yes
    (("worker", "f"), "does not answer"),
    (("status", "--redis", "http://h"), "redis URL"),
    (("reset", "f"), "Say --yes"),
    (("gateway", "f", "--address", "0.0.0.0"), "--token-file"),
    (("gateway", "f", "--address", "here"), "expected an IP address"),
    (("gateway", "bad name"), "feed name 'bad name'"),
    # pictures
    (("demo", "--picture", "/nowhere/x.png"), "--picture /nowhere/x.png: there is no directory"),
    (("demo", "--picture", "/dev/null/x.png"), "--picture /dev/null/x.png: there is no directory"),
    (("demo", "--picture", "x.jpg"), "--picture x.jpg: give a name that ends in .png"),
    (("demo", "--picture", "x"), "--picture x: give a name that ends in .png"),
    # sources
    (("push", "f", "/nowhere.csv"), "no such file"),
    (("push", "f", "Phishing", "--label", "colour"), "--label colour"),
    (("push", "f"), "neither a source nor --labels FILE"),
    (("push", "f", "r.csv", "--labels", "l", "--id", "t"), "both a source and --labels FILE"),
    (("push", "f", "--labels", "l.csv"), "--id COLUMN"),
    (("push", "f", "--labels", "l", "--id", "t", "--no-label"), "leave out the rest"),
    # options that do not go together
    (("tail", "f", "--stream", "met", "--features"), "--features: --stream met has none"),
    (("note", "f", "x", "--ack", "3-0", "--silence", "2h"), "give --ack or --silence, not both"),
    (("backup",), "give the name of a feed and a file, or --all DIR"),
    (("backup", "mail"), "give the name of a feed and a file, or --all DIR"),
    (("backup", "mail", "x", "--all", "y"), "give the name of a feed and a file, or --all DIR"),
    (("backup", "--all", "x", "--follow"), "--follow and --group are of one feed"),
    (("backup", "mail", "x", "--by", "day"), "--by 'day': expected month"),
    (("backup", "mail", "x", "--keep", "90"), "--keep '90': write 90s, 30m, 2h or 1d"),
    (("report", "f", "--since", "yesterday"), "--since 'yesterday': expected a time such as"),
    (("report", "f", "--against", "g", "--since", "2026-03-12"), "compares all that both keep"),
    # fleets
    (("fleet",), "name feeds or patterns, or give --replicas N"),
    (("fleet", "a-*", "--replicas", "0"), "stops the fleet: leave out the feeds"),
    (("fleet", "--replicas", "2", "--window", "60"), "change with its feeds"),
    (("fleet", "--replicas", "2", "--cpus", "2"), "change with its feeds"),
    (("fleet", "a[", "--replicas", "2"), "a '[' has no ']'"),
    (("status", "f", "--fleet", "fleet"), "--fleet shows shards: leave out FEED"),
    (("status", "--check", "--fleet", "fleet"), "leave out FEED and --check"),
    # backtests
    (("backtest", "Phishing", "--set", "a:gama=1"), "did you mean gamma?"),
    (("backtest", "Phishing", "--set", "a"), "write NAME:setting=value"),
    (("backtest", "Phishing", "--configs", "none.toml"), "none.toml: cannot be read"),
    (("backtest", "Phishing", "--curves", "a.jpg"), "give a name that ends in .png"),
    (("backtest", "Phishing", "--curves", "none/a.png"), "there is no directory none"),
    (("backtest", "Phishing", "--out", "none/out"), "give a directory that can be written"),
    (("backtest", "Phishing", "--label", "y"), "leave out --label"),
    (("backtest", "some-feed", "--label", "y"), "--label is for a file"),
    (("backtest", "some-feed", "--shuffle", "1"), "--shuffle is for a file"),
    (("backtest", "some/feed"), "some/feed: no such file in "),
    (("backtest", "nothing.csv"), "nothing.csv: no such file in "),
    (("push", "f", "nothing.csv", "--label", "y"), "nothing.csv: no such file in "),
    (("push", "f", "nothing", "--label", "y"), "nothing: no such file, and no data set of that"),
    (("backtest", "bad name"), "feed"),
]


def words(value):
    return "-".join(value) if isinstance(value, tuple) else None


def assert_refused(ended, told):
    """Check that a command ended with 2 and one line which says this."""
    code, out, err = ended
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("online-svm: ")
    assert told in err


@pytest.mark.parametrize(("arguments", "told"), REFUSED, ids=words)
def test_it_is_told_in_one_line_and_nothing_is_done(
    run_command, tmp_path, monkeypatch, arguments, told
):
    monkeypatch.chdir(tmp_path)
    where = () if arguments[0] == "demo" or "--redis" in arguments else ("--redis", GONE)
    assert_refused(run_command(*arguments, *where), told)
    assert not list(tmp_path.iterdir())


OF_A_FEED = [
    *((command, "no feed 'nobody'") for command in (
        ("status", "nobody"), ("tail", "nobody"), ("export", "nobody"), ("verify", "nobody"),
        ("verify", "nobody", "--repair"),
        ("report", "nobody"), ("note", "nobody", "x"), ("explain", "nobody", "1-0"),
    )),
    (("backtest", "nobody"), "feed 'nobody' has no input"),
    (("backup", "nobody", "x"), "no feed 'nobody': push examples to it"),
    (("fork", "answered", "--to", "answered"), "exists"),
    (("note", "answered"), "say what to note"),
    (("note", "answered", "--ack", "9,999"), "keeps no alarm '9,999': give the n that online-svm "
                                            "tail answered --stream alarms shows"),
    (("note", "answered", "x", "--silence", "2w"), "--silence '2w': write 90s, 30m, 2h or 1d"),
    (("note", "answered", "x", "--silence", "31d"), "--silence: 0s to 30d"),
    (("note", "answered", "--silence", "2h"), "say why: online-svm note answered 'planned work'"),
    (("export", "answered", "none/file"), "none/file: cannot be written: No such file"),
    (("backup", "answered", "none/file"), "none/file: cannot be opened: No such file"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "told"), OF_A_FEED, ids=words)
def test_what_a_feed_has_not_is_told_in_one_line_and_changes_nothing(
    answered, run, redis_url, tmp_path, monkeypatch, arguments, told
):
    monkeypatch.chdir(tmp_path)
    with Store(redis_url, "any") as store:
        before = {key: store.call("DUMP", key) for key in store.call("KEYS", "*")}
        assert_refused(run(*arguments), told)
        assert {key: store.call("DUMP", key) for key in store.call("KEYS", "*")} == before
    assert not list(tmp_path.iterdir())


EVERY_WAY_IN = [
    ("status",), ("tail", "f"), ("push", "f", "Phishing"), ("export", "f", "-"), ("verify", "f"),
    ("check", "f"), ("worker", "f"), ("note", "f", "x"), ("fork", "f"), ("reset", "f", "--yes"),
    ("check",), ("backup", "f", "x"),
]  # fmt: skip
UNUSABLE = {
    "bach = 3\n": "unknown setting 'bach': did you mean batch?",
    "redis = 'redis://a'\n[worker]\nredis = 'redis://b'\n": "setting redis: the file gives",
    "batch = 0\n": "setting batch: ",
}


@pytest.mark.parametrize("command", EVERY_WAY_IN, ids=words)
def test_every_command_refuses_a_file_that_cannot_work(run_command, tmp_path, command):
    path = tmp_path / "settings.toml"
    for text, told in UNUSABLE.items():
        path.write_text(text)
        for more in ((), ("--redis", GONE)):
            assert_refused(run_command(*command, "--config", path, *more), f"online-svm: {told}")


# Objects of --json

ANSWER = (
    "v status seq n reason label lower probability upper classes probabilities intervals scores "
    "svm_label venn maps method model calibration taxonomy category category_size imputed "
    "about guarantee interval_level true_label is_right"
)
SHAPES = [
    (("status", "answered"), "feed holder writer epoch seq n duplicates cursor digest waiting "
     "waiting_bytes waiting_seconds waiting_is_at_least pending out met dlq alarms open_alarms "
     "consumers notices kinds memory published silenced_notices snapshots stored validity verdict "
     "facts incident selective_labels"),
    (("check", "answered"), " ".join((*WorkerSettings.model_fields, "semantics", "compiled"))),
    (("tail", "answered", "-n", "2"), ANSWER),
    (("tail", "answered", "-n", "1"), "v id status seq n code about reason true_label is_right"),
    (("tail", "answered", "--stream", "met", "-n", "1"), "v n seq scored headline venn maps "
     "windowed monitors features agreement bounds"),
    (("tail", "answered", "--stream", "dlq"), "id code about reason size head"),
    (("tail", "answered", "--stream", "events", "-n", "1"), "id v code detail epoch writer"),
    (("verify", "answered"), "feed from_seq to_seq answers reports alarms trimmed identical digest "
     "committed_digest differences erased chained unlinked"),
    (("verify", "answered", "--repair"), "feed appended moved dropped"),
    (("explain", "answered", "bad one"), "entry answer is_identical from_seq replayed rests_on "
     "contributions features values experts noted"),
    (("report", "answered", "--out", "report.html"), "feed file verdict facts"),
    (("report", "answered", "--against", "answered"), "first second compared only_first "
     "only_second level losses"),
    (("backtest", "answered", "--processes", "1", "--limit", "60"), "name changes settings classes "
     "methods counts loss reliability microseconds was_kept older_rows money score_reliability"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "members"), SHAPES, ids=words)
def test_an_object_of_json_has_these_members(
    answered, run, tmp_path, monkeypatch, arguments, members
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert set(orjson.loads(out.splitlines()[0])) == set(members.split())


# Exit codes


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
    run_command, monkeypatch, error, code
):
    def broken(*_):
        raise error

    monkeypatch.setattr("workers.broker.store.Store.__enter__", broken)
    assert run_command("status", "--redis", GONE) == (code, "", f"online-svm: {error}\n")


def test_a_fault_of_the_program_is_a_traceback(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("workers.broker.store.Store.__enter__", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["status", "--redis", GONE])


def test_the_version_is_that_of_the_package_and_an_unknown_command_ends_with_2(run_command):
    assert run_command("--version") == (0, f"{__version__}\n", "")
    code, _, err = run_command("predict")
    assert (code, "predict" in err) == (2, True)


def test_the_demo_makes_a_directory_only_where_none_was_named(run_command, monkeypatch, tmp_path):
    drawn = []
    monkeypatch.setattr("workers.demo.run.run", lambda picture, *_, **__: drawn.append(picture))
    monkeypatch.chdir(tmp_path)
    assert run_command("demo")[0] == run_command("demo", "--picture", "own.PNG")[0] == 0
    assert [str(path) for path in drawn] == ["demo-output/curves.png", "own.PNG"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo-output"]


# Where Redis is found


@pytest.mark.parametrize(
    ("flag", "variable", "text", "url"),
    [
        ("redis://flag", "redis://variable", "redis = 'redis://top'", "redis://flag"),
        (None, "redis://variable", "redis = 'redis://top'", "redis://variable"),
        (None, None, "redis = 'redis://top'", "redis://top"),
        (None, None, "[worker]\nredis = 'redis://table'", "redis://table"),
        ("redis://flag", None, None, "redis://flag"),
        ("none", "redis://variable", None, None),
        (None, "none", None, None),
        (None, None, "redis = 'none'", None),
    ],
)
def test_every_command_finds_redis_by_the_rule_of_the_settings(
    tmp_path, monkeypatch, flag, variable, text, url
):
    """None is the embedded server."""
    monkeypatch.setattr(common, "attached_url", lambda: "unix:///embedded")
    path = None
    if text is not None:
        path = tmp_path / "settings.toml"
        path.write_text(text)
    if variable is not None:
        monkeypatch.setenv("ONLINE_SVM_REDIS", variable)
    assert common.RedisOptions(flag, path).url() == (url or "unix:///embedded")
    assert load({"redis": flag} if flag else {}, path).url == url
