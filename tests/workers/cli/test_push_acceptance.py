"""`push` refuses what the feed must reject, in --dry-run, too, before anything is sent."""

import json

import pytest
from world import work

from workers.broker.store import Store

SETTINGS = {"classes": ("ham", "spam"), "scores": "probability", "slices": ("land",)}
GOOD = "s,land,q,id,y\n0.9,DE,1,a,spam\n0.1,FR,2,b,ham\n"
OPTIONS = ("--score", "s", "--slice", "land", "--id", "id")


@pytest.fixture
def begun(run, redis_url, feed, tmp_path):
    """A feed that takes probabilities and has answered two rows; a function that pushes a table."""
    path = tmp_path / "a.csv"
    path.write_text(GOOD)
    assert run("push", feed, path, *OPTIONS)[0] == 0
    work(redis_url, feed, SETTINGS, 2)

    def push(row, *more):
        path.write_text(GOOD + row)
        return run("push", feed, path, *OPTIONS, *more)

    return push


REJECTED = {
    "90,DE,1,c,ham": "row 3: the feed rejects it: score is 90.0; send a probability from 0 to 1",
    "-0.5,DE,1,c,ham": "row 3: the feed rejects it: score is -0.5",
    "0.5,DE,1,c,eggs": "row 3: the feed rejects it: label 'eggs'",
    f"0.5,{'D' * 300},1,c,ham": "row 3: the feed rejects it:",
    f"0.5,DE,1,{'i' * 300},ham": "row 3: the feed rejects it: id has more than 256 characters",
    "90%,DE,1,c,ham": "s is '90%': write a probability as a number from 0 to 1",
    "9/10,DE,1,c,ham": "s is '9/10', no score: write a probability such as 0.9",
    "high,DE,1,c,ham": "s is 'high', no score: write a probability such as 0.9",
}


@pytest.mark.servers("embedded")
def test_what_the_feed_must_reject_is_refused_before_it_is_sent(begun, redis_url, feed):
    with Store(redis_url, feed) as store:
        before = store.length(store.keys.input)
        for row, fault in REJECTED.items():
            for option in ((), ("--dry-run",)):
                code, _, err = begun(f"{row}\n", *option)
                assert (code, fault in err, row) == (2, True, row), err
        assert begun("0.5,DE,1,c,ham\n", "--dry-run")[0] == 0
        assert store.length(store.keys.input) == before
        assert begun("0.5,DE,1,c,ham\n")[0] == 0
        assert store.length(store.keys.input) == before + 3


@pytest.mark.servers("embedded")
def test_the_way_on_after_a_rejected_row_leads_on(begun, redis_url, feed):
    code, _, err = begun("0.5,DE,1,c,ham\n" * 700 + "90,DE,1,c,ham\n0.5,DE,1,d,ham\n")
    assert code == 2
    assert "500 rows were pushed; correct the source, then go on with --skip 500" in err
    assert "row 703: the feed rejects it: score is 90.0" in err
    rest = "0.5,DE,1,c,ham\n" * 700 + "0.9,DE,1,c,ham\n0.5,DE,1,d,ham\n"
    assert begun(rest, "--skip", "500")[0] == 0
    with Store(redis_url, feed) as store:
        assert store.length(store.keys.input) == 2 + 704


def test_a_feed_that_has_not_begun_takes_any_entry(run, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("s,q,y\n90,1,ham\n")
    assert run("push", feed, path, "--score", "s", "--dry-run")[0] == 0
    path.write_text("s,q,y\nhigh,1,ham\n")
    code, _, err = run("push", feed, path, "--score", "s", "--dry-run")
    assert (code, "line 2, row 1: s is 'high', no score" in err) == (2, True)


LATE = {"classes": ("ham", "spam"), "horizon": "3d"}


@pytest.mark.servers("embedded")
def test_labels_with_an_id_that_no_example_waits_with_are_told(run, redis_url, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,t,q\n" + "".join(f"{i},2025-12-28T14:{i}:00Z,{i}\n" for i in range(10, 50)))
    assert run("push", feed, path, "--id", "id", "--time", "t", "--no-label")[0] == 0
    labels = tmp_path / "labels.csv"

    def push(ids, *more):
        labels.write_text("id,y\n" + "".join(f"{each},ham\n" for each in ids))
        return run("push", feed, "--labels", labels, "--id", "id", *more)

    work(redis_url, feed, LATE, 40)
    told = "no example waits with the id of 2 of 4 labels, such as 'x': the feed rejects them"
    with Store(redis_url, feed) as store:
        before = store.length(store.keys.input)
        code, _, err = push([f"{i}.0" for i in range(10, 30)], "--dry-run")
        assert (code, "the id of 20 of 20 labels, such as '10.0'" in err) == (0, True)
        assert store.length(store.keys.input) == before
        code, out, err = push(["10", "x", "11", "y"], "--json")
        assert (code, told in err) == (0, True)
        assert [json.loads(line).get("code") for line in out.splitlines()] == ["unknown_id", None]
        # Examples may wait now, so that an id says nothing.
        code, _, err = push(["x"])
        assert (code, "no example waits" in err) == (0, False)
    work(redis_url, feed, LATE, 45)
    code, _, err = push(["12", "13"])
    assert (code, "no example waits" in err) == (0, False)
