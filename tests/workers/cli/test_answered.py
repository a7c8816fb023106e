"""`worker`, `export` and `verify` over one feed of real rows."""

import csv
import io
import re

import orjson
from answered_feed import ROWS, phishing


def test_the_worker_tells_how_far_it_came_and_where_it_stopped(answered):
    _, told = answered
    counts = f"{ROWS + 1} answered, {ROWS} learned, 1 rejected"
    assert f"{counts} (online-svm tail answered --stream dlq), stopped" in told
    assert "accuracy" in told


def test_export_writes_one_row_an_answer_to_a_file_or_to_standard_output(answered, run, tmp_path):
    feed, _ = answered
    path = tmp_path / "out.csv"
    code, _, err = run("export", feed, str(path))
    assert (code, f"{ROWS + 1} answers exported" in err) == (0, True)
    text = path.read_text()
    assert text.startswith("entry,")
    assert run("export", feed)[:2] == run("export", feed, "-")[:2] == (0, text)
    table = list(csv.DictReader(io.StringIO(text)))
    told = [orjson.loads(line) for line in run("tail", feed, "--json", "-n", "0")[1].splitlines()]
    message, row = told[-2], table[-2]
    assert float(row["probability true"]) == message["probabilities"][1]
    assert float(row["lower false"]) == message["intervals"][0][0]
    assert float(row["platt true"]) == message["maps"]["platt"][1]
    assert (table[-1]["status"], table[-1]["id"]) == ("rejected", "bad one")
    sent = [row.y for row in phishing()] + [None]  # the last one is rejected
    assert [one["true_label"] for one in told] == sent
    assert [row["true_label"] for row in table] == [label or "" for label in sent]
    right = [one.get("label") == label for one, label in zip(told, sent, strict=False)]
    assert [row["is_right"] for row in table[20:-1]] == [str(int(hit)) for hit in right[20:-1]]


def test_a_feed_that_is_pushed_and_not_answered_is_told_from_none(run, feed, source):
    run("push", feed, str(source), "--limit", "3")
    told = f"online-svm: feed {feed!r} has no answers yet: online-svm worker {feed}\n"
    assert run("verify", feed) == (2, "", told)
    assert run("export", feed)[:2] == (0, "entry\n")
    assert "\n  snapshots  none yet\n" in run("status", feed)[1]


def test_verify_compares_the_whole_history_with_its_source(answered, run, source):
    feed, _ = answered
    code, out, _ = run("verify", feed, "--json")
    found = orjson.loads(out)
    assert (code, found["identical"], found["answers"]) == (0, True, ROWS + 1)
    code, out, _ = run("verify", feed, "--input", str(source))
    assert (code, out.endswith("identical\n")) == (0, True)
    code, out, err = run("verify", feed, "--input", str(source), "--shuffle", "1")
    assert (code, "differ" in err, out.count("\ndiffers at ")) == (5, True, 3)
    assert re.search(r"\n\.\.\. and 1\d\d more that differ\nNOT identical\n$", out)
