"""What `export`, `tail` and `status` show: true labels, and text that is hostile."""

import csv
import io
import json
import struct

import orjson
import pytest
from rich.console import Console

from online_svm.config import PredictorConfig
from workers.admin.verify import Difference
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.cli import stream_text
from workers.cli import verify as verify_module
from workers.cli.common import note, show
from workers.config.settings import Limits
from workers.demo.view import methods_table
from workers.feed.pinned_config import pinned_config
from workers.offline import answer_table

HOSTILE = "\x1b[2J\x9b1m\u202e\nfeed forged\r\x00\x7f"


def message(seq, label, classes=("a", "b"), **more):
    """Return an answer, as far as the commands look at it."""
    count = len(classes)
    return {
        "v": 2, "status": "ok", "seq": seq, "n": seq, "label": label, "lower": 0.5, "upper": 0.75,
        "probability": 0.625, "classes": list(classes), "probabilities": [0.5] * count,
        "intervals": [[0.25, 0.75]] * count, "maps": {}, "scores": [0.5], "guarantee": "exact",
        "reason": None,
    } | more  # fmt: skip


def answered(store, *pairs):
    """Store input entries and the answers to them; an input of None was trimmed since."""
    for i, (sent, told) in enumerate(pairs, 1):
        if sent is not None:
            flat = [part for pair in sent.items() for part in pair]
            store.call("XADD", store.keys.input, f"{i}-0", *flat)
        data = told if isinstance(told, bytes) else orjson.dumps(told)
        store.call("XADD", store.keys.out, f"{i}-0", "p", data)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


WARMING = message(0, None, (), status="warming", reason="warm", probability=None)
PAIRS = (
    ({"x": '{"q":1.5,"=r":-2}', "y": "a"}, WARMING),
    ({"x": '{"q":2,"=r":3}', "y": "a"}, message(1, "a")),
    ({"x": '{"q":4,"=r":5}', "y": "b"}, message(2, "a")),
    ({"x": '{"q":4,"=r":5}'}, message(3, "a")),
    ({"x": "[1]", "y": "a"}, {"status": "rejected", "seq": 4, "n": 3, "code": "c", "reason": "r"}),
    ({"xb": struct.pack("<2d", 7, -8), "y": "b"}, message(5, "b", scores=[-1])),
)


LEARNED = [
    ("a", None),  # no class was known: there was no answer to be right
    ("a", True),
    ("b", False),
    (None, None),  # without a label
    (None, None),  # rejected: its label was not learned
    ("b", True),
]


def test_the_line_of_a_warming_answer_has_its_probability_if_there_is_one():
    assert stream_text.line(orjson.dumps(WARMING)).split() == ["0", "warm"]
    known = message(1, "a", status="warming", guarantee="none", reason="warm")
    assert stream_text.line(orjson.dumps(known)).endswith("[0.500, 0.750]  none (warm)")


def test_the_line_of_an_answer_names_the_action_of_least_cost_and_its_maps():
    decided = message(1, "a") | {"actions": ["a", "b", "review"], "action": "review"}
    told = stream_text.line(orjson.dumps(decided | {"expected_cost": 0.25}))
    assert "[0.500, 0.750]  action review at 0.25  " in told
    assert "[0.500, 0.750]  action review  " in stream_text.line(orjson.dumps(decided))
    bounded = {"map_intervals": {"venn-abers": [[0.2, 0.3], [0.7, 0.8]]}}
    mapped = message(1, "b", maps={"venn-abers": [0.25, 0.75], "platt": [0.4, 0.6]}) | bounded
    told = stream_text.line(orjson.dumps(mapped))
    assert "  venn-abers 0.750 [0.700, 0.800]  platt 0.600  exact" in told
    assert "action" not in told


