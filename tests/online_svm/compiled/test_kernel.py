"""Kernels: the level of the processor, and every kernel's bytes as its first version had them."""

import platform
from pathlib import Path

import pytest
from kernel_digests import AREAS, FIRST, INPUTS, cases, digest, recorded

from online_svm.compiled.kernel import LIBRARY

CPUINFO = Path("/proc/cpuinfo")
V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
V4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not CPUINFO.exists(), reason="Linux on x86-64 has this file"
)
def test_the_highest_level_is_found_for_any_compiler() -> None:
    (line, *_) = (line for line in CPUINFO.read_text().splitlines() if line.startswith("flags"))
    flags = set(line.split())
    expected = "v4" if flags >= V3 | V4 else "v3" if flags >= V3 else "v1"
    assert LIBRARY.processor_level() == expected


EVERY_CASE = [(area, name) for area in AREAS for name in sorted(cases(area))]


@pytest.mark.parametrize(("area", "name"), EVERY_CASE)
def test_a_kernel_gives_the_recorded_bytes(area: str, name: str) -> None:
    assert digest(cases(area)[name], FIRST) == recorded(area, FIRST)[name]


@pytest.mark.slow
@pytest.mark.parametrize(("area", "name"), EVERY_CASE)
def test_a_kernel_gives_the_recorded_bytes_for_a_thousand_inputs(area: str, name: str) -> None:
    assert digest(cases(area)[name]) == recorded(area)[name]


@pytest.mark.parametrize("inputs", [FIRST, INPUTS])
@pytest.mark.parametrize("area", AREAS)
def test_no_recorded_digest_is_left_unchecked(area: str, inputs: int) -> None:
    assert sorted(recorded(area, inputs)) == sorted(cases(area))
