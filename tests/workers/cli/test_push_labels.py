"""`push --labels`: the labels of examples that were pushed before."""

import pytest
from late_feed import flat, history, settings
from world import drain, push, session

from workers.broker.store import Store
from workers.cli.stream_text import line
from workers.cli.validity_text import late_label_lines


@pytest.fixture
def run(run_command, redis_url):
    """Run a command on the test's Redis; return exit code, standard output, standard error."""

    def invoke(*arguments, with_redis=True):
        return run_command(*arguments, *(("--redis", redis_url) if with_redis else ()))

    return invoke


def stored(store):
    found = store.call("XRANGE", store.keys.input, "-", "+")
    return [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in found]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "when,tx,kind\n2026-11-22,t1,spam\n2026-11-23,t2,ham\n"),
        ("labels.jsonl", '{"tx":"t1","kind":"spam","note":"x"}\n{"tx":"t2","kind":"ham"}\n'),
    ],
)
def test_labels_are_pushed_by_the_id_of_their_example(run, store, feed, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    code, _, err = run("push", feed, "--labels", str(path), "--id", "tx", "--label", "kind")
    assert (code, err.splitlines()[-1].startswith("2 labels pushed")) == (0, True)
    assert stored(store) == [{b"for": b"t1", b"y": b"spam"}, {b"for": b"t2", b"y": b"ham"}]


def test_a_row_without_a_label_is_refused_before_its_chunk_is_sent(run, store, feed, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("tx,kind\nt1,spam\nt2,\n")
    code, _, err = run("push", feed, "--labels", str(path), "--id", "tx")
    assert (code, "a row has no label" in err) == (2, True)
    assert stored(store) == []


def test_a_combination_of_a_feed_with_late_labels_is_refused_in_one_line(run, redis_url, feed):
    config = settings()
    with Store(redis_url, feed) as store:
        push(store, flat(history(20)))
        drain(session(store, 16, config), len(history(20)))
    code, _, err = run("combine", feed, feed + "-other", "--into", feed + "-both")
    assert (code, "a combination learns labels that come with their examples" in err) == (2, True)


def test_tail_says_what_was_done_with_a_label():
    said = b'{"v":2,"status":"label","seq":9,"n":3,"example":"t1","label":"spam","done":"accepted"}'
    assert line(said) == "         9  label: spam of id 't1' accepted"


def test_status_has_no_line_of_counts_where_nothing_happened():
    counts = {"pending": 2, "unlabelled": 1, "late": 0, "censored": 0}
    lines = list(late_label_lines({"counts": counts, "accuracy": None, "brier": None}))
    assert lines == [("labels", "2 examples wait, 1 of them without a label")]