def test_export_and_tail_add_the_label_that_was_learned_and_whether_it_was_right(run, store, feed):
    answered(store, *PAIRS)
    code, out, err = run("export", feed)
    assert (code, err, "feature" in out) == (0, "6 answers exported\n", False)
    cells = {None: "", True: "1", False: "0"}
    found = [(row["true_label"], row["is_right"]) for row in table(out)]
    assert found == [(label or "", cells[is_right]) for label, is_right in LEARNED]
    stored = [orjson.dumps(told).decode() for _, told in PAIRS]
    lines = run("tail", feed, "--json")[1].splitlines()
    for line, data, learned in zip(lines, stored, LEARNED, strict=True):
        assert line.startswith(data[:-1])  # behind the bytes that are stored
        assert (orjson.loads(line)["true_label"], orjson.loads(line)["is_right"]) == learned
    lines = run("tail", feed)[1].splitlines()
    assert lines[0].endswith("warm  the label is a")
    assert "[0.500, 0.750]  right, the label is a" in lines[1]
    assert "[0.500, 0.750]  wrong, the label is b" in lines[2]
    assert "true" not in lines[3] + lines[4]


REJECTED = {"v": 2, "status": "rejected", "seq": 0, "n": 0, "code": "not_finite"}
NAN = {"about": {"case": "feature_nan", "feature": "age"}}
SENTENCE = "feature 'age' is NaN; send a finite number"


def test_readers_make_the_sentence_of_a_rejection_that_stores_its_case(run, store, feed):
    answered(store, ({"x": "[1]"}, REJECTED | NAN), ({"x": "[1]"}, REJECTED | {"reason": "old"}))
    assert [row["reason"] for row in table(run("export", feed)[1])] == [SENTENCE, "old"]
    lines = run("tail", feed)[1].splitlines()
    assert [line.split("rejected: ")[1] for line in lines] == [
        f"not_finite: {SENTENCE}", "not_finite: old",
    ]  # fmt: skip
    told = [orjson.loads(line) for line in run("tail", feed, "--json")[1].splitlines()]
    assert [(one["reason"], one.get("about")) for one in told] == [
        (SENTENCE, NAN["about"]), ("old", None),
    ]  # fmt: skip


def test_export_and_tail_show_the_features_on_request(run, store, feed):
    answered(store, *PAIRS)
    rows = table(run("export", feed, "--features")[1])
    named = [(row["feature q"], row["feature =r"]) for row in rows]
    assert named == [("1.5", "-2"), ("2", "3"), ("4", "5"), ("4", "5"), ("", ""), ("", "")]
    assert (rows[5]["feature 0"], rows[5]["feature 1"], rows[5]["score b"]) == ("7.0", "-8.0", "-1")
    lines = run("tail", feed, "--json", "--features")[1].splitlines()
    told = [orjson.loads(line)["features"] for line in lines]
    assert (told[1], told[4], told[5]) == ({"q": 2, "=r": 3}, None, [7.0, -8.0])
    assert run("tail", feed, "--features")[1].splitlines()[1].endswith("exact  q=2 =r=3")


def test_true_labels_are_compared_as_the_feed_spells_them(run, store, feed):
    store.fence("w", pinned_config(PredictorConfig(labels="integer"), Limits()))
    told = [message(i, "1", ("-1", "1")) for i in range(2)]
    answered(store, (None, told[0]), ({"x": "[1]", "y": "+1"}, told[1]))
    _, out, err = run("export", feed)
    assert [(row["true_label"], row["is_right"]) for row in table(out)] == [("", ""), ("1", "1")]
    assert "the input of 1 answer is no longer kept: true_label and is_right are blank" in err
    assert "--keep-input" in err


def test_more_answers_than_a_page_of_input_are_joined_one_by_one(run, store, feed):
    answered(
        store,
        *(
            ({"x": f"[{i}]", "y": "ab"[i % 2]} if i % 7 else None, message(i, "a"))
            for i in range(2345)
        ),
    )
    expected = [("ab"[i % 2] if i % 7 else "", i) for i in range(2345)]
    rows = table(run("export", feed, "--features")[1])
    assert [(row["true_label"], int(row["seq"])) for row in rows] == expected
    assert [row["feature 0"] for row in rows] == [str(i) if i % 7 else "" for i in range(2345)]


