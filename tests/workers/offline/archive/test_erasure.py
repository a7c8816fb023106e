"""What is erased from a feed leaves its archive too, and the rest can still be verified."""

import pytest
from system_tools import package

pa = package("pyarrow", "pip install 'online-svm[archive]'")

from archived_feed import (  # noqa: E402
    KEPT,
    PERSON,
    TRACES,
    answering,
    archive,
    entry,
    go_on,
    push,
    push_with_person,
    rows_of,
    traces_in,
)

from workers.admin.erasure import erase  # noqa: E402
from workers.admin.reset import reset  # noqa: E402
from workers.errors import BadConfiguration  # noqa: E402
from workers.offline.archive.archiver import Archiver  # noqa: E402
from workers.offline.archive.erasure import ErasableArchive  # noqa: E402
from workers.offline.archive.layout import feed_directory, locked  # noqa: E402
from workers.offline.archive.reader import Archive  # noqa: E402
from workers.offline.archive.verification import verify_archive  # noqa: E402
from workers.stop import Stop  # noqa: E402


@pytest.fixture
def answered(embedded_url, feed, tmp_path):
    """A feed with 100 answers in an archive, the fiftieth a person's."""
    with answering(embedded_url, feed, **KEPT) as (store, answer, _):
        push_with_person(store)
        answer()
        archive(store, tmp_path)
        yield store


def erase_with(store, root, person=PERSON):
    directory = feed_directory(root, store.keys.feed)
    with locked(directory):
        return erase(store, person, ErasableArchive(Archive(directory)))


def of_archive(store, root):
    return Archive(feed_directory(root, store.keys.feed))


def contents(root):
    """Return the bytes of every value in every file, whatever its compression."""
    found = []
    for path in root.rglob("*.parquet"):
        with path.open("rb") as source:
            columns = pa.parquet.read_table(source).columns
        found += [repr(column.to_pylist()).encode() for column in columns]
        found.append(path.read_bytes())  # statistics and names of files too
    return b"\n".join(found)


def test_no_file_has_a_trace(answered, tmp_path):
    assert traces_in(contents(tmp_path)) == [*TRACES[:2]]
    found = erase_with(answered, tmp_path)
    assert (found.entries, found.archived, found.unlinked) == (1, 3, 0)
    assert traces_in(contents(tmp_path)) == []
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_rest_is_recomputed_or_checked_by_the_digest(answered, tmp_path):
    erase_with(answered, tmp_path)
    go_on(answered, 100, 140, **KEPT)
    archive(answered, tmp_path)
    go_on(answered, 140, 160, **KEPT)
    found = verify_archive(answered, of_archive(answered, tmp_path))
    assert found.is_identical
    # 50 before the person's, 49 after it that were learned with it, 60 since the erasure.
    assert (found.erased, found.answers, found.chained, found.unlinked) == (1, 110, 49, 0)


@pytest.mark.parametrize("seq", [10, 70, 120])
def test_a_changed_answer_is_found_wherever_it_is(answered, tmp_path, seq):
    erase_with(answered, tmp_path)
    go_on(answered, 100, 140, **KEPT)
    archive(answered, tmp_path)
    at = entry(seq)[0]
    for path in (feed_directory(tmp_path, answered.keys.feed) / "kind=answers").rglob("*.parquet"):
        with path.open("rb") as source:
            table = pa.parquet.read_table(source)
        entries, payloads = (table.column(name).to_pylist() for name in ("entry", "payload"))
        if at in entries:
            payloads[entries.index(at)] = payloads[entries.index(at)].replace('"seq":', '"seq": ')
            place = table.schema.get_field_index("payload")
            field = table.schema.field(place)
            pa.parquet.write_table(table.set_column(place, field, pa.array(payloads)), path)
    assert not verify_archive(answered, of_archive(answered, tmp_path)).is_identical


def test_what_an_archiver_holds_is_not_written_once_it_is_erased(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed, **KEPT) as (store, answer, _):
        push(store, 0, 30)
        answer()
        directory = feed_directory(tmp_path, feed)
        with locked(directory):
            archiver = Archiver(store, directory)
            archiver._read(Stop(), b"+")
            erase(store, "id-7")
            archiver._flush()
        seqs = [row["seq"] for row in rows_of(tmp_path, feed, "answers")]
        assert seqs == [i for i in range(30) if i != 7]
        assert archiver.done.answers == 29
        archive(store, tmp_path)
        assert verify_archive(store, Archive(directory)).is_identical


@pytest.mark.parametrize("is_there", [True, False])
def test_of_an_archive_of_an_earlier_feed_only_its_rows_go(answered, tmp_path, is_there):
    """The present feed never had these entries: it is not learned again, and counts none."""
    store = answered
    reset(store, with_input=True, force=True)
    if is_there:
        go_on(store, 100, 130, **KEPT)
    before = store.call("HGETALL", store.keys.state)
    found = erase_with(store, tmp_path)
    assert (found.entries, found.archived, found.learned) == (0, 3, None)
    assert PERSON.encode() not in contents(tmp_path)
    assert store.call("HGETALL", store.keys.state) == before
    assert store.call("EXISTS", store.keys.erased) == 0
    with pytest.raises(BadConfiguration, match=r"earlier feed .* has nothing of this id"):
        erase_with(store, tmp_path)


def test_the_commands_say_what_was_erased_and_what_verify_knows(answered, tmp_path, run_command):
    def run(command, *arguments):
        return run_command(command, answered.keys.feed, *arguments, "--redis", answered.url)

    forget = ("erase", "--id", PERSON, "--archive", tmp_path, "--yes")
    code, _, said = run(*forget)
    told = f"feed '{answered.keys.feed}' erased, and 3 rows of its archive; it goes on from "
    assert (code, told in said, PERSON in said) == (0, True, False), said
    code, out, _ = run("verify", "--input", tmp_path)
    told = "1 entry erased: not recomputable; 49 answers after the first one checked by the digest"
    assert (code, f"{told} alone" in out) == (0, True)
    code, _, said = run(*forget)
    assert (code, "keeps nothing of this id" in said) == (2, True)
