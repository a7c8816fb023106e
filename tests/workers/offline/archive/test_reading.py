"""What reads a feed reads its archive too, and finds the same there."""

from itertools import chain

import pytest
from system_tools import package

pa = package("pyarrow", "pip install 'online-svm[archive]'")

from archived_feed import answering, archive, go_on, push, stream  # noqa: E402

from workers.admin.erasure import erase  # noqa: E402
from workers.admin.verify import verify  # noqa: E402
from workers.broker import feed_reader  # noqa: E402
from workers.broker.feed_reader import FeedReader  # noqa: E402
from workers.broker.store import Store  # noqa: E402
from workers.cli.backtest import _archived  # noqa: E402
from workers.config.settings import WorkerSettings  # noqa: E402
from workers.dashboard.past_run import (  # noqa: E402
    NothingKept,
    read_archive,
    read_past,
)
from workers.errors import BadConfiguration  # noqa: E402
from workers.offline.archive import reader  # noqa: E402
from workers.offline.archive.layout import feed_directory, find, is_archive  # noqa: E402
from workers.offline.archive.reader import Archive  # noqa: E402
from workers.offline.archive.verification import verify_archive  # noqa: E402
from workers.offline.backtest.history import FeedHistory, record  # noqa: E402
from workers.session.replay import Replay  # noqa: E402


@pytest.fixture
def answered(embedded_url, feed, tmp_path):
    """A feed with 100 answers, all in the archive `cold`."""
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 100)
        answer()
        archive(store, tmp_path / "cold")
        yield store


@pytest.fixture
def archived(answered, tmp_path):
    return Archive(feed_directory(tmp_path / "cold", answered.keys.feed))


@pytest.fixture
def run(run_command, embedded_url):
    return lambda *arguments: run_command(*arguments, "--redis", embedded_url)


def change(part, column, place, value):
    """Change one value of a part."""
    with part.open("rb") as source:
        table = pa.parquet.read_table(source)
    values = table.column(column).to_pylist()
    values[place] = value
    at = table.schema.get_field_index(column)
    changed = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.types[at]))
    pa.parquet.write_table(changed, part)


def test_a_page_of_any_span_is_that_of_the_stream(answered, archived):
    entries = stream(answered, "input")
    ids = [at for at, _ in entries]
    for begin, end in ((0, 99), (3, 4), (17, 80), (98, 99)):
        found = list(chain(*archived.inputs(ids[begin], ids[end])))
        assert found == entries[begin + 1 : end + 1]
        tail = archived.tail("answers", ("seq",), 7, ids[begin], ids[end])
        assert [row[0] for _, row in tail] == list(range(begin + 1, end + 1))[-7:]


def test_the_history_of_an_archive_is_that_of_its_feed(answered, archived, run, tmp_path):
    given = WorkerSettings()
    ours, fields = _archived(str(archived.directory), given)
    theirs = FeedHistory(answered)
    assert record(fields, tmp_path / "a").digest == record(theirs.entries(), tmp_path / "b").digest
    assert ours.agreed == theirs.settings(given).agreed
    code, _, said = run("backtest", archived.directory, "--label", "y")
    assert (code, "--label is for a file" in said) == (2, True)


def test_a_feed_is_verified_from_its_start_whatever_redis_keeps(answered, archived, run):
    answered.call("XTRIM", answered.keys.out, "MAXLEN", "=", 5)
    answered.call("XTRIM", answered.keys.met, "MAXLEN", "=", 1)
    answered.call("XTRIM", answered.keys.input, "MAXLEN", "=", 5)
    found = verify_archive(answered, archived)
    assert found.is_identical
    assert found.has_ids
    assert (found.answers, found.reports, found.trimmed) == (100, 9, 0)
    assert found.end.digest == answered.state().position.digest
    code, out, said = run("verify", answered.keys.feed, "--input", archived.directory.parent)
    assert (code, out.splitlines()[-1]) == (0, "identical"), said


def test_what_came_after_the_archive_is_verified_from_redis(answered, archived):
    go_on(answered, 100, 150)
    found = verify_archive(answered, archived)
    assert found.is_identical
    assert found.answers == 150
    assert verify(answered).is_identical


@pytest.mark.parametrize("begins", [0, 60])
def test_what_is_archived_and_trimmed_meanwhile_is_verified_too(
    embedded_url, feed, tmp_path, monkeypatch, begins
):
    """A worker that waits for its archive trims what is on disk, also while it is verified."""
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 60)
        answer()
        archive(store, tmp_path)
        push(store, 60, 120)
        answer()
    recompute = Replay.answer

    def meanwhile(self, entries):
        found = recompute(self, entries)
        if self.position.seq >= begins and not done:
            done.append(archive(store, tmp_path).answers)
            for key in (store.keys.input, *store.keys.outputs):
                store.call("XTRIM", key, "MAXLEN", "=", 0)
        return found

    done = []
    monkeypatch.setattr(Replay, "answer", meanwhile)
    monkeypatch.setattr(feed_reader, "PAGE", 20)
    monkeypatch.setattr(FeedReader.pages, "__defaults__", (b"+", 20))
    monkeypatch.setattr(reader, "PAGE_ROWS", 20)
    with Store(embedded_url, feed) as store:
        found = verify_archive(store, Archive(tmp_path))
    assert done == [60]
    assert (found.is_identical, found.answers) == (True, 120)


