"""`export`: the table of a feed, and which options go together.

Labels and hostile text in it: `test_answers_shown.py`; archives: `history/`.
"""

import csv
import io

import orjson
import pytest
from answered_feed import ROWS, phishing


def test_export_writes_one_row_an_answer(answered, run, tmp_path):
    feed, _ = answered
    code, _, err = run("export", feed, str(tmp_path / "out.csv"))
    assert code == 0
    assert f"{ROWS + 1} answers exported" in err
    table = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    _, out, _ = run("tail", feed, "--json", "-n", "2")
    message = orjson.loads(out.splitlines()[0])
    assert float(table[-2]["probability true"]) == message["probabilities"][1]
    assert float(table[-2]["lower false"]) == message["intervals"][0][0]
    assert float(table[-2]["platt true"]) == message["maps"]["platt"][1]
    assert table[-1]["status"] == "rejected"
    assert table[-1]["id"] == "bad one"


def test_tail_and_export_know_the_labels_that_a_worker_learned(answered, run):
    feed, _ = answered
    sent = [row.y for row in phishing()] + [None]  # the last one is rejected
    told = [orjson.loads(text) for text in run("tail", feed, "--json", "-n", "0")[1].splitlines()]
    assert [one["true_label"] for one in told] == sent
    table = list(csv.DictReader(io.StringIO(run("export", feed)[1])))
    assert [row["true_label"] for row in table] == [label or "" for label in sent]
    right = [one.get("label") == label for one, label in zip(told, sent, strict=False)]
    assert [row["is_right"] for row in table[20:-1]] == [str(int(hit)) for hit in right[20:-1]]


def test_export_goes_to_standard_output_unless_a_file_is_named(answered, run, tmp_path):
    feed, _ = answered
    path = tmp_path / "out.csv"
    run("export", feed, str(path))
    for more in ([], ["-"]):
        assert run("export", feed, *more)[:2] == (0, path.read_text())
    assert path.read_text().startswith("entry,")


@pytest.mark.parametrize("command", [("export",), ("backup", "--out")])
def test_a_file_that_cannot_be_written_is_told_in_one_line(answered, run, command, tmp_path):
    feed, _ = answered
    path = tmp_path / "nowhere" / "file"
    code, _, err = run(command[0], feed, *command[1:], str(path))
    assert code == 2
    assert err == f"online-svm: {path}: cannot be written: No such file or directory\n"
