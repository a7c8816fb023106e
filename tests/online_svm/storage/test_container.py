"""State to bytes and back, and what the reader refuses."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import pack, unpack

ARRAYS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9._]{0,8}", fullmatch=True),
    st.sampled_from([np.float64, np.int64, np.bool_, np.uint8]).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    ),
    max_size=4,
)

GOOD = pack({"n": 1}, {"w": np.arange(3.0), "k": np.zeros((2, 0), dtype=np.int64)})


@given(ARRAYS)
def test_arrays_survive_bit_for_bit(arrays: dict[str, Any]) -> None:
    header, read = unpack(pack({"n": 3}, arrays))
    assert header["n"] == 3
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert read[name].shape == array.shape
        assert read[name].dtype == array.dtype
        assert read[name].tobytes() == array.tobytes()


def test_columns_of_a_transposed_array_come_back_in_their_order() -> None:
    array = np.arange(6.0).reshape(2, 3).T
    assert unpack(pack({}, {"w": array})).arrays["w"].tolist() == array.tolist()


def test_what_was_read_can_be_written_to_and_leaves_the_bytes_alone() -> None:
    unpack(GOOD).arrays["w"][0] = 7.0
    assert unpack(GOOD).arrays["w"].tolist() == [0.0, 1.0, 2.0]


def test_the_bytes_depend_on_the_state_alone_in_any_process() -> None:
    arrays = {"b": np.zeros(2), "a": np.ones(1), "__metadata": np.ones(1)}
    assert pack({"x": 1, "y": 2}, arrays) == pack({"y": 2, "x": 1}, dict(reversed(arrays.items())))
    code = (
        "import numpy as np; from online_svm.storage.state import pack; "
        "print(pack({'n': 1}, {name: np.ones(3) for name in 'abcdefgh'}).hex())"
    )
    process = partial(subprocess.run, [sys.executable, "-c", code], check=True, capture_output=True)
    found = {process(env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(found) == 1


def test_every_truncation_and_every_bit_flip_is_refused() -> None:
    for size in range(len(GOOD)):
        with pytest.raises(InvalidSnapshot):
            unpack(GOOD[:size])
    for position in range(len(GOOD)):
        for bit in range(8):
            damaged = bytearray(GOOD)
            damaged[position] ^= 1 << bit
            with pytest.raises(InvalidSnapshot):
                unpack(bytes(damaged))


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 8, GOOD], ids=["byte", "number", "container"])
def test_bytes_too_many_are_refused(extra: bytes) -> None:
    with pytest.raises(InvalidSnapshot, match="damaged"):
        unpack(GOOD + extra)


def forged(parts: Any, body: bytes = bytes(16)) -> bytes:
    """Return a container of any layout, true or not."""
    layout = json.dumps({"__metadata__": {"header": '00000000{"format": 2}'}} | parts)
    return len(layout).to_bytes(8, "little") + layout.encode() + body


def layout(shape: Any, dtype: str = "F64", stop: int = 16) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": [0, stop]}}


@pytest.mark.parametrize(
    "parts",
    [
        layout([-1]),
        layout([-1, -2]),
        layout([1 << 62, 4]),  # whose product is 0 in 64 bits
        layout([10**13], stop=8 * 10**13),
        layout([0, 1 << 62, 1 << 62], stop=0),
        layout(["2"]),
        layout([2], dtype="O"),
        layout([4], dtype="F32"),
        layout([2]) | {"v": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}},
        {"w": 1},
        {"w": {"dtype": "F64", "shape": [2]}},
    ],
    ids=str,
)
def test_a_layout_that_cannot_be_true_or_cannot_be_stored_is_refused(parts: Any) -> None:
    with pytest.raises(InvalidSnapshot):
        unpack(forged(parts))


@pytest.mark.parametrize(
    "notes",
    [
        None, {"other": "00000000{}"}, {"header": ""}, {"header": "00000000" + "[" * 100_000},
        {"header": "00000000[]"}, {"header": "no sum"},
        {"header": '00000000{"format": 2, "n": NaN}'},
    ],
    ids=lambda notes: str(notes)[:40],
)  # fmt: skip
def test_a_container_without_our_header_is_refused(notes: Any) -> None:
    with pytest.raises(InvalidSnapshot):
        unpack(save({"w": np.zeros(2)}, notes))


def test_another_program_s_bytes_are_refused() -> None:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("header.json", '{"format": 1}')
    for data in (target.getvalue(), pickle.dumps({"n": 1}), b"", b"\xff" * 64):
        with pytest.raises(InvalidSnapshot, match="damaged"):
            unpack(data)


def test_what_cannot_be_read_back_is_refused_by_name() -> None:
    with pytest.raises(InvalidSnapshot, match="format 3 is not 2"):
        unpack(pack({"format": 3}, {}))
    with pytest.raises(InvalidSnapshot, match="float32"):
        pack({}, {"w": np.zeros(1, dtype=np.float32)})