def test_erased_entries_that_the_archive_still_has_are_named(answered, archived):
    erase(answered, "id-7")
    with pytest.raises(BadConfiguration, match="has 1 answers that were erased from the feed"):
        verify_archive(answered, archived)


def test_a_directory_of_several_archives_is_searched_for_that_of_the_feed(
    answered, archived, run, tmp_path, embedded_url
):
    other = f"{answered.keys.feed}-other"
    with answering(embedded_url, other) as (store, answer, _):
        push(store, 0, 20)
        answer()
        archive(store, tmp_path / "cold")
    code, out, said = run("verify", other, "--input", tmp_path / "cold")
    assert (code, out.splitlines()[-1]) == (0, "identical"), said
    code, _, said = run("report", tmp_path / "cold")
    assert (code, "name one of them" in said) == (2, True)
    code, _, said = run("erase", other, "--id", "id-3", "--archive", tmp_path / "cold", "--yes")
    assert (code, "1 entry of feed" in said) == (0, True), said


def test_the_directory_of_a_feed_may_be_named_to_go_on_with(answered, archived, run, tmp_path):
    code, _, said = run("export", answered.keys.feed, "--to", archived.directory)
    assert (code, f"0 answers added to {archived.directory}" in said) == (0, True)
    code, _, said = run("export", "another", "--to", archived.directory)
    assert (code, "feed 'another' has no answers yet" in said) == (2, True)
    assert not list(archived.directory.glob("feed=*"))
    # Nothing is said to be added where an error was the first.
    code, _, said = run("export", answered.keys.feed, "--to", tmp_path / "second")
    assert (code, "has another consumer" in said, "added" in said) == (2, True, False)


@pytest.mark.parametrize(("kind", "column"), [("answers", "payload"), ("input", "fields")])
def test_a_changed_row_is_found(answered, archived, kind, column):
    part = sorted((archived.directory / f"kind={kind}").glob("*/*"))[4]
    value = '{"v":2}' if column == "payload" else [b"x", b"[9,9]", b"y", b"b"]
    change(part, column, 2, value)
    found = verify_archive(answered, archived)
    assert not found.is_identical
    assert found.n_differences


def test_an_archive_of_another_feed_or_that_begins_later_cannot_verify_it(
    archived, embedded_url, feed, tmp_path
):
    with answering(embedded_url, f"{feed}-other") as (store, answer, _):
        push(store, 0, 40)
        answer()
        with pytest.raises(BadConfiguration, match="says nothing of"):
            verify_archive(store, archived)
        store.call("XTRIM", store.keys.out, "MAXLEN", "=", 20)
        archive(store, tmp_path)
        with pytest.raises(BadConfiguration, match="does not begin with the first entry"):
            verify_archive(store, Archive(tmp_path / f"feed={feed}-other"))


@pytest.mark.parametrize(("since", "until"), [(None, None), (1, 3), (2, None), (None, 2)])
def test_the_report_of_an_archive_is_that_of_the_feed(answered, archived, since, until):
    first = float(stream(answered, "out")[0][0].split(b"-")[0])
    span = [None if day is None else first + day * 86_400_000 for day in (since, until)]
    ours, theirs = read_archive(archived, *span), read_past(answered, *span)
    assert ours.reports == theirs.reports
    assert ours.answers == theirs.answers
    assert (ours.feed, ours.alarms) == (theirs.feed, theirs.alarms)
    assert ours.answers[0].truth.is_kept


def test_the_command_writes_a_report_of_an_archive_where_it_has_rows(archived, run, tmp_path):
    code, out, said = run("report", archived.directory, "--out", tmp_path / "r.html")
    assert code == 0, said
    assert f"The reports of feed {archived.identity.feed}" in out
    assert (tmp_path / "r.html").stat().st_size > 10_000
    with pytest.raises(NothingKept, match="holds no answers and no reports of this time"):
        read_archive(archived, 0.0, 1.0)


def test_a_directory_with_several_archives_asks_for_one(archived, tmp_path):
    other = tmp_path / "cold" / "feed=other"
    other.mkdir()
    (other / "archive.json").write_text("{}")
    with pytest.raises(BadConfiguration, match="name one of them: feed=feed-"):
        find(tmp_path / "cold")
    with pytest.raises(BadConfiguration, match="does not say what this archive is of"):
        Archive(other)
    assert is_archive(tmp_path / "cold")
    assert not is_archive(tmp_path)