def test_what_is_answered_during_an_export_is_not_in_it(run, store, feed, monkeypatch):
    answered(store, ({"x": "[1]", "y": "a"}, message(0, "a")))
    write = answer_table.write_table

    def late(*arguments):
        later = orjson.dumps(message(1, "c", ("a", "b", "c"))).decode()
        store.call("XADD", store.keys.out, "2-0", "p", later)
        return write(*arguments)

    monkeypatch.setattr(answer_table, "write_table", late)
    code, out, _ = run("export", feed)
    assert code == 0
    assert [row["seq"] for row in table(out)] == ["0"]


def test_a_feed_begun_anew_during_an_export_ends_it_in_one_line(
    run, store, feed, monkeypatch, tmp_path
):
    answered(store, ({"x": "[1]", "y": "a"}, message(0, "a")))
    write = answer_table.write_table

    def anew(*arguments):
        store.call("DEL", store.keys.out)
        answered(store, (None, message(0, "c", ("a", "b", "c"))))
        return write(*arguments)

    monkeypatch.setattr(answer_table, "write_table", anew)
    code, _, err = run("export", feed, str(tmp_path / "out.csv"))
    assert (code, err.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])
    assert "the feed was begun anew while it was exported" in err


def test_export_overwrites_a_file_only_when_told_and_then_at_once(run, store, feed, tmp_path):
    answered(store, *PAIRS)
    path, link = tmp_path / "out.csv", tmp_path / "link.csv"
    path.write_text("mine")
    link.symlink_to(path)
    for target in (path, link):
        code, _, err = run("export", feed, str(target))
        assert (code, path.read_text()) == (2, "mine")
        assert err == (
            f"online-svm: {target}: the file is there; choose another, or say --overwrite\n"
        )
    assert run("export", feed, str(link), "--overwrite")[0] == 0
    assert path.read_text() == run("export", feed)[1]
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, path]
    assert run("export", feed, "/dev/null")[0] == 0  # a device is written to as it is


def test_an_export_that_is_interrupted_leaves_the_file_that_was_there(
    run, store, feed, tmp_path, monkeypatch
):
    answered(store, *PAIRS)
    path = tmp_path / "out.csv"
    path.write_text("mine")

    def interrupted(target, *arguments):
        target.write("half a row")
        raise KeyboardInterrupt

    monkeypatch.setattr(answer_table, "write_table", interrupted)
    assert run("export", feed, str(path), "--overwrite")[0] == 130
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+1+cmd", "'+1+cmd"),
        ("-2+3", "'-2+3"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\\t=1"),
        ("\r=1", "'\\r=1"),
        ("-1", "-1"),
        ("+1e-3", "+1e-3"),
        ("ordinary = text", "ordinary = text"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_run_is_written_as_text(run, store, feed, text, written):
    answered(store, ({"x": "[1]", "y": text}, message(0, text, (text,), id=text)))
    (row,) = table(run("export", feed)[1])
    assert (row["label"], row["true_label"], row["id"]) == (written, written, written)


def is_clean(out):
    """Return whether a terminal that shows a text obeys nothing in it."""
    return all(line.isprintable() for line in out.split("\n"))


def hostile_feed(store):
    """Store a feed with hostile text in every field that a person may see."""
    names, sent = {HOSTILE: [0.5, 0.5]}, {"x": json.dumps({HOSTILE: 1}), "y": HOSTILE}
    said = {
        "code": HOSTILE,
        "id": HOSTILE,
        "about": {"case": "feature_unknown", "feature": HOSTILE},
    }
    bad = {"status": "rejected", "seq": 2, "n": 1} | said
    answered(
        store,
        (sent, message(0, HOSTILE, (HOSTILE, "b"), maps=names)),
        ({"x": "[1]"}, message(1, None, (), status="warming", reason=HOSTILE)),
        ({"x": "[1]"}, bad),
        ({"x": "[1]"}, {"status": "duplicate", "id": HOSTILE, "seq": 3, "n": 1, "first": 0}),
        ({"x": "[1]"}, {"seq": HOSTILE}),
        ({"x": "[1]"}, f'{{"late":1}}{HOSTILE}'.encode()),
    )  # fmt: skip
    held = Holder.here("w")
    fields = {name: getattr(held, name) for name in held.__slots__} | {"name": HOSTILE}
    store.call("SET", store.keys.lease, json.dumps(fields))
    letter = ("code", HOSTILE, "about", HOSTILE, "size", "1", HOSTILE, "1", "head", HOSTILE)
    store.call("XADD", store.keys.dlq, "*", *letter)
    store.call("XADD", store.keys.dlq, "*", b"code", b"\xff\x1b")
    store.register()


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (("tail",), 6),
        (("tail", "--json"), 6),
        (("tail", "--features"), 6),
        (("tail", "--stream", "dlq"), 2),
        (("tail", "--stream", "dlq", "--json"), 2),
        (("status",), 11),
        (("status", "--json"), 1),
    ],
)
def test_hostile_text_is_escaped_and_forges_no_line(run, store, feed, command, lines):
    hostile_feed(store)
    code, out, err = run(command[0], feed, *command[1:])
    assert code == 0
    assert is_clean(out + err)
    assert out.count("\n") == lines
    assert not any(line.startswith("feed forged") for line in out.splitlines())


