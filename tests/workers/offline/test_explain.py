"""An old answer, rebuilt: its bytes by replay, and what it rested on by another route."""

import re

import numpy as np
import orjson
import pytest
from world import drain, push, session, take_back

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.notes import note
from workers.cli.explain import describe
from workers.errors import BadConfiguration, InputLost
from workers.offline.explain import explain_answer

CONFIG = PredictorConfig(
    classes=("a", "b"), window=60, refit_every=20, committee="single", taxonomy="class", gamma=0.5
)
COUNT = 150
TWICE = "tx-7"


def fields(i):
    """Return the i-th input entry; every 40th is refused."""
    x = b"[1]" if i % 40 == 39 else b"[%d,%d]" % (i % 7, i % 5)
    name = TWICE.encode() if i == 140 else b"tx-%d" % i
    return [b"x", x, b"y", b"ab"[i % 2 : i % 2 + 1], b"id", name]


@pytest.fixture
def kept(store):
    """A feed with snapshots at 60 and 120, whose whole input is kept."""
    push(store, [fields(i) for i in range(COUNT)])
    drain(session(store, config=CONFIG, snapshot_every=60, keep_input=True), COUNT)
    return store


def test_an_answer_between_two_snapshots_is_replayed_from_the_one_before_it(kept):
    found = explain_answer(kept, "101-0")
    assert found.is_identical
    assert found.answer["seq"] == 100
    assert 0 < found.from_seq <= 100
    assert found.from_seq + found.replayed == 100
    assert explain_answer(kept, "31-0").from_seq == 0


def test_the_last_note_before_it_is_told(kept):
    kept.call("XADD", kept.keys.events, "*", "p", '{"code":"note","n":"many"}')
    kept.call("XADD", kept.keys.events, "*", "q", "of another program")
    assert explain_answer(kept, "101-0").noted is None
    for text, n in (("second", 50), ("first", 20), ("later", 140)):
        note(kept, text, n, "ann@desk")
    found = explain_answer(kept, "101-0")
    assert found.noted == {"n": 50, "writer": "ann@desk", "detail": "second"}
    assert "  noted      second (at example 50, ann@desk)" in describe(found)


def test_what_it_rests_on_is_what_the_answer_names(kept):
    found = explain_answer(kept, "101-0")
    basis, answer = found.rests_on, found.answer
    assert found.values == (100 % 7, 100 % 5)
    assert (basis.model, basis.calibration) == (answer["model"], answer["calibration"])
    assert basis.scores == pytest.approx(answer["scores"], abs=5.1e-7)
    # The same counts in process, without Redis.
    predictor = OnlinePredictor(CONFIG)
    rows = [i for i in range(100) if i % 40 != 39]
    predictor.step_many(
        np.array([[i % 7, i % 5] for i in rows], float), ["ab"[i % 2] for i in rows]
    )
    held = predictor.active.calibration
    assert basis.counts == tuple(np.bincount(held.codes, minlength=2))
    distances = np.abs(held.scores[:, 0] - answer["scores"][0])
    near = np.argsort(distances, kind="stable")[:50]
    assert basis.near == tuple(np.bincount(held.codes[near], minlength=2))


def test_the_nearest_support_vectors_are_examples_of_the_stream(kept):
    found = explain_answer(kept, "101-0")
    sent = {(i % 7, i % 5) for i in range(100)}
    near = found.rests_on.support_vectors
    assert [v.distance for v in near] == sorted(v.distance for v in near)
    for vector in near:
        assert tuple(np.round(vector.values, 9)) in sent


def test_the_newest_answer_to_a_producer_s_id_is_explained(kept):
    assert explain_answer(kept, "tx-31").entry == "32-0"
    assert explain_answer(kept, TWICE).entry == "141-0"
    with pytest.raises(BadConfiguration, match=r"keeps no answer 'tx-999'"):
        explain_answer(kept, "tx-999")


