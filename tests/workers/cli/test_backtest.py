"""`backtest` as it is typed: files, feeds, tables, curves, Ctrl-C, and bad input in one line."""

import re

import matplotlib.image
import numpy as np
import orjson
import pytest
from answered_feed import ROWS, SETTINGS

from workers.broker.store import Store
from workers.offline.backtest.table import WIDTH

LIMIT = ("--limit", "150", "--processes", "1")
SMALL = ("--set", "base:window=100,refit_every=50")


@pytest.fixture
def run(run_command):
    """Run the command in this process; return exit code, standard output, standard error."""
    return lambda *arguments: run_command("backtest", *arguments)


def figures(text):
    """The objects of --json without what it cost, which differs from run to run."""
    found = [orjson.loads(line) for line in text.splitlines()]
    for one in found:
        assert one.pop("microseconds") > 0.0
        one.pop("was_kept")
    return found


def test_a_file_is_answered_under_each_configuration_without_redis(run, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, out, err = run("Phishing", *LIMIT, *SMALL, "--set", "wide:gamma=0.1", "--json")
    assert code == 0
    base, wide = figures(out)
    assert (base["name"], wide["name"]) == ("base", "wide")
    assert base["changes"] == {"window": 100, "refit_every": 50}
    assert wide["changes"] == {"window": 100, "refit_every": 50, "gamma": 0.1}
    assert wide["settings"]["predictor"]["gamma"] == 0.1
    assert list(base["methods"]) == ["probability", "venn", "platt", "isotonic", "binning"]
    assert base["counts"]["entries"] == 150
    assert base["counts"]["scored"] + base["counts"]["warming"] == 150
    assert "label     its own" in err
    assert not (tmp_path / "online-svm").exists()


def test_a_feed_is_answered_as_a_file_of_its_rows(run, answered, source, redis_url):
    where = ("--json", "--processes", "1", "--redis", redis_url)
    own = ",".join(f"{name}={value}" for name, value in SETTINGS.items())
    code, out, _ = run(answered[0], "--set", "wide:gamma=0.1", *where)
    of_feed = figures(out)
    of_file = figures(run(source, "--set", f"base:{own}", "--set", "wide:gamma=0.1", *where)[1])
    assert (code, [one["changes"] for one in of_feed]) == (0, [{}, {"gamma": 0.1}])
    for ours, theirs in zip(of_feed, of_file, strict=True):
        assert ours | {"changes": 0} == theirs | {"changes": 0}
        assert ours["settings"]["predictor"]["window"] == 200
    with Store(redis_url, answered[0]) as store:
        report = orjson.loads(store.last_entries(store.keys.met, 1)[0][1][1])
        assert store.length(store.keys.out) == ROWS + 1  # nothing was written to the feed
    (limited,) = figures(run(answered[0], "--limit", str(report["n"]), *where)[1])
    ours = limited["methods"]["probability"]
    assert ours["log_loss"] == pytest.approx(report["headline"]["log_loss"], rel=1e-12)


def test_the_table_fits_80_columns_and_names_every_figure(run):
    maps = "maps=evidential-logistic,venn-abers,mixed"
    code, out, _ = run("Phishing", *LIMIT, *SMALL, "--set", f"evidential:{maps}")
    lines = out.splitlines()
    assert code == 0
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].split() == (
        ["log", "loss", "vs", "base", "Brier", "acc.", "AUC", "calib.", "cover", "width"]
    )
    for name in ("probability", "platt", "venn-abers", "evidential-logistic", "mixed"):
        assert any(line.split()[:1] == [name] for line in lines), name
    assert "+0.0000" in next(line for line in lines if line.startswith("  probability"))


@pytest.mark.parametrize("wide", ["gamma=0.1", "gamma=1e-9"])
def test_the_table_ends_with_what_lost_least_and_what_it_takes(run, wide):
    code, out, _ = run("Phishing", *LIMIT, *SMALL, "--set", f"wide:{wide}")
    assert code == 0
    (told,) = re.findall(r"least log loss of probability: (.*)", " ".join(out.split()))
    column = [line.split()[2] for line in out.splitlines() if line.startswith("  probability")]
    least = float(column[1])
    if least < 0.0:
        assert re.match(rf"wide, {-least:.4f} below base, at \d+\.\d times its time", told)
    else:
        assert told.startswith("base ")


def test_a_single_configuration_is_not_said_to_be_the_best(run):
    assert "least log loss" not in run("Phishing", *LIMIT, *SMALL)[1]


def test_the_curves_are_a_picture_that_tells_its_figures(run, tmp_path):
    path = tmp_path / "curves.png"
    code, _, _ = run("Phishing", *LIMIT, *SMALL, "--set", "wide:gamma=0.1", "--curves", str(path))
    assert code == 0
    assert matplotlib.image.imread(path).shape[2] == 4
    assert b"base: log loss 0." in path.read_bytes()
    assert b"wide: log loss 0." in path.read_bytes()


def test_rows_that_cannot_be_used_are_told_with_the_reason(run, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(b'{"x":[1,2],"y":"%d"}\n' % (i % 3) for i in range(30)))
    code, out, _ = run(str(path), "--set", "base:classes=0,1")
    assert code == 0
    assert re.search(r"not scored: \d+ warming up, 10 rejected$", out, re.MULTILINE)
    assert "the first rejected: label '2' is not declared" in out


def rows_of(angle, count=2250, seed=3):
    """Rows of two classes on both sides of a plane, which turns by an angle in all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 12))
    at = np.linspace(0.0, angle, count)
    scores = 2.0 * (X[:, 0] * np.cos(at) + X[:, 1] * np.sin(at))
    labels = np.where(rng.random(count) < 1.0 / (1.0 + np.exp(-scores)), "yes", "no")
    return [{"x": x.tolist(), "y": y} for x, y in zip(X.round(6), labels.tolist(), strict=True)]


@pytest.mark.servers("embedded")
@pytest.mark.parametrize(
    ("angle", "helps", "told"),
    [
        (0.0, True, r"help: a logistic .* 2,000 rows loses \.\d{3} an ex.*window=2000\."),
        (2.0, False, r"Older rows would not help: .* standard errors\)\."),
    ],
)
def test_a_feed_is_told_whether_older_rows_would_help(store, run, angle, helps, told):
    for row in rows_of(angle):
        store.call("XADD", store.keys.input, "*", "x", orjson.dumps(row["x"]), "y", row["y"])
    arguments = (store.keys.feed, "--redis", store.url, "--processes", "1", "--set")
    settings = "base:window=200,refit_every=100,classes=no,yes,committee=single,gamma=0.1"
    code, out, err = run(*arguments, settings, "--json")
    assert code == 0, err
    (found,) = figures(out)
    older = found["older_rows"]
    assert older["helps"] is helps
    assert (older["window"], older["most"], older["is_all"]) == (200, 2000, False)
    assert abs(older["errors"]) > 2.0
    text = " ".join(run(*arguments, settings)[1].split())
    assert re.search(told, text)
