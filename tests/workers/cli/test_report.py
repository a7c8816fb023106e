"""`report --against`: two feeds that answered the same examples."""

import numpy as np
import orjson
import pytest

from workers.broker.store import Store


@pytest.fixture
def compare(run, redis_url, store, feed):
    """Store what two feeds answered, each as `answered` takes it; return how to compare them."""
    with Store(redis_url, f"{feed}-challenger") as challenger:

        def stored(ours, theirs, first=1):
            answered(store, *ours)
            answered(challenger, *theirs, first=first)
            return lambda *more: run("report", feed, "--against", challenger.keys.feed, *more)

        yield stored


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


def test_a_challenger_that_is_better_is_named_with_the_difference(compare, feed):
    labels, p = stream()
    report = compare((labels, [0.5] * len(p)), (labels, p))
    code, out, err = report("--json")
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
    assert f"{feed}-challenger is better (level 0.05)" in report()[1]


def test_a_difference_that_began_late_is_told_with_where_it_began(compare):
    labels, p = stream(2500)
    report = compare((labels, [*p[:2000], *[0.5] * 500]), (labels, p))
    loss = orjson.loads(report("--json")[1])["losses"]["brier"]
    since = loss["since"]
    assert 1700 < since["since"] < 2100
    assert since["lower"] > max(0, loss["lower"])
    assert f"  since number {since['since'] + 1:,} of them: +0." in report()[1]


def test_examples_are_matched_by_the_id_of_the_producer(compare):
    labels, p = stream(40)
    ids = [f"t{i}" for i in range(40)]
    report = compare((labels, p, ids), (labels[30:0:-1], p[30:0:-1], ids[30:0:-1]), first=500)
    found = orjson.loads(report("--json")[1])
    assert (found["compared"], found["only_first"], found["only_second"]) == (30, 10, 0)
    brier = found["losses"]["brier"]
    assert (brier["difference"], brier["better"]) == (0, None)
    assert "no difference shown yet" in report()[1]


def test_feeds_with_nothing_in_common_end_it_in_one_line(compare):
    code, out, err = compare(stream(5), stream(5), first=100)()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "have no labelled example in common" in err


def test_an_entry_that_is_no_answer_ends_it_in_one_line(compare, store):
    report = compare(stream(5), stream(5))
    store.call("XADD", store.keys.input, "9-0", "x", "[1]", "y", "a")
    told = {"status": "ok", "classes": ["a", "b"], "probabilities": "[]"}
    store.call("XADD", store.keys.out, "9-0", "p", orjson.dumps(told))
    code, _, err = report()
    assert (code, "9-0" in err, err.count("\n")) == (4, True, 1)
