"""Frames: what goes in comes out, and bytes that do not add up are refused."""

import json
from typing import Any

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.storage import frames

WHOLE = frames.join({"n": 3}, {"w": np.arange(3.0), "k": np.zeros((2, 0), dtype=np.int64)})


def framed(layout: Any, body: bytes) -> bytes:
    """Return a frame of any layout, true or not."""
    text = json.dumps([{}, layout]).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_header_and_arrays_come_back_as_they_were() -> None:
    header, arrays = frames.split(WHOLE)
    assert header == {"n": 3}
    assert [(k, a.dtype.str, a.shape, a.tolist()) for k, a in arrays.items()] == [
        ("w", "<f8", (3,), [0.0, 1.0, 2.0]),
        ("k", "<i8", (2, 0), [[], []]),
    ]


@pytest.mark.parametrize("extra", [b"\0", b"\0" * 8, WHOLE], ids=["byte", "number", "frame"])
def test_bytes_that_the_layout_does_not_account_for_are_refused(extra: bytes) -> None:
    with pytest.raises(InvalidSnapshot, match=f"{len(WHOLE + extra)} bytes"):
        frames.split(WHOLE + extra)


@pytest.mark.parametrize("kept", range(len(WHOLE)))
def test_a_frame_that_was_cut_short_is_refused(kept: int) -> None:
    with pytest.raises(InvalidSnapshot):
        frames.split(WHOLE[:kept])


@pytest.mark.parametrize(
    "layout",
    [
        [["w", "<f8", [-1]]],  # numpy would take all that is left
        [["w", "<f8", [-1, -2]]],
        [["w", "<f8", [1 << 62, 4]]],  # whose product is 0 in 64 bits
        [["w", "O", [2]]],
        [["w", "nonsense", [2]]],
        [["w", "<f8", ["2"]]],
        [["w", "<f8"]],
        {"w": 1},
        None,
    ],
    ids=str,
)
def test_a_layout_that_cannot_be_true_is_refused(layout: Any) -> None:
    with pytest.raises(InvalidSnapshot):
        frames.split(framed(layout, bytes(16)))
