"""State to bytes and back, and what the reader refuses."""

import io
import pickle
import struct
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from online_svm.errors import InvalidSnapshot
from online_svm.storage import snapshot
from online_svm.storage.snapshot import pack, unpack

ARRAYS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9._]{0,8}", fullmatch=True),
    st.sampled_from([np.float64, np.int64, np.bool_, np.uint8]).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    ),
    max_size=4,
)


@given(ARRAYS)
def test_arrays_survive_bit_for_bit(arrays: dict[str, Any]) -> None:
    header, read = unpack(pack({"n": 3}, arrays))
    assert header["n"] == 3
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert read[name].shape == array.shape
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()


def test_the_bytes_depend_on_the_state_alone() -> None:
    arrays = {"b": np.zeros(2), "a": np.ones(1)}
    assert pack({"x": 1, "y": 2}, arrays) == pack({"y": 2, "x": 1}, dict(reversed(arrays.items())))


def test_every_truncation_and_bit_flip_is_refused_or_harmless() -> None:
    good = pack({"n": 1}, {"w": np.arange(3.0)})
    for size in range(len(good)):
        with pytest.raises(InvalidSnapshot):
            unpack(good[:size])
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 0x10
        try:
            header, arrays = unpack(bytes(damaged))
        except InvalidSnapshot:
            continue
        assert header["n"] == 1  # only fields that zip readers ignore (times, flags) may pass
        assert all(array.nbytes == 24 for array in arrays.values())


def _archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return target.getvalue()


HEADER = b'{"format": 1}'


def _npy(header: str) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"w.npy": b""}, "no readable header"),
        ({"header.json": b"[" * 100_000}, "no readable header"),
        ({"header.json": b'{"format": 2}'}, "format 2"),
        ({"header.json": HEADER, "evil.pkl": pickle.dumps(0)}, "not an array"),
        ({"header.json": HEADER, "w.npy": pickle.dumps(0)}, "array header"),
        (
            {
                "header.json": HEADER,
                "w.npy": _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10**13,), }"),
            },
            "array header",
        ),
        (
            {
                "header.json": HEADER,
                "w.npy": _npy(
                    "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,), }"
                ),
            },
            "not what it holds",
        ),
        (
            {
                "header.json": HEADER,
                "w.npy": _npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")
                + b"x" * 8,
            },
            "not stored",
        ),
    ],
)  # fmt: skip
def test_a_forged_archive_is_refused(members: dict[str, bytes], message: str) -> None:
    with pytest.raises(InvalidSnapshot, match=message):
        unpack(_archive(members))


def test_a_compressed_archive_is_refused_before_it_is_expanded() -> None:
    bomb = _archive({"header.json": HEADER, "w.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidSnapshot, match="compressed"):
        unpack(bomb)


def test_a_type_that_cannot_be_read_back_is_not_written() -> None:
    with pytest.raises(InvalidSnapshot, match="float32"):
        pack({}, {"w": np.zeros(1, dtype=np.float32)})


@pytest.mark.parametrize("spaces", [0, 500])
def test_an_array_header_that_was_met_before_is_parsed_once_and_a_long_one_is_not_kept(
    spaces: int,
) -> None:
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }" + b" " * spaces + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("header.json", '{"format": 1}')
        for number in range(3):
            body = np.arange(6.0) + number
            archive.writestr(f"w{number}.npy", member + body.tobytes())
    snapshot._array_header.cache_clear()
    _, arrays = unpack(target.getvalue())
    for number in range(3):
        expected = np.arange(6.0).reshape(2, 3) + number
        assert arrays[f"w{number}"].tobytes() == expected.tobytes()
        assert arrays[f"w{number}"].shape == (2, 3)
    found = snapshot._array_header.cache_info()
    assert (found.hits, found.currsize) == ((0, 0) if spaces else (2, 1))


def test_a_member_that_is_said_to_lie_beyond_all_files_is_refused() -> None:
    name, places = b"header.json", struct.pack("<HHQ", 1, 8, 2**64 - 1)
    entry = struct.pack(
        "<4s6H3L5H2L", b"PK\1\2", 45, 45, 0, 0, 0, 33, 0, 5, 5, len(name), len(places), 0, 0, 0, 0,
        2**32 - 1,
    )  # fmt: skip
    directory = entry + name + places
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), 100, 0)
    with pytest.raises(InvalidSnapshot, match="damaged"):
        unpack(bytes(100) + directory + end)
