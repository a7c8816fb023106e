"""The multiply-add of the Windows wheel is exact on processors that have no instruction for it.

The lowest level calls a routine of Zig's library there. It is compiled as for the wheel, mapped
into this process and called: it needs nothing of Windows.
"""

import ctypes
import mmap
import os
import platform
import subprocess
from fractions import Fraction
from itertools import product
from math import copysign, inf, isfinite, isinf, isnan, nan

import numpy as np
import pytest
from system_tools import package

from scripts.building.compiler import FLAGS, X86_LEVELS, ZIG_LINK_FLAGS, architecture, zig
from scripts.building.kernels import PACKAGE, ROOT
from scripts.building.targets import TARGETS

SOURCE = """
#include "compiled/floats.h"
#define SHOWN __declspec(dllexport)
SHOWN double of_doubles(double a, double b, double c) { return multiply_add(a, b, c); }
SHOWN float of_floats(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
"""
SPECIAL = (0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.0**-1022, 1e308, -1e308, inf, -inf, nan)


@pytest.fixture(scope="module")
def routines(tmp_path_factory):
    """Compile the multiply-add for Windows at the lowest level, and load it."""
    package("ziglang", "pip install ziglang")
    place, target, command = tmp_path_factory.mktemp("windows"), TARGETS["win_amd64"], zig()
    source, library = place / "multiply_add.c", place / "multiply_add.dll"
    source.write_text(SOURCE)
    flags = [*FLAGS, *target.compile_flags[:2], *architecture(command, X86_LEVELS["v1"])]
    call = [*command, *flags, f"-I{PACKAGE}", *target.link_flags, *ZIG_LINK_FLAGS]
    call += ["-o", library, source]
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(place), "ZIG_LOCAL_CACHE_DIR": str(place)}
    subprocess.run(call, check=True, cwd=ROOT, env=os.environ | cache, timeout=540)
    return loaded(library)


def loaded(library):
    """Map the sections of a Windows library, and return its two functions."""
    from lief import PE  # takes a second to load, and most runs leave these tests out

    binary = PE.parse(str(library))
    image = mmap.mmap(-1, binary.optional_header.sizeof_image + 4096, prot=7)
    for section in binary.sections:
        content = bytes(section.content)
        image[section.virtual_address : section.virtual_address + len(content)] = content
    base = ctypes.addressof(ctypes.c_char.from_buffer(image))
    addresses = {entry.name: base + entry.address for entry in binary.get_export().entries}
    free, found = binary.optional_header.sizeof_image, {"image": image}  # else it is unmapped
    for name, kind in (("of_doubles", ctypes.c_double), ("of_floats", ctypes.c_float)):
        # The caller gives 32 bytes of the stack to a function on Windows. Numbers are passed alike.
        code = bytes.fromhex("4883ec2848b8") + addresses[name].to_bytes(8, "little")
        code += bytes.fromhex("ffd04883c428c3")
        image[free : free + len(code)] = code
        found[name] = ctypes.CFUNCTYPE(kind, kind, kind, kind)(base + free)
        free += 64
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)  # Zig builds its library
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is that of x86-64")
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_multiply_add_is_rounded_once(routines, kind):
    multiply_add = routines["of_doubles" if kind is np.float64 else "of_floats"]
    for a, b, c in cases(kind):
        found, expected = multiply_add(a, b, c), exact(kind, a, b, c)
        assert found == expected or (isnan(found) and isnan(expected)), (a, b, c)
        assert copysign(1.0, found) == copysign(1.0, expected) or isnan(found), (a, b, c)


def cases(kind):
    """Yield numbers of any size, sums that cancel, ties between two numbers, and special values."""
    rng, whole = np.random.default_rng(0), np.int64 if kind is np.float64 else np.int32
    lowest, highest = np.iinfo(whole).min, np.iinfo(whole).max
    any_three = rng.integers(lowest, highest, (10_000, 3), dtype=whole).view(kind)
    a, b = (np.ldexp(1.0 + rng.random((2, 10_000)), rng.integers(-60, 40, 10_000))).astype(kind)
    near = -(a * b) * rng.choice([1.0, 1.0 + np.finfo(kind).eps, 0.5, -1.0, -(2.0**24)], 10_000)
    small = rng.integers(1, 9, (10_000, 3)) * np.finfo(kind).smallest_subnormal
    scale = rng.choice([1.0, 0.5, 1.5, 2.0**20], 10_000)
    yield from any_three.tolist()
    yield from zip(a.tolist(), b.tolist(), near.astype(kind).tolist(), strict=True)
    yield from zip(small[:, 0].tolist(), scale.tolist(), small[:, 1].tolist(), strict=True)
    with np.errstate(over="ignore"):
        special = np.array(SPECIAL).astype(kind)
    yield from product(special.tolist(), repeat=3)


def exact(kind, a, b, c):
    """Return a b + c, rounded once."""
    if isfinite(a) and isfinite(b) and isinf(c):
        return c
    if not (isfinite(a) and isfinite(b) and isfinite(c)) or a == 0.0 or b == 0.0:
        return a * b + c
    return rounded(Fraction(a) * Fraction(b) + Fraction(c), np.finfo(kind))


def rounded(x, of):
    """Return the number of a type that is nearest to a fraction, the even one of two."""
    if x == 0:
        return 0.0
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    last = Fraction(2) ** (max(exponent, int(of.minexp)) - int(of.nmant))
    nearest = abs(round(x / last) * last)
    size = inf if nearest >= Fraction(2) ** int(of.maxexp) else float(nearest)
    return -size if x < 0 else size
