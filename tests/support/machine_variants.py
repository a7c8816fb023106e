"""Machines that this one can be taken for: by its libraries, its compiler, its locale.

Each variant is the environment of a process. `python -m` or a script started with it computes as it
would on a machine with another processor, another C library or other settings.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from numpy._core import _multiarray_umath as numpy_build
from processes import Process

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("portable_digests.py")

_DISPATCHED = numpy_build.__cpu_dispatch__
_WIDEST = [name for name in _DISPATCHED if "512" in name or name == "X86_V4"]
NO_FMA = "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA,-FMA4"
OLD_LIBC = {"GLIBC_TUNABLES": NO_FMA}
NARROW_NUMPY = {"NPY_DISABLE_CPU_FEATURES": " ".join(_DISPATCHED)}


def compiled_for(processor):
    """Return the variant whose machine code is made for a processor, and kept apart."""
    return {
        "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": f"numba-{processor}",
    }  # fmt: skip


def threads(count):
    names = ("OPENBLAS", "OMP", "MKL", "NUMBA")
    return {f"{name}_NUM_THREADS": str(count) for name in names}


VARIANTS = {
    "BLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "BLAS for Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "BLAS for SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "BLAS for Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": " ".join(_WIDEST)},
    "numpy without AVX2 and FMA": NARROW_NUMPY,
    "C library without AVX2 and FMA": OLD_LIBC,
    "compiled for Nehalem": compiled_for("nehalem"),
    "compiled for Haswell": compiled_for("haswell"),
    "a Nehalem throughout": {
        **compiled_for("nehalem"), **OLD_LIBC, **NARROW_NUMPY, "OPENBLAS_CORETYPE": "Nehalem",
    },
    "one thread, Chatham, Turkish, python -O": {
        **threads(1), "TZ": "Pacific/Chatham", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8",
        "PYTHONHASHSEED": "1", "PYTHONOPTIMIZE": "1",
    },
    "two threads, New York, plain C": {
        **threads(2), "TZ": "America/New_York", "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0",
        "PYTHONHASHSEED": "77",
    },
}  # fmt: skip
"""Environment variables of each variant, by name."""

_DECIDING = {name for variables in VARIANTS.values() for name in variables} - {"NUMBA_CACHE_DIR"}


def environment_of(variables, kept=None):
    """Return the environment of a process: this one's, without what decides, and with `variables`.

    Machine code that is kept apart is in the directory `kept`.
    """
    plain = {name: text for name, text in os.environ.items() if name not in _DECIDING}
    changed = dict(variables)
    if "NUMBA_CACHE_DIR" in changed:
        changed["NUMBA_CACHE_DIR"] = str(kept / changed["NUMBA_CACHE_DIR"])
    return plain | {"PYTHONPATH": str(ROOT)} | changed


def digests(variables, names=(), kept=None, seconds=300.0):
    """Return what `portable_digests.py` prints in a process with these variables.

    `names` are of modes, all without any; it must end within these seconds.
    """
    command = [sys.executable, str(SCRIPT), *names]
    environment = environment_of(variables, kept)
    with Process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0
    return json.loads(printed)