def test_hostile_text_in_an_export_is_escaped_cell_by_cell(run, store, feed):
    hostile_feed(store)
    code, out, err = run("export", feed)
    assert (code, is_clean(err), err.count("\n")) == (4, True, 1)
    assert "entry 6-0 of an output stream is no answer" in err
    store.call("XDEL", store.keys.out, "5-0", "6-0")
    for at, *fields in (("7-0", "q", "{}"), ("8-0", "p", '{"maps":3}')):
        store.call("XADD", store.keys.out, at, *fields)
        code, _, err = run("export", feed)
        assert (code, f"entry {at} of an output stream is no answer" in err) == (4, True)
        store.call("XDEL", store.keys.out, at)
    code, out, _ = run("export", feed, "--features")
    assert (code, is_clean(out), out.count("\n")) == (0, True, 1 + 4)


def test_what_json_shows_means_what_is_stored(run, store, feed):
    answered(store, ({"x": "[1]", "y": "a"}, message(0, HOSTILE + "😀\U000e0041")))
    told = orjson.loads(run("tail", feed, "--json")[1])
    assert told["label"] == HOSTILE + "😀\U000e0041"


def test_an_error_of_redis_cannot_forge_a_line(run, redis_url, feed):
    with Store(redis_url, feed) as store:
        store.call("SET", store.keys.out, "not a stream")
    code, out, err = run("tail", feed)
    assert (code, out, err.count("\n")) == (4, "", 1)
    assert is_clean(err)


PLAIN_LEASE = {"name": "w", "host": Holder.here("w").host, "pid": 1, "started": "s", "token": "t"}


@pytest.mark.parametrize("held", [
    *(json.dumps(PLAIN_LEASE | {"pid": pid}).encode() for pid in ("1\0", -1, True)),
    *(json.dumps(PLAIN_LEASE | {"name": name}).encode() for name in ("\ud800", ["w"])),
    b"[" * 100_000, b"\x00\x1b[2J",
], ids=lambda held: repr(held[:60]))  # fmt: skip
def test_a_lease_of_any_text_is_shown_and_breaks_nothing(run, store, feed, held):
    answered(store, *PAIRS)
    store.call("SET", store.keys.lease, held)
    for form in ((), ("--json",)):
        code, out, err = run("status", feed, *form)
        assert (code, err, is_clean(out)) == (0, "", True)


def test_what_no_command_of_the_table_shows_is_escaped_too(capsys):
    """Differences of `verify`, maps in the table of the demo, and notes of every command."""
    found = Difference(id=b"1-0", stream="out", committed=HOSTILE.encode() + b"\xff", computed=None)
    told = [verify_module._difference(found)]
    method = {"predicted": {"accuracy": None}}
    report = {"headline": method, "venn": method, "maps": {f"[red]{HOSTILE}": method}}
    Console(file=(console := io.StringIO()), width=200).print(methods_table(report))
    note(f"warning: {HOSTILE}")
    show(f"Redis {HOSTILE}")
    told += [console.getvalue(), *capsys.readouterr()]
    assert all(map(is_clean, told))
    assert [told[0].count("\n"), "[red]" in told[1], *(text.count("\n") for text in told[2:])] == [
        2, True, 1, 1,
    ]  # fmt: skip
