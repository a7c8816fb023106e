"""`push`: columns that are left out, ids, blanks, what is told first, and how to go on."""

import io
import os
import re
import shlex
import signal
from contextlib import nullcontext

import orjson
import pytest

from workers.push import columns, ingest
from workers.push.columns import head_of, summary
from workers.push.ingest import Pacing, PushInterrupted, PushStopped, push
from workers.push.rows import Layout
from workers.push.sources import BadSource, Reading, Row, rows

TEXT = "pid,name,age,fare,kind\n1,Ann,39,NA,ham\n2,Bob,,8.5,spam\n3,Cy,n/a,1,\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return path


def stored(store):
    found = store.call("XRANGE", store.keys.input, "-", "+")
    return [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in found]


def test_columns_are_left_out_an_id_is_sent_as_one_and_blanks_as_null(run, store, feed, table):
    options = ("--drop", "name", "--id", "pid", "--na", "NA", "--na", "n/a")
    code, _, err = run("push", feed, str(table), *options)
    assert code == 0
    sent = stored(store)
    assert [orjson.loads(entry[b"x"]) for entry in sent] == [
        {"age": 39, "fare": None},
        {"age": None, "fare": 8.5},
        {"age": None, "fare": 1},
    ]
    assert [entry[b"id"] for entry in sent] == [b"1", b"2", b"3"]
    assert [entry.get(b"y") for entry in sent] == [b"ham", b"spam", None]
    assert err.splitlines()[:6] == [
        "the first 3 rows are read like this:",
        "  label     kind: ham 1, spam 1; 1 row without, answered and not learned; "
        "the last column, as no --label names one",
        "  id        pid",
        "  features  2 numbers, sent by name: age, fare",
        "  left out  name",
        "  blank     age 2, fare 1: sent as null, a gap",
    ]


