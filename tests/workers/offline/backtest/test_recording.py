"""The file that every process reads holds the entries as they came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.errors import BadConfiguration
from workers.offline.backtest import history
from workers.offline.backtest.history import read, record

FIELDS = st.lists(st.binary(max_size=40), max_size=6)
ENTRIES = st.lists(st.tuples(st.sampled_from([b"", b"7-0"]), FIELDS), min_size=1, max_size=20)


@given(entries=ENTRIES, count=st.integers(1, 8))
def test_entries_come_back_as_they_were_in_batches_of_at_most_so_many(
    tmp_path_factory, entries, count
):
    path = tmp_path_factory.mktemp("recording") / "history"
    found = record(entries, path)
    batches = list(read(path, count))
    assert [entry for batch in batches for entry in batch] == entries
    assert {len(batch) for batch in batches[:-1]} <= {count}
    assert found.entries == len(entries)


def test_large_entries_end_a_batch_early(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "BATCH_BYTES", 100)
    record([(b"", [b"x", b"1" * 60])] * 5, tmp_path / "history")
    assert [len(batch) for batch in read(tmp_path / "history")] == [2, 2, 1]


def test_the_digest_tells_where_one_field_ends_and_the_next_begins(tmp_path):
    histories = ([[b"ab", b"c"]], [[b"a", b"bc"]], [[b"ab"], [b"c"]], [[b"abc"]])
    found = {
        record([(b"", fields) for fields in one], tmp_path / str(i)).digest
        for i, one in enumerate(histories)
    }
    assert len(found) == len(histories)


def test_a_history_without_entries_is_refused(tmp_path):
    with pytest.raises(BadConfiguration, match="no entries"):
        record([], tmp_path / "history")
