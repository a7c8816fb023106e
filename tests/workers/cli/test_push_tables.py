"""`push` of tables: the look before, what is stored with the feed, and how to go on."""

import re

import orjson
import pytest
from world import work

from workers.broker.store import Store
from workers.errors import AccessDenied
from workers.push.convention import Convention, store_convention, stored_convention
from workers.recording.reader import Recording

TABLE = (
    "Nr;am;Betrag;Tage;Antwort\n1;31.12.2025 14:30;20,95 €;3.102;Ja\n2;01.02.2026;1,50 €;950;JA\n"
)
NAMED = ("--label", "Antwort", "--id", "Nr")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TABLE, encoding="cp1252")
    return path


def sent(store):
    found = store.call("XRANGE", store.keys.input, "-", "+")
    entries = [dict(zip(flat[::2], flat[1::2], strict=True)) for _, flat in found]
    return [(orjson.loads(entry[b"x"]), entry[b"y"].decode()) for entry in entries]


def test_a_dry_run_shows_each_column_and_sends_nothing(run, store, feed, table):
    code, _, err = run("push", feed, table, *NAMED, "--dry-run")
    assert (code, store.length(store.keys.input), stored_convention(store)) == (0, 0, None)
    assert "'20,95 €' is 20.95" in err
    assert "labels Ja 1, JA 1 are probably one class: --label-case lower joins them" in err
    assert re.search(r"^  Tage +number +0% +0.0%  '3.102' is 3102$", err, re.MULTILINE)
    assert err.endswith("2 rows can be pushed; none was, as --dry-run asks\n")


def test_what_one_table_proves_holds_for_the_next(run, store, feed, table):
    assert run("push", feed, table, *NAMED, "--label-case", "lower")[0] == 0
    known = stored_convention(store)
    assert (known.decimal, known.order, known.label_case) == (",", "dmy", "lower")
    assert store.length(store.keys.table) == 1
    table.write_text("Nr;am;Betrag;Tage;Antwort\n3;02.03.2026;1.000 €;3.102;NEIN\n")
    assert run("push", feed, table, *NAMED)[0] == 0
    assert sent(store)[2] == ({"am": "2026-03-02", "Betrag": 1000.0, "Tage": 3102.0}, "nein")
    assert sent(store)[:2] == [
        ({"am": "2025-12-31T14:30:00", "Betrag": 20.95, "Tage": 3102.0}, "ja"),
        ({"am": "2026-02-01", "Betrag": 1.5, "Tage": 950.0}, "ja"),
    ]
    table.write_text("Nr;am;Betrag;Tage;Antwort\n4;02.03.2026;19.95 €;3.102;NEIN\n")
    code, _, err = run("push", feed, table, *NAMED)
    assert (code, len(sent(store))) == (2, 3)
    assert (
        "line 2, row 1: Betrag is '19.95 €', but this feed's tables are read with a decimal" in err
    )


def test_an_answer_to_a_question_is_stored_with_the_feed(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("q;y\n3.102;a\n950;b\n")
    code, _, err = run("push", feed, path)
    assert (code, "say which with --decimal , or --decimal ." in err, sent(store)) == (2, True, [])
    assert run("push", feed, path, "--decimal", ",")[0] == 0
    assert run("push", feed, path)[0] == 0
    assert [x["q"] for x, _ in sent(store)] == [3102.0, 950.0] * 2
    assert run("verify", feed, "--input", path)[0] in (2, 4)  # no worker began the feed
    run("reset", feed, "--input", "--yes")
    assert stored_convention(store) is None


@pytest.mark.parametrize(("option", "read"), [
    ("--month-first", "2025-01-02"), ("--day-first", "2025-02-01"),
])  # fmt: skip
def test_the_order_of_a_date_is_an_option_and_labels_may_keep_their_case(
    run, store, feed, tmp_path, option, read
):
    path = tmp_path / "a.csv"
    path.write_bytes("at;y\n01/02/2025;É\n".encode("cp850"))
    options = (option, "--encoding", "cp850", "--label-case")
    assert run("push", feed, path, *options, "lower")[0] == 0
    assert run("push", feed, path)[0] == 0
    assert run("push", feed, path, "--label-case", "keep")[0] == 0
    assert sent(store) == [({"at": read}, "é"), ({"at": read}, "é"), ({"at": read}, "É")]


def test_a_proof_after_the_examined_rows_is_stored_as_well(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("q;r;y\n" + "1;2;a\n" * 1200 + "2,5;2;b\n")
    assert run("push", feed, path)[0] == 0
    assert stored_convention(store).decimal == ","


def test_a_plain_table_stores_nothing(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("q,y\n1,a\n2,b\n")
    assert run("push", feed, path)[0] == 0
    assert stored_convention(store) is None


def test_a_malformed_row_says_how_many_were_sent_and_how_to_go_on(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    lines = ["q;y", *(f"{i};a" for i in range(1300))]
    path.write_text("\n".join([*lines[:1201], "1;2;3", *lines[1201:]]))
    code, _, err = run("push", feed, path)
    assert code == 2
    assert "line 1202, row 1201: not 2 columns" in err
    assert "1,000 rows were pushed; correct the source, then go on with --skip 1000" in err
    path.write_text("\n".join(lines))
    assert run("push", feed, path, "--skip", "1000")[0] == 0
    assert [x["q"] for x, _ in sent(store)] == list(range(1300))


def test_a_producer_without_the_right_pushes_and_stores_nothing(store, monkeypatch):
    def denied(*_):
        raise AccessDenied("no")

    monkeypatch.setattr(Store, "call", denied)
    assert stored_convention(store) is None
    assert not store_convention(store, Convention(decimal=","))


def test_a_fork_and_a_restored_backup_keep_how_tables_are_written(
    run, redis_url, store, feed, table, tmp_path
):
    assert run("push", feed, table, *NAMED)[0] == 0
    known, saved = stored_convention(store), tmp_path / "a.sqlite"
    work(redis_url, feed, {}, 2)
    assert run("fork", feed, "--to", f"{feed}-fork")[0] == 0
    assert run("backup", feed, saved)[0] == 0
    with Store(redis_url, f"{feed}-fork") as fork:
        assert stored_convention(fork) == known
    run("reset", feed, "--input", "--yes")
    assert run("restore", feed, saved)[0] == 0
    assert stored_convention(store) == known
    store_convention(store, Convention(decimal="."))  # of a later table
    assert run("restore", feed, saved, "--yes")[0] == 0
    assert stored_convention(store) == Convention(decimal=".")


def test_a_damaged_convention_prevents_no_backup(run, redis_url, store, feed, table, tmp_path):
    run("push", feed, table, *NAMED)
    work(redis_url, feed, {}, 2)
    store.call("XADD", store.keys.table, "MAXLEN", "=", 1, "*", "p", "no JSON")
    assert run("backup", feed, tmp_path / "a.sqlite")[0] == 0
    with Recording.open(tmp_path / "a.sqlite") as recording:
        assert stored_convention(recording) is None


def test_rows_at_the_end_that_are_no_examples_are_told(run, store, feed, tmp_path):
    path = tmp_path / "a.csv"
    lines = ["Stand: heute", "q;r;y", *("1,5;2;a" for _ in range(1200)), "Summe;5;", "Ende;;"]
    path.write_text("\n".join(lines))
    code, _, err = run("push", feed, path)
    assert (code, len(sent(store))) == (0, 1200)
    assert "1 line above the header left out, from 'Stand: heute'" in err
    assert "  left out  line 1203, 'Summe'; line 1204, 'Ende'\n" in err