def test_times_are_told_from_texts_and_a_label_that_was_named_from_a_guess(run, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("at,note,q,until,y\n2024-01-05,red,1,,a\n2024-01-05 10:30,2024-01-05,2,?,b\n")
    code, _, err = run("push", feed, str(path), "--label", "y", "--limit", "0")
    assert (code, err.splitlines()[1:3]) == (0, [
        "  label     y: a 1, b 1",
        "  features  2 numbers, 1 time and 1 of words, sent by name: at, note, q, until",
    ])  # fmt: skip
    path.write_text("at,y\n2024-01-05,a\n")
    err = run("push", feed, str(path), "--limit", "0")[2]
    assert "  features  1 time, sent by name: at\n" in err


def test_all_columns_of_text_are_named_at_once_with_what_to_type(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    names = [f"x{i}" for i in range(1, 13)]
    path.write_text(
        # The first column of text has none in the first row.
        f",{'red,' * 11}39,?,ham\n"
        + f"{'red,' * 12}n/a,2,spam\n"
        + f"{'red,' * 12}n/a,2,spam\n"
        + f"{'red,' * 12}NA,unknown,ham\n"
    )
    code, _, err = run("push", feed, str(path), "--no-header")
    assert (code, err.count("\n"), stored(store)) == (2, 1, [])
    assert f"{path}, line 1, row 1: x2 is 'red', x3 is 'red'" in err
    typed = shlex.split(re.search(r", or type (.*) \(--drop leaves", err)[1])
    assert typed[:24] == [part for name in (*names[1:], names[0]) for part in ("--drop", name)]
    assert typed[24:] == ["--na", "unknown"]
    code, _, err = run("push", feed, str(path), "--no-header", *typed)
    assert (code, len(stored(store))) == (0, 4)


def test_a_column_of_many_texts_is_left_out():
    rows = [{f"c{i}": f"{i}x{k}" if k % 2 else k for i in range(300)} for k in range(20)]
    told = str(columns.not_numbers(rows[1], rows, [*rows[0]], frozenset(), 7))
    assert told.startswith("c0 is '0x1', c1 is '1x1'")
    assert "and 294 more, not numbers" in told
    assert told.count("--drop c") == 41
    assert "--drop c40 and 259 more (" in told
    assert len(told) < 1000


def test_of_standard_input_no_later_row_is_waited_for_where_one_cannot_be_read(monkeypatch):
    text = io.BytesIO(b"1,red,x\nblue,red,x\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(text)))
    with pytest.raises(BadSource) as refused:
        list(rows("-", Reading(format="csv", header=False)))
    assert "standard input, line 1, row 1: x2 is 'red', not a number" in str(refused.value)
    assert "or type --drop x2 (" in str(refused.value)


@pytest.mark.parametrize("redis", ["redis://127.0.0.1:1", None], ids=["gone", "embedded"])
def test_a_limit_of_zero_checks_all_of_the_source_and_asks_no_redis(
    run_command, tmp_path, monkeypatch, redis
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "a.csv"
    path.write_text("1,a\n" * 2500)
    where = ("f", str(path), "--no-header", "--limit", "0", *(("--redis", redis) if redis else ()))
    code, _, err = run_command("push", *where)
    assert code == 0
    assert "the first 500 rows are read like this:" in err
    assert err.endswith("\n2,500 rows can be pushed; none was, as --limit 0 asks\n")
    assert run_command("push", *where, "--skip", "2000")[2].split("\n")[-2].startswith("500 rows")
    with path.open("a") as more:
        more.write("red,a\n")
    code, _, err = run_command("push", *where)
    assert code == 2
    assert "line 2501, row 2501: x1 is 'red', not a number" in err
    assert not (tmp_path / "state").exists()


def test_a_limit_of_zero_checks_that_labels_have_ids(run_command, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,y\n1,a\n,b\n")
    code, _, err = run_command("push", "f", "--labels", str(path), "--id", "id", "--limit", "0")
    assert (code, "a label needs the id of its example" in err) == (2, True)


def test_an_id_that_is_a_feature_is_told_before_it_is_sent(run, feed, table):
    _, _, err = run("push", feed, str(table), "--drop", "name", "--na", "NA", "--na", "n/a")
    assert "features  3 numbers, sent by name: pid, age, fare" in err
    head = [Row({"patient_id": i, "q": 0.5}, "a") for i in range(3)]
    assert "patient_id looks like an identifier" in summary(head, Layout("y"))[-1].text
    counted = [Row({"n": float(i), "q": 0.5}, "a") for i in range(20)]
    assert str(summary(counted, Layout("y"))[-1]).startswith("  warning   n looks like an iden")
    assert not any(found.kind == "warning" for found in summary(counted[::2], Layout("y")))


def test_a_look_at_the_head_is_bounded_and_loses_no_row(run, store, feed, tmp_path):
    wide = iter([Row([0.0] * 300_000)] * 9)
    assert len(head_of(wide)) == 4
    assert len(head_of(iter([Row([1])] * 5000))) == 1000
    path = tmp_path / "many.csv"
    path.write_text("q,y\n" + "".join(f"{i},a\n" for i in range(1234)))
    _, _, err = run("push", feed, str(path))
    assert "the first 500 rows are read like this:" in err
    assert [orjson.loads(entry[b"x"])["q"] for entry in stored(store)] == list(range(1234))


def test_hostile_column_names_are_told_on_one_line_each(run, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\x1b[2J\u202e,y\n1,\x9b2J\n")
    _, _, err = run("push", feed, str(path))
    assert all(line.isprintable() for line in err.split("\n"))


def ctrl_c(*_):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_rows_are_in_flight_says_exactly_how_many_arrived(
    store, redis_url, feed, monkeypatch
):
    send = ingest._send

    def interrupted(producer, entries, before, skipped):
        if before == 6:
            append = producer.append
            producer.append = lambda entries: (ctrl_c(), append(entries))[1]
        return send(producer, entries, before, skipped)

    monkeypatch.setattr(ingest, "_send", interrupted)
    with pytest.raises(PushInterrupted) as ended:
        push([Row([i]) for i in range(99)], redis_url, feed, pacing=Pacing(3))
    assert (ended.value.sent, ended.value.unsure) == (9, 0)
    assert len(stored(store)) == 9
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_does_not_wait_and_says_what_is_unsure(redis_url, feed, monkeypatch):
    def twice(*_):
        ctrl_c()
        ctrl_c()

    monkeypatch.setattr(ingest, "_send", twice)
    with pytest.raises(PushInterrupted) as ended:
        push([Row([i]) for i in range(9)], redis_url, feed, pacing=Pacing(3))
    assert (ended.value.sent, ended.value.unsure) == (0, 3)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("at", [3, 6])
def test_the_rest_is_pushed_with_the_skip_that_an_interrupted_push_names(
    run, store, feed, tmp_path, monkeypatch, at
):
    path = tmp_path / "a.csv"
    path.write_text("q,y\n" + "".join(f"{i},a\n" for i in range(20)))
    monkeypatch.setattr(ingest, "CHUNK_ENTRIES", 3)
    with monkeypatch.context() as patched:
        told = lambda _: nullcontext(lambda sent: sent == at and ctrl_c())  # noqa: E731
        patched.setattr("workers.cli.progress.push_progress", told)
        code, _, err = run("push", feed, str(path), "--skip", "2", "--limit", "15")
    assert code == 130
    *_, option, skip, also, limit = err.splitlines()[-1].split()
    assert err.splitlines()[-1].startswith(f"interrupted: {at} rows were pushed; go on with --skip")
    assert run("push", feed, str(path), option, skip, also, limit)[0] == 0
    assert [orjson.loads(entry[b"x"])["q"] for entry in stored(store)] == list(range(2, 17))


def test_a_row_refused_among_others_that_were_taken_is_named(store, redis_url, feed):
    """An entry without a value is refused by Redis; the others of its pipeline are taken."""
    encode = lambda row: [b"x"] if row.x[0] in (1, 2, 4) else ingest.entry(row)  # noqa: E731
    with pytest.raises(PushStopped) as stopped:
        push(
            [Row([i]) for i in range(6)], redis_url, feed, encode=encode, pacing=Pacing(skipped=100)
        )
    assert "3 rows were pushed; later rows than the refused were taken: push" in str(stopped.value)
    assert str(stopped.value).endswith(
        "push --skip 101 --limit 2, --skip 104 --limit 1, then go on with --skip 106"
    )
    assert len(stored(store)) == 3


def test_columns_of_text_are_sent_as_slices_and_are_no_features(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("q,country,age,kind\n1,DE,old,ham\n2, ,?,spam\n3,\x1b[2J,,ham\n")
    code, _, err = run("push", feed, str(path), "--slice", "country", "--slice", "age")
    assert code == 0
    assert "  slices    country, age\n" in err
    assert "  features  1 number, sent by name: q\n" in err
    sent = [orjson.loads(entry[b"s"]) if b"s" in entry else None for entry in stored(store)]
    assert sent == [{"country": "DE", "age": "old"}, None, {"country": "\x1b[2J"}]


def test_a_slice_that_is_no_column_is_named_before_anything_is_sent(run, store, feed, table):
    code, _, err = run("push", feed, str(table), "--slice", "land")
    assert (code, stored(store)) == (2, [])
    assert "no column 'land' for the slice; there are pid, name" in err
