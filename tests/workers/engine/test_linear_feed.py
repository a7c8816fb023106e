"""A feed answered by the linear machine on a feature map, through the real commands."""

import csv

import numpy as np
import pytest
from commands import work

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker import embedded
from workers.broker.store import Store
from workers.cli import app as cli
from workers.message.encode import encode_block

FEED, ROWS = "unending", 330
SETTINGS = {
    "classes": "in,out", "learner": "linear", "n_components": "25", "window": "100",
    "refit_every": "40", "refit_lag": "15", "maps": "platt", "snapshot_every": "60",
}  # fmt: skip


def examples():
    """Return features and labels, in text as the file has them."""
    X = np.random.default_rng(2).normal(size=(ROWS, 2)).round(3)
    return [(*x, "in" if np.hypot(*x) < 1.2 else "out") for x in X.tolist()]


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    return ended.value.code


@pytest.mark.slow
@pytest.mark.parametrize("feature_map", ["nystroem", "fourier"])
def test_workers_one_after_the_other_answer_as_the_library_does(tmp_path, feature_map):
    settings, source = SETTINGS | {"feature_map": feature_map}, tmp_path / "rows.csv"
    with source.open("w", newline="") as target:
        csv.writer(target).writerows([("u", "v", "place"), *examples()])
    with embedded.temporary() as server:
        push = ("push", FEED, str(source), "--redis", server.url)
        assert run(*push, "--limit", "203") == 0
        work(server.url, FEED, settings, 203, tmp_path / "first")
        assert run(*push, "--skip", "203") == 0
        work(server.url, FEED, settings, ROWS, tmp_path / "second")
        with Store(server.url, FEED) as store:
            entries = store.call("XRANGE", store.keys.out, "-", "+")
        assert run("verify", FEED, "--redis", server.url) == 0
    given = SETTINGS | {"feature_map": feature_map, "classes": ("in", "out"), "maps": ("platt",)}
    given.pop("snapshot_every")
    predictor = OnlinePredictor(PredictorConfig.model_validate(given))
    for seq, (u, v, label) in enumerate(examples()):
        x = {"u": u, "v": v}
        row = predictor.schema.row(x)
        block = predictor.step_many(row[None, :], [label])[0]
        assert encode_block(block, [seq], [None]) == [entries[seq][1][1]]
