"""`report --against`: two feeds that answered the same examples."""

import numpy as np
import orjson
import pytest

from workers.broker.store import Store

CHALLENGER = "challenger"


@pytest.fixture
def challenger(redis_url, store):
    with Store(redis_url, CHALLENGER) as other:
        yield other
        for key in (other.keys.input, other.keys.out):
            other.call("DEL", key)


def answered(store, labels, said, ids=None, first=1):
    """Store examples with their answers: P(b) of each."""
    for i, (label, p) in enumerate(zip(labels, said, strict=True)):
        entry = f"{first + i}-0"
        store.call("XADD", store.keys.input, entry, "x", "[1]", "y", label)
        message = {
            "status": "ok", "seq": i, "n": i, "label": "b", "classes": ["a", "b"],
            "probabilities": [1 - p, p],
        } | ({} if ids is None else {"id": ids[i]})  # fmt: skip
        store.call("XADD", store.keys.out, entry, "p", orjson.dumps(message))


def stream(m=400):
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.9], m)
    return np.where(rng.random(m) < p, "b", "a").tolist(), p.tolist()


def test_a_challenger_that_is_better_is_named_with_the_difference(run, store, feed, challenger):
    labels, p = stream()
    answered(store, labels, [0.5] * len(p))
    answered(challenger, labels, p)
    code, out, err = run("report", feed, "--against", CHALLENGER, "--json")
    found = orjson.loads(out)
    assert (code, err, found["compared"]) == (0, "", len(p))
    y = np.array(labels) == "b"
    of_p = np.where(y, p, 1 - np.array(p))
    for name, first, second in (
        ("brier", 0.25, ((y - np.array(p)) ** 2).mean()),
        ("log_loss", np.log(2), -np.log(of_p).mean()),
    ):
        loss = found["losses"][name]
        assert loss["first"] == pytest.approx(first)
        assert loss["second"] == pytest.approx(second)
        assert loss["difference"] == pytest.approx(first - second)
        assert 0 < loss["lower"] < loss["difference"] < loss["upper"]
        assert loss["better"] == "second"
    text = run("report", feed, "--against", CHALLENGER)[1]
    assert f"{CHALLENGER} is better (level 0.05)" in text


def test_a_difference_that_began_late_is_told_with_where_it_began(run, store, feed, challenger):
    labels, p = stream(2500)
    answered(store, labels, [*p[:2000], *[0.5] * 500])
    answered(challenger, labels, p)
    loss = orjson.loads(run("report", feed, "--against", CHALLENGER, "--json")[1])["losses"][
        "brier"
    ]
    assert 1700 < loss["since"]["since"] < 2100
    assert loss["since"]["lower"] > 0
    assert loss["lower"] < loss["since"]["lower"]
    text = run("report", feed, "--against", CHALLENGER)[1]
    assert f"  since number {loss['since']['since'] + 1:,} of them: +0." in text


def test_examples_are_matched_by_the_id_of_the_producer(run, store, feed, challenger):
    labels, p = stream(40)
    ids = [f"t{i}" for i in range(40)]
    answered(store, labels, p, ids)
    answered(challenger, labels[30:0:-1], p[30:0:-1], ids[30:0:-1], first=500)
    found = orjson.loads(run("report", feed, "--against", CHALLENGER, "--json")[1])
    assert (found["compared"], found["only_first"], found["only_second"]) == (30, 10, 0)
    assert found["losses"]["brier"]["difference"] == 0
    assert found["losses"]["brier"]["better"] is None
    assert "no difference shown yet" in run("report", feed, "--against", CHALLENGER)[1]


def test_feeds_with_nothing_in_common_end_it_in_one_line(run, store, feed, challenger):
    labels, p = stream(5)
    answered(store, labels, p)
    answered(challenger, labels, p, first=100)
    code, out, err = run("report", feed, "--against", CHALLENGER)
    assert (code, out) == (2, "")
    assert "have no labelled example in common" in err
    assert err.count("\n") == 1


def test_an_entry_that_is_no_answer_ends_it_in_one_line(run, store, feed, challenger):
    labels, p = stream(5)
    answered(store, labels, p)
    answered(challenger, labels, p)
    store.call("XADD", store.keys.input, "9-0", "x", "[1]", "y", "a")
    told = {"status": "ok", "classes": ["a", "b"], "probabilities": "[]"}
    store.call("XADD", store.keys.out, "9-0", "p", orjson.dumps(told))
    code, _, err = run("report", feed, "--against", CHALLENGER)
    assert code == 4
    assert "9-0" in err
    assert err.count("\n") == 1
