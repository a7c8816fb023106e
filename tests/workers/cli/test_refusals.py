"""What cannot be done is told in one line before anything is done, with exit code 2."""

import pytest

GONE = "redis://127.0.0.1:1"

REFUSED = [
    # settings
    (("worker", "f", "--batch", "0"), "setting batch: "),
    (("worker", "f", "--gamma", "-1"), "gamma: must be positive, or 'scale'"),
    (("worker", "f", "--sigma", "1", "--gamma", "1"), "give --sigma or --gamma, not both"),
    (("worker", "f", "--sigma", "0"), "setting sigma: must be a positive number"),
    (("worker", "f", "--classes", "a"), "classes: declare at least two labels"),
    (("worker", "f", "--config", "/nowhere.toml"), "no such file"),
    (("worker", "bad name"), "feed name 'bad name'"),
    # Redis, and who says yes
    (("worker", "f"), "does not answer"),
    (("status", "--redis", "http://h"), "redis URL"),
    (("reset", "f"), "Say --yes"),
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
    (("push", "f", "--labels", "l", "--id", "t", "--prob", "p"), "leave out the rest"),
    # options that do not go together
    (("export", "f", "table.csv", "--to", "d"), "are of the CSV table: leave them out, or --to"),
    (("export", "f", "--features", "--to", "d"), "are of the CSV table: leave them out, or --to"),
    (("export", "f", "--overwrite", "--to", "d"), "are of the CSV table: leave them out, or --to"),
    (("export", "f", "--raw", "--to", "d"), "are of the CSV table: leave them out, or --to"),
    (("export", "f", "--follow"), "are of Parquet files: give --to DIR"),
    (("export", "f", "--take-group"), "are of Parquet files: give --to DIR"),
    (("export", "f", "--accept-gap"), "are of Parquet files: give --to DIR"),
    (("export", "f", "--json"), "are of Parquet files: give --to DIR"),
    (("tail", "f", "--stream", "dlq", "--raw"), "--raw: a rejected entry has fields and no paylo"),
    (("tail", "f", "--stream", "met", "--features"), "--features: --stream met has none"),
    (("note", "f", "x", "--ack", "3-0", "--silence", "2h"), "one of --at, --ack and --silence"),
    (("backup", "--out", "x"), "give the name of a feed, or --all"),
    (("backup", "mail", "--all", "--out", "x"), "give the name of a feed, or --all"),
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
    (("backtest", "bad name"), "feed"),
]


def words(value):
    return "-".join(value) if isinstance(value, tuple) else None


@pytest.mark.parametrize(("arguments", "told"), REFUSED, ids=words)
def test_it_is_told_in_one_line_and_nothing_is_done(
    run_command, tmp_path, monkeypatch, arguments, told
):
    monkeypatch.chdir(tmp_path)
    where = () if arguments[0] == "demo" or "--redis" in arguments else ("--redis", GONE)
    code, out, err = run_command(*arguments, *where)
    assert (code, out) == (2, "")
    assert err.startswith("online-svm: ")
    assert err.count("\n") == 1
    assert told in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("status",), ("tail",), ("export",), ("verify",), ("report",),
        ("note", "x"), ("explain", "1-0"),
    ],
    ids=words,
)  # fmt: skip
def test_a_feed_that_does_not_exist_is_named(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(command[0], "nobody", *command[1:])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("online-svm: no feed 'nobody'")
    assert not list(tmp_path.iterdir())
