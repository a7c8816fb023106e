"""Slices from the entry to the report: hostile values are counted, bounded and escaped."""

import numpy as np
import orjson
import pytest
from pure_replay import streams_of

from online_svm.config import PredictorConfig
from online_svm.predictor import answer_scoring

CONFIG = PredictorConfig(
    classes=("no", "yes"),
    features=2,
    committee="single",
    maps=(),
    window=100,
    refit_every=50,
    metrics_every=50,
    metrics_window=100,
    slices=("country",),
)
HOSTILE = (b"[]", b'{"country":1}', b'{"land":"DE"}', b"\xff", b'{"country":"' + b"x" * 65 + b'"}')


@pytest.fixture(autouse=True)
def _few_values(monkeypatch):
    """Tell five values of a slice apart, not twenty: each takes its bytes of a report."""
    monkeypatch.setattr(answer_scoring, "SLICE_VALUES", 5)


def entries(slices):
    """Return labelled entries that carry these values of `s`; None for no field."""
    rng = np.random.default_rng(3)
    made = []
    for i, s in enumerate(slices):
        x = rng.normal(size=2)
        y = b"yes" if x[0] + rng.normal() > 0 else b"no"
        fields = [b"x", orjson.dumps(x.tolist()), b"y", y]
        made.append((b"%d-0" % (i + 1), fields if s is None else [*fields, b"s", s]))
    return made


def without_seq(payloads):
    return [orjson.loads(payload) | {"seq": 0} for payload in payloads]


def test_a_report_is_bounded_whatever_is_sent():
    names = [f'v{i}\x1b[2J"\\\n' for i in range(400)]
    made = entries([orjson.dumps({"country": name}) for name in names])
    written = streams_of(CONFIG, made)
    for _, payload in written[1]:
        assert b"\x1b" not in payload
        assert len(payload) < 8_000
    found = orjson.loads(written[1][-1][1])["windowed"]["slices"]["country"]
    assert [(one["value"], one["scores"]["scored"]) for one in found] == [(None, 100)]


def test_a_malformed_slice_rejects_its_entry_and_changes_no_other_answer():
    made = entries([b'{"country":"DE"}' if i % 3 else None for i in range(200)])
    clean = streams_of(CONFIG, made)
    for place, bad in zip((20, 60, 61, 120, 199), HOSTILE, strict=True):
        made.insert(place, (b"%d-1" % place, [b"x", b"[1,2]", b"y", b"no", b"s", bad]))
    out, met, _, letters = streams_of(CONFIG, made)
    assert [letter.code for letter in letters] == ["slice"] * len(HOSTILE)
    kept = [payload for payload in out if b'"status":"rejected"' not in payload]
    assert without_seq(kept) == without_seq(clean[0])
    assert without_seq(p for _, p in met) == without_seq(p for _, p in clean[1])


@pytest.mark.parametrize("field", [None, b'{"country":"DE"}'])
def test_a_feed_without_slices_answers_as_if_it_had_none(field):
    config = CONFIG.model_copy(update={"slices": ()})
    *_, letters = streams_of(config, entries([field] * 120))
    assert [letter.code for letter in letters] == ["unsupported"] * (120 if field else 0)
