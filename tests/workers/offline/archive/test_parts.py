"""What an archive does with parts that another program, another version or a disk made."""

import json

import pytest
from system_tools import package

pa = package("pyarrow", "pip install 'online-svm[archive]'")
pq = package("pyarrow.parquet", "pip install 'online-svm[archive]'")

from archived_feed import DAY, answering, archive, go_on, push, rows_of  # noqa: E402

from workers.errors import BadConfiguration  # noqa: E402
from workers.offline.archive import writer  # noqa: E402
from workers.offline.archive.layout import IDENTITY, feed_directory  # noqa: E402
from workers.offline.archive.reader import Archive  # noqa: E402
from workers.offline.archive.verification import verify_archive  # noqa: E402


@pytest.fixture
def answered(embedded_url, feed, tmp_path):
    """A feed with 30 archived answers of two days."""
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 30)
        answer()
        archive(store, tmp_path)
        yield store


def newest(store, root, kind):
    place = feed_directory(root, store.keys.feed) / f"kind={kind}"
    return max(place.glob("*/*.parquet"), key=lambda part: part.parent.name)


def table_of(part):
    with part.open("rb") as source:
        return pq.read_table(source)


DAMAGES = {
    "cut off": (lambda part: part.write_bytes(part.read_bytes()[:-40]), "cannot be read"),
    "empty": (lambda part: part.write_bytes(b""), "cannot be read"),
    "foreign": (
        lambda part: pq.write_table(pa.table({"entry": [7]}), part),
        "is no part of an archive: it has no column 'entry'",
    ),
    "without rows": (
        lambda part: pq.write_table(table_of(part).slice(0, 0), part),
        "is no part of an archive: it has no rows",
    ),
    "a directory": (lambda part: (part.unlink(), part.mkdir()), "cannot be read"),
}


@pytest.mark.parametrize("kind", ["answers", "input", "labels"])
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_last_part_is_named_and_nothing_is_written(answered, tmp_path, kind, damage):
    break_it, said = DAMAGES[damage]
    part = newest(answered, tmp_path, kind)
    break_it(part)
    go_on(answered, 30, 36)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(BadConfiguration, match=said) as error:
        archive(answered, tmp_path)
    assert str(part) in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


def test_a_foreign_or_damaged_part_is_named_by_those_who_read(answered, tmp_path):
    part = newest(answered, tmp_path, "answers")
    pq.write_table(pa.table({"other": ["x"]}), part)
    with pytest.raises(BadConfiguration, match=rf"{part.name}: is no part of an archive"):
        list(Archive(tmp_path).payloads("answers"))
    part.write_bytes(b"PAR1 no")
    with pytest.raises(BadConfiguration, match=rf"{part.name}: cannot be read"):
        list(Archive(tmp_path).payloads("answers"))


def test_a_last_part_that_was_lost_is_written_again(answered, tmp_path):
    newest(answered, tmp_path, "answers").unlink()
    assert archive(answered, tmp_path).answers > 0
    assert verify_archive(answered, Archive(tmp_path)).is_identical


def test_a_part_with_further_columns_stays_as_it_is(answered, tmp_path):
    """A newer version may have written it; what comes goes to a part of its own."""
    part = newest(answered, tmp_path, "answers")
    table = table_of(part)
    pq.write_table(table.append_column("more", pa.array([1] * len(table))), part)
    written = part.read_bytes()
    go_on(answered, 30, 36)
    archive(answered, tmp_path)
    assert part.read_bytes() == written
    assert len(list(part.parent.iterdir())) == 2
    seqs = [row["seq"] for row in rows_of(tmp_path, answered.keys.feed, "answers")]
    assert seqs == [*range(36)]
    assert verify_archive(answered, Archive(tmp_path)).is_identical


def test_an_archive_of_an_earlier_version_is_read_and_continued(answered, tmp_path):
    """It names the libraries that computed the answers, which bind nothing any more."""
    archive(answered, tmp_path)
    path = feed_directory(tmp_path, answered.keys.feed) / IDENTITY
    assert "environment" not in path.read_text()
    earlier = json.dumps(json.loads(path.read_text()) | {"environment": '{"library":"0.1.0"}'})
    path.write_text(earlier)
    go_on(answered, 30, 36)
    archive(answered, tmp_path)
    assert path.read_text() == earlier
    seqs = [row["seq"] for row in rows_of(tmp_path, answered.keys.feed, "answers")]
    assert seqs == [*range(36)]
    assert verify_archive(answered, Archive(tmp_path)).is_identical


def test_an_archive_of_a_newer_version_asks_for_it(answered, tmp_path):
    path = feed_directory(tmp_path, answered.keys.feed) / IDENTITY
    path.write_text(json.dumps({"format": 2, "feeds": ["a", "b"]}))
    with pytest.raises(BadConfiguration, match="has format 2, this version knows 1: upgrade"):
        archive(answered, tmp_path)


def test_a_day_is_sorted_out_once_however_many_there_are(embedded_url, feed, tmp_path, monkeypatch):
    """A producer chooses the IDs, and so the days: 20,000 rows may be of 20,000 days."""
    calls, day_of = [], writer.day_of

    def counted(entry_id):
        calls.append(entry_id)
        return day_of(entry_id)

    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 30, step=DAY)
        answer()
        monkeypatch.setattr(writer, "day_of", counted)
        archive(store, tmp_path)
    rows = sum(
        len(rows_of(tmp_path, feed, kind)) for kind in ("input", "answers", "labels", "reports")
    )
    assert len(calls) <= rows
