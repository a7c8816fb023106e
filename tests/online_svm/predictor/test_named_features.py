"""Named features of every kind: what an answer may depend on, and what no row is rejected for."""

import json

import numpy as np
from pure_replay import replayed

from online_svm import Example, OnlinePredictor, PredictorConfig
from online_svm.metrics.sequential.exchangeability import MAX_FEATURES
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.cells import stacked
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.split import training_mask
from workers.config.settings import Limits
from workers.message.decode import decode

QUICK = {"classes": ("no", "yes"), "window": 120, "refit_every": 30}


def rows(count, seed=0, late_name=True):
    """Return rows of every kind with labels that depend on them, and gaps."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        y = int(rng.random() < 0.5)
        odds = [0.6, 0.3, 0.1] if y else [0.2, 0.3, 0.5]
        x = {
            "amount": round(float(rng.normal(y, 1.0)), 3),
            "country": str(rng.choice(["DE", "FR", "IT"], p=odds)),
            "vip": bool(rng.random() < 0.3 + 0.4 * y),
            "at": f"2024-0{1 + i % 9}-{1 + i % 28:02d}T{rng.integers(24):02d}:15:00Z",
            "zip": f"0{rng.integers(1000, 1009)}",
            "note": f"remark {i}",
        }
        for name in ("amount", "country", "vip"):
            if rng.random() < 0.1:
                x[name] = None if rng.random() < 0.5 else ""
        if rng.random() < 0.2:
            del x["zip"]
        if late_name and i >= 60:
            x["score"] = float(rng.normal(2.0 * y))
        if late_name and i >= 75:
            x["points"] = float(rng.normal(-y))
        found.append((x, ("no", "yes")[y]))
    return found


def stepped(data, **changes):
    """Return the predictor that has learned rows, and its answers."""
    predictor = OnlinePredictor(PredictorConfig(**QUICK | changes))
    return predictor, [predictor.step(Example(x, y)) for x, y in data]


def payloads(data, size, **limits):
    """Return the payloads of entries that come in batches, as a worker answers them."""
    entries = [["x", json.dumps(x), "y", y] for x, y in data]
    return replayed(PredictorConfig(**QUICK), entries, Limits(**limits), size)[0]


def codings(data, names):
    """Return what each model is frozen with: kinds, categories, means, and the machines."""
    predictor, found = OnlinePredictor(PredictorConfig(**QUICK)), {}
    for x, y in data:
        predictor.step(Example(x, y))
        active = predictor.active
        if active is None or active.version in found:
            continue
        scaling = active.result.scaling
        state = {key: value.tolist() for key, value in scaling.state().items()}
        known = predictor.schema.names
        state["coding.sources"] = [known[f] for f in state["coding.sources"]]
        model = {key: value.tolist() for key, value in active.result.model.state().items()}
        found[active.version] = (active.result.freeze, state, model)
    assert set(names) <= set(predictor.schema.names)
    return found


def test_what_calibrates_decides_nothing_of_how_a_row_is_coded():
    """The law of `exact`: kinds, categories, names, means and machines are those of T alone."""
    data = rows(150)
    trains = training_mask("interleaved", 0, 150, PredictorConfig(**QUICK).training_share, 0)
    rng = np.random.default_rng(7)
    other = []
    for i, (x, y) in enumerate(data):
        changed = {
            "amount": "lots", "country": f"C{i}", "vip": 3.5, "at": None, "zip": True,
            f"new {i % 5}": float(rng.normal()), "points": 0.5,
            "note": "the same", "a name that is first": "x",
        }  # fmt: skip
        other.append((x if trains[i] else changed, y))
    assert 20 < np.count_nonzero(~trains) < 60
    expected = codings(data, ["score"])
    assert len(expected) > 3
    assert codings(other, ["score", "new 3"]) == expected


def kind_of(predictor):
    report = predictor._engine.scoring.report(predictor.n)
    return {name: one.kind for name, one in report.features.items()}


def test_each_kind_is_found_and_told():
    predictor, answers = stepped(rows(200))
    assert kind_of(predictor) == {
        "amount": "number", "at": "time", "country": "category", "note": "text", "points": "number",
        "score": "number", "vip": "boolean", "zip": "category",
    }  # fmt: skip
    assert {answer.status for answer in answers} == {"ok", "warming"}


def test_declared_kinds_hold_and_other_names_are_passed_over():
    kinds = {"amount": "category", "country": "category"}
    predictor, _ = stepped(rows(100), features=kinds)
    assert predictor.schema.names == ("amount", "country")
    assert kind_of(predictor) == kinds


def test_a_new_name_takes_part_from_the_next_refit_on_and_an_absent_one_is_imputed():
    predictor, answers = stepped(rows(200))
    assert "score" in kind_of(predictor)
    full = {"amount": 1, "at": "2024-01-01", "country": "DE", "vip": True, "zip": "01", "score": 1}
    full["points"] = 0
    assert predictor.step(Example(full)).imputed == 0
    assert predictor.step(Example({"amount": 1})).imputed == 6
    assert predictor.step(Example({"amount": "many", "vip": "red", "unheard": 3})).imputed == 7
    high, low = (predictor.step(Example(full | {"score": s})).probabilities[1] for s in (4.0, -4.0))
    assert high > low
    assert answers[0].imputed == 0


def test_names_that_come_later_may_be_missing_and_so_may_all_but_one():
    predictor, _ = stepped(rows(100, late_name=False))
    odd = {f"k{i}": 1 for i in range(500)}
    full = {"amount": 1, "at": "2024-01-05", "country": "DE"}
    predictor.step(Example(odd | full, "yes"))
    again = OnlinePredictor(predictor.config)
    again.restore(predictor.snapshot())
    state = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    for schema in (predictor.schema, again.schema, state.schema):
        assert len(schema.known) == 506
        assert int(np.isnan(schema.row(full)).sum()) == 503
        assert int(np.isnan(schema.row({"amount": 1})).sum()) == 505


def clock(count, seed):
    rng = np.random.default_rng(seed)
    days = [f"{2000 + i // 336:04d}-{1 + i // 28 % 12:02d}-{1 + i % 28:02d}" for i in range(count)]
    return [({"at": at, "q": float(rng.normal())}, str(rng.choice(["no", "yes"]))) for at in days]


def test_a_clock_raises_no_alarm_and_makes_the_guarantee_approximate():
    for features in (None, {"at": "time", "q": "number"}):
        config = PredictorConfig(classes=("no", "yes"), committee="single", features=features)
        predictor = OnlinePredictor(config)
        X, labels, schema = [], [], predictor.schema
        for x, y in clock(4000, 1):
            schema = schema.knowing(x)
            X.append(schema.row(x))
            labels.append(y)
        found = predictor.step_many(np.array(X), labels, schema=schema)
        assert [one for one in found if isinstance(one, Alarm)] == []
        last = [block for block in found if isinstance(block, PredictionBlock)][-1]
        assert last.guarantee == "approximate"
        assert str(last.reason).startswith("time: ")


def test_a_shift_of_a_feature_that_the_first_row_lacked_raises_an_alarm_that_names_it():
    rng = np.random.default_rng(2)
    q, late = rng.normal(size=(2, 3000))
    late[2000:] += 3.0
    predictor, schema, X = OnlinePredictor(PredictorConfig(committee="single")), None, []
    for i in range(3000):
        x = {"q": q[i]} | ({"late": late[i]} if i else {}) | ({f"n{i % 70}": 1} if i > 99 else {})
        schema = (schema or predictor.schema).knowing(x)
        X.append(schema.row(x))
    labels = rng.choice(["no", "yes"], 3000).tolist()
    found = predictor.step_many(stacked(X), labels, schema=schema)
    alarm = next(one for one in found if isinstance(one, Alarm))
    assert 2000 < alarm.n < 2100
    assert alarm.moved[0].feature == "late"
    assert len(schema.names) > MAX_FEATURES


def test_without_a_time_the_guarantee_is_exact():
    data = [({k: v for k, v in x.items() if k != "at"}, y) for x, y in rows(120)]
    assert stepped(data)[1][-1].guarantee == "exact"


def test_a_scorer_answers_as_its_feed_would_whatever_the_names():
    predictor, _ = stepped(rows(150))
    state = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    for x in ({"amount": 2, "country": "FR"}, {"unheard": 1, "vip": False}, {"at": 1.7e9}):
        decoded = decode([(b"1-0", [b"x", json.dumps(x).encode()])], state.schema, Limits())
        assert decoded.schema is state.schema
        assert state.answer(decoded.X).row(0) == predictor.step(Example(x))


def test_once_t_has_names_that_were_passed_over_the_guarantee_says_so():
    data = [({k: v for k, v in x.items() if k != "at"}, y) for x, y in rows(200)]
    for x, _ in data[150:]:
        x["\0"] = 5.0  # no name of anything
    found = payloads(data, 1, max_features=6)
    told = [json.loads(payload) for payload in found]
    reasons = [(one["guarantee"], one["about"]) for one in told if one["status"] == "ok"]
    first, why = reasons.index(reasons[-1]), ("approximate", {"case": "names"})
    assert reasons == [("exact", None)] * first + [why] * (len(reasons) - first)
    assert 75 < told[-len(reasons) + first]["n"] < 120  # "points" came at 75, the seventh
    assert payloads(data, 64, max_features=6) == found
    assert max(one["imputed"] for one in told) <= 6


def test_names_and_categories_beyond_the_bounds_are_passed_over():
    rng = np.random.default_rng(3)
    often = [str(category) for category in rng.integers(90, size=700)]
    data = [
        ({"id": f"u{i}", "often": f"c{name}", "q": 1.0, f"n{i % 10}": 2}, ("no", "yes")[i % 2])
        for i, name in enumerate(often)
    ]
    predictor, _ = stepped(data, committee="single", window=600)
    encoder = predictor.active.result.scaling.encoder
    widths = dict(zip((predictor.schema.names[f] for f in encoder.sources),
                      np.diff(encoder.starts).tolist(), strict=True))  # fmt: skip
    assert widths["id"] == 0  # set aside
    assert widths["often"] == 64
    many = {f"m{i}": 1 for i in range(20_000)}
    assert len(predictor.schema.knowing(many).known) == 1000
    whole = FeatureSchema(PredictorConfig()).knowing(many)
    assert len(whole.known) == 10_000
    assert whole.knowing({"more": 1}).known == whole.known


def test_a_pending_example_of_fewer_names_is_learned_among_others():
    predictor = OnlinePredictor(PredictorConfig(**QUICK, horizon=20))
    for i, (x, y) in enumerate(rows(200)):
        predictor.step(Example(x, id=str(i)))
        if i >= 5:
            predictor.label(str(i - 5), y)
        if i == 70:
            again = OnlinePredictor(predictor.config)
            again.restore(predictor.snapshot())
            assert again.snapshot() == predictor.snapshot()
            predictor = again
    assert "score" in kind_of(predictor)