def test_warming_and_rejected_answers_rest_on_no_model_and_are_proven_too(kept):
    for entry, status in (("3-0", "warming"), ("40-0", "rejected")):
        found = explain_answer(kept, entry)
        assert (found.answer["status"], found.is_identical) == (status, True)
        assert found.rests_on is None


def test_the_parts_of_the_experts_are_those_before_the_answer(kept):
    found = explain_answer(kept, "9-0")
    predictor = OnlinePredictor(CONFIG)
    predictor.step_many(*learned_before(8))
    assert found.experts == predictor.frozen().expert_weights
    assert list(found.experts.values()) == sorted(found.experts.values(), reverse=True)
    (line,) = [line for line in describe(found) if line.startswith("  experts    an average: ")]
    shares = [int(text) for text in re.findall(r"(\d+)%", line)]
    assert shares == sorted(shares, reverse=True)
    assert abs(sum(shares) - 100) <= len(shares)
    history = found.experts["label-history"]
    assert (f"{history:.0%} the labels just before" in line) == (history >= 0.005)


def test_without_an_ensemble_no_experts_are_told(kept):
    for entry in ("101-0", "40-0"):  # a single machine with a model; refused
        found = explain_answer(kept, entry)
        assert found.experts == {}
        assert not any(line.startswith("  experts") for line in describe(found))


def test_an_answer_that_was_changed_is_not_proven_and_nothing_is_said_of_it(kept, run):
    (_, flat), *_ = kept.call("XRANGE", kept.keys.out, "150-0", "150-0")
    changed = orjson.loads(flat[1]) | {"probability": 0.999}
    take_back(kept, kept.keys.out, "149-0")
    kept.call("XADD", kept.keys.out, "150-0", "p", orjson.dumps(changed))
    found = explain_answer(kept, "150-0")
    assert (found.is_identical, found.rests_on) == (False, None)
    code, out, _ = run("explain", kept.keys.feed, "150-0")
    assert (code, "the bytes DIFFER from the committed ones" in out) == (5, True)


def test_an_answer_whose_input_is_gone_cannot_be_rebuilt(store):
    push(store, [fields(i) for i in range(COUNT)])
    # The older snapshot, and a window before it, are what is kept.
    drain(session(store, config=CONFIG, snapshot_every=20), COUNT)
    with pytest.raises(InputLost, match="--keep-input keeps it"):
        explain_answer(store, "20-0")
    assert explain_answer(store, "145-0").is_identical


def test_the_command_says_it_in_lines(kept, run):
    code, text, _ = run("explain", kept.keys.feed, "tx-100")
    assert code == 0
    assert "answer 101-0, entry 100 of the feed" in text
    assert "the bytes are the committed ones" in text
    assert "support vector (rbf) at distance" in text


def test_contributions_are_differences_of_replayed_answers(kept):
    found = explain_answer(kept, "101-0")
    predictor = OnlinePredictor(CONFIG)
    predictor.step_many(*learned_before(100))
    label = found.answer["classes"].index(found.answer["label"])
    state, row = predictor.frozen(), np.array([[100.0 % 7, 100.0 % 5]])
    typical = predictor.active.result.scaling.fill
    assert found.contributions
    for one in found.contributions:
        changed = row.copy()
        changed[0, one.feature] = typical[one.feature]
        effect = state.answer(row).point[0, label] - state.answer(changed).point[0, label]
        assert (one.effect, one.typical) == (effect, typical[one.feature])
    sizes = [abs(one.effect) for one in found.contributions]
    assert sizes == sorted(sizes, reverse=True)
    first = found.contributions[0]
    text = f"  because    {first.feature}={found.values[first.feature]:.4g}: {first.effect:+.3f}"
    assert any(line.startswith(text) for line in describe(found))


def learned_before(seq):
    kept = [i for i in range(seq) if i % 40 != 39]
    return np.array([[i % 7, i % 5] for i in kept], dtype=float), ["ab"[i % 2] for i in kept]


def test_warming_and_refused_entries_have_no_contributions(kept):
    assert explain_answer(kept, "3-0").contributions == ()
    assert explain_answer(kept, "40-0").contributions == ()
