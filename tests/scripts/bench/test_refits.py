"""The benchmark of refits watches the methods that a refit really calls."""

import numpy as np

from online_svm.config import PredictorConfig
from scripts.bench.refits import PARTS, refit_rows


def test_every_part_of_a_refit_is_timed():
    config = PredictorConfig()
    n = config.window + 2 * config.refit_every
    codes = np.random.default_rng(0).integers(0, 2, n)
    X = np.random.default_rng(1).normal(size=(n, 2)) + codes[:, None]
    row = list(refit_rows(X, codes, 1, lambda *_: 1.0))[-1]
    timed = {part.rsplit(" ", 1)[0] for part in row.note.split("us: ")[1].split(", ")}
    assert timed == {name for _, _, name in PARTS} | {"rest"}
