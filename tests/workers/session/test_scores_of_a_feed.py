"""Scores through the service and the library, in all three uses."""

import numpy as np
import orjson
import pytest

from online_svm import Example

pytestmark = pytest.mark.servers("embedded")

COUNT = 240


def scored(count=COUNT, seed=0):
    """Return examples with features and scores; some lack a score, one in fifty has a bad one."""
    rng = np.random.default_rng(seed)
    examples = []
    for i in range(count):
        x = rng.normal(size=2).round(6)
        label = "b" if x[0] + rng.normal() > 0 else "a"
        score = float(np.round(1.0 / (1.0 + np.exp(-2.0 * x[0] - rng.normal())), 6))
        is_bad, is_absent = i % 50 == 7, i % 11 == 3
        examples.append(
            Example(
                {"u": x[0], "v": x[1]},
                label,
                score=7.0 if is_bad else None if is_absent else score,
                score_version="2" if i > count // 2 else None,
            )
        )
    return examples


def test_scores_are_pushed_from_a_table_and_reported(world, tmp_path):
    rows = tmp_path / "scored.csv"
    examples = [one for one in scored() if one.score != 7.0]
    lines = [f"{e.score if e.score is not None else ''},{e.y}" for e in examples]
    rows.write_text("\n".join(["s,y", *lines]))
    made = world.beside("pushed", scores="probability")
    pushed = ("push", made.feed, str(rows), "--score", "s", "--label", "y")
    assert made.run(*pushed)[0] == 0
    made.pushed = len(examples)
    made.answer()
    _, reports = made.payloads()
    last = orjson.loads(reports[-1][1])
    assert last["maps"]["score"]["log_loss"] > 0.0
    assert made.run("verify", made.feed)[0] == 0
