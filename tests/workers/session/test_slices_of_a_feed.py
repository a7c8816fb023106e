"""Slices from the entry to the report: hostile values are counted, bounded and escaped."""

import numpy as np
import orjson
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.windowed import windowed_validity
from online_svm.predictor import answer_scoring
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits
from workers.feed.position import START
from workers.session.answer import process

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
    for module in (answer_scoring, windowed_validity):
        monkeypatch.setattr(module, "SLICE_VALUES", 5)


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


def answered(made, batch=256, config=CONFIG):
    """Return the outcomes of the entries, in batches of this size."""
    predictor, at, outcomes = OnlinePredictor(config), START, []
    for begin in range(0, len(made), batch):
        outcomes.append(process(predictor, Limits(), at, made[begin : begin + batch]))
        at = outcomes[-1].after
    return outcomes, at


def met(outcomes):
    return [orjson.loads(payload) for outcome in outcomes for _, payload in outcome.met]


def test_any_batches_give_the_same_bytes_and_a_report_is_bounded_whatever_is_sent():
    names = [f'v{i}\x1b[2J"\\\n' for i in range(400)]
    made = entries([orjson.dumps({"country": name}) for name in names])
    outcomes, end = answered(made)
    assert answered(made, batch=1)[1] == end
    assert answered(made, batch=37)[1] == end
    for outcome in outcomes:
        for _, payload in outcome.met:
            assert b"\x1b" not in payload
            assert len(payload) < 8_000
    found = met(outcomes)[-1]["windowed"]["slices"]["country"]
    assert [(one["value"], one["scores"]["scored"]) for one in found] == [(None, 100)]


def test_a_malformed_slice_rejects_its_entry_and_changes_no_other_answer():
    slices = [b'{"country":"DE"}' if i % 3 else None for i in range(200)]
    clean, _ = answered(entries(slices))
    made = entries(slices)
    for place, bad in zip((20, 60, 61, 120, 199), HOSTILE, strict=True):
        made.insert(place, (b"%d-1" % place, [b"x", b"[1,2]", b"y", b"no", b"s", bad]))
    outcomes, _ = answered(made)
    letters = [letter for outcome in outcomes for letter in outcome.dlq]
    assert [letter.code for letter in letters] == ["slice"] * len(HOSTILE)
    answers = [orjson.loads(payload) for outcome in outcomes for payload in outcome.out]
    kept = [answer for answer in answers if answer["status"] != "rejected"]
    expected = [orjson.loads(payload) for outcome in clean for payload in outcome.out]
    for one, other in zip(kept, expected, strict=True):
        assert one | {"seq": 0} == other | {"seq": 0}
    for one, other in zip(met(outcomes), met(clean), strict=True):
        assert one | {"seq": 0} == other | {"seq": 0}


@pytest.mark.parametrize("field", [None, b'{"country":"DE"}'])
def test_a_feed_without_slices_answers_as_if_it_had_none(field):
    config = CONFIG.model_copy(update={"slices": ()})
    outcomes, _ = answered(entries([field] * 120), config=config)
    rejected = [letter.code for outcome in outcomes for letter in outcome.dlq]
    assert rejected == ([] if field is None else ["unsupported"] * 120)
