"""A feed whose annotators give probabilities, through the real commands."""

import csv
import math

import numpy as np
import orjson
import pytest
from world import work

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker import embedded
from workers.broker.store import Store
from workers.cli import app as cli
from workers.message.encode import encode_block

FEED = "doubts"
SETTINGS = {
    "classes": "healthy,ill", "learner": "psvm", "C_prob": "5", "eta": "0.05", "window": "120",
    "refit_every": "40", "refit_lag": "15", "maps": "platt", "metrics_every": "25",
}  # fmt: skip
ROWS = 230


def examples():
    """Return the rows of the file: features, label and probability, one of the two empty."""
    rng = np.random.default_rng(11)
    ill = rng.random(ROWS) < 0.5
    X = (rng.normal(size=(ROWS, 2)) + np.where(ill, 0.8, -0.8)[:, None]).round(3)
    doubted = rng.random(ROWS) < 0.3
    for i in range(ROWS):
        p = round(1.0 / (1.0 + math.exp(-1.6 * X[i].sum())), 3)
        label = "ill" if ill[i] else "healthy"
        yield (*X[i].tolist(), "" if doubted[i] else label, p if doubted[i] else "")
    yield (0.0, 0.0, "ill", 0.9)  # both: refused
    yield (0.0, 0.0, "", 1.5)  # no probability: refused


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    return ended.value.code


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "rows.csv"
    with path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["u", "v", "finding", "doubt"])
        writer.writerows(examples())
    return path


@pytest.fixture(scope="module")
def answered(source):
    """A server with the feed, answered by two workers, one after the other."""
    with embedded.temporary() as server:
        push = ("push", FEED, str(source), "--prob", "doubt", "--redis", server.url)
        assert run(*push, "--limit", "103") == 0
        work(server.url, FEED, SETTINGS, 103)
        assert run(*push, "--skip", "103") == 0
        work(server.url, FEED, SETTINGS, ROWS + 2)
        yield server.url


@pytest.fixture
def payloads(answered):
    with Store(answered, FEED) as store:
        yield [fields[1] for _, fields in store.call("XRANGE", store.keys.out, "-", "+")]


def test_the_worker_answers_as_the_library_does(payloads):
    config = PredictorConfig.model_validate(
        SETTINGS
        | {"classes": ("healthy", "ill"), "maps": ("platt",), "C_prob": 5.0, "eta": 0.05}
        | {name: int(SETTINGS[name]) for name in ("window", "refit_every", "refit_lag")}
    )
    predictor = OnlinePredictor(config)
    schema = predictor.schema.knowing({"u": 0.0, "v": 0.0})
    for seq, (u, v, label, p) in enumerate(list(examples())[:ROWS]):
        x = {"u": u, "v": v}
        row = predictor.schema.row(x)
        probs = None if p == "" else np.array([p])
        block = predictor.step_many(row[None, :], [label or None], probs, schema)[0]
        assert encode_block(block, [seq], [None]) == [payloads[seq]]


def test_what_is_refused_says_why(payloads):
    both, outside = map(orjson.loads, payloads[ROWS:])
    assert (both["code"], both["about"]) == ("duplicate_field", {"case": "y_and_p"})
    assert (outside["code"], outside["n"]) == ("out_of_range", ROWS)


def test_the_reports_run_over_labels_alone(answered, payloads):
    with Store(answered, FEED) as store:
        newest = orjson.loads(store.call("XREVRANGE", store.keys.met, "+", "-")[0][1][1])
    answers = [orjson.loads(payload) for payload in payloads[: newest["n"]]]
    labels = [row[2] for row in examples()]
    scored = [a["status"] == "ok" and bool(y) for a, y in zip(answers, labels, strict=False)]
    assert newest["scored"] == sum(scored)
    assert list(newest["maps"]) == ["platt", "psvm"]
    svm = [a["svm_label"] == y for a, y, s in zip(answers, labels, scored, strict=False) if s]
    assert newest["maps"]["psvm"]["svm"]["accuracy"] == pytest.approx(np.mean(svm))


def test_the_answers_say_that_some_examples_had_no_label(payloads):
    ok = [a for a in map(orjson.loads, payloads[:ROWS]) if a["status"] == "ok"]
    assert {a["guarantee"] for a in ok} == {"approximate"}
    assert "probability instead of a label" in ok[-1]["reason"]


def test_recomputing_gives_the_same_bytes(answered, source):
    assert run("verify", FEED, "--redis", answered) == 0
    history = ("--input", str(source), "--prob", "doubt")
    assert run("verify", FEED, "--redis", answered, *history) == 0
