"""Archives of stored members are those of `zipfile`, byte for byte; nothing else is read."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.storage import archive
from online_svm.storage.snapshot import pack, unpack

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0/\\"), min_size=1, max_size=12)
MEMBERS = st.dictionaries(NAMES, st.lists(st.binary(max_size=40), max_size=3), max_size=5)


def by_zipfile(members: dict[str, list[bytes]]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as written:
        for name, parts in members.items():
            written.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), b"".join(parts))
    return target.getvalue()


@given(MEMBERS)
def test_what_is_written_is_what_zipfile_writes_and_reads(members: dict[str, list[bytes]]) -> None:
    data = archive.write(members)
    assert data == by_zipfile(members)
    found = archive.read(data)
    assert found is not None
    assert {name: bytes(part) for name, part in found.items()} == {
        name: b"".join(parts) for name, parts in members.items()
    }


def test_an_archive_with_any_bit_changed_cut_or_added_is_not_read() -> None:
    good = archive.write({"header.json": [b"{}"], "w.npy": [bytes(range(40))], "v.npy": [b""]})
    assert good is not None
    for position in range(len(good)):
        for bit in range(8):
            damaged = bytearray(good)
            damaged[position] ^= 1 << bit
            assert archive.read(bytes(damaged)) is None
        assert archive.read(good[:position]) is None
        assert archive.read(good[position + 1 :]) is None
        assert archive.read(good[:position] + b"\0" + good[position:]) is None


def test_archives_that_zipfile_reads_otherwise_are_left_to_it() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as written:
        written.writestr("header.json", '{"format": 1, "n": 3}')
        written.comment = b"made elsewhere"
    data = target.getvalue()
    assert archive.read(data) is None
    assert unpack(data).header["n"] == 3


@pytest.mark.parametrize(("name", "value"), [("LIMIT", 100), ("_MOST", 1)])
def test_members_beyond_the_plain_form_are_written_by_zipfile(
    monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    arrays = {"w": np.arange(30.0), "v": np.ones((2, 3), dtype=np.bool_)}
    usual = pack({"n": 1}, arrays)
    monkeypatch.setattr(archive, name, value)
    assert archive.write({"w": [bytes(200)], "v": [b""]}) is None
    assert pack({"n": 1}, arrays) == usual


def test_a_state_is_written_as_numpy_and_zipfile_write_it() -> None:
    arrays = {
        "a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 3), dtype=np.int64),
        "c": np.array(True), "d": np.frombuffer(b"bytes", dtype=np.uint8),
        "e": np.arange(6.0).reshape(2, 3).T, "f": np.arange(9)[::2],
    }  # fmt: skip
    members = {"header.json": [b'{"format": 1, "n": 1}']}
    for name, array in arrays.items():
        target = io.BytesIO()
        np.save(target, np.ascontiguousarray(array).reshape(array.shape))
        members[f"{name}.npy"] = [target.getvalue()]
    assert pack({"n": 1}, arrays) == by_zipfile(members)


def test_arrays_of_a_state_are_copies_and_its_bytes_are_not() -> None:
    data = pack({}, {"w": np.arange(3.0), "part": np.frombuffer(b"bytes", dtype=np.uint8)})
    _, arrays = unpack(data)
    assert arrays["w"].flags.owndata
    assert arrays["w"].flags.writeable
    assert not arrays["part"].flags.owndata
    assert arrays["part"].tobytes() == b"bytes"
