"""Machines that this one can be taken for: by its libraries, its level, its locale.

Each variant is the environment of a process. `python -m` or a script started with it computes as it
would on a machine with another processor, another C library or other settings.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from numpy._core import _multiarray_umath as numpy_build
from processes import Process
from system_tools import missing, tool

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("portable_feeds.py")

_DISPATCHED = numpy_build.__cpu_dispatch__
_WIDEST = [name for name in _DISPATCHED if "512" in name or name == "X86_V4"]
NO_FMA = "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable,-AVX2,-FMA,-FMA4"
OLD_LIBC = {"GLIBC_TUNABLES": NO_FMA}
NARROW_NUMPY = {"NPY_DISABLE_CPU_FEATURES": " ".join(_DISPATCHED)}


def threads(count):
    names = ("OPENBLAS", "OMP", "MKL")
    return {f"{name}_NUM_THREADS": str(count) for name in names}


VARIANTS = {
    "BLAS for Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "BLAS for Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "BLAS for SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "BLAS for Sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "numpy without AVX-512": {"NPY_DISABLE_CPU_FEATURES": " ".join(_WIDEST)},
    "numpy without AVX2 and FMA": NARROW_NUMPY,
    "C library without AVX2 and FMA": OLD_LIBC,
    "kernels for v1": {"ONLINE_SVM_LEVEL": "v1"},
    "kernels for v3": {"ONLINE_SVM_LEVEL": "v3"},
    "a Nehalem throughout": {
        "ONLINE_SVM_LEVEL": "v1", **OLD_LIBC, **NARROW_NUMPY, "OPENBLAS_CORETYPE": "Nehalem",
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

_DECIDING = {name for variables in VARIANTS.values() for name in variables}


def environment_of(variables):
    """Return the environment of a process: this one's, without what decides, and with these."""
    plain = {name: text for name, text in os.environ.items() if name not in _DECIDING}
    return plain | {"PYTHONPATH": str(ROOT)} | variables


def digests(variables, names=(), seconds=300.0):
    """Return what `portable_feeds.py` prints in a process with these variables."""
    command = [sys.executable, str(SCRIPT), *names]
    environment = environment_of(variables)
    with Process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0
    return json.loads(printed)


PYTHON = "3.11"


class Emulated(NamedTuple):
    """The command that runs a program of aarch64, and the directory of its Debian."""

    runs: list[str]
    debian: Path


def emulated_in(directory):
    emulator = tool("qemu-aarch64-static", "qemu-user-static")
    unpacked_debian(directory)
    return Emulated([emulator, "-L", str(directory)], directory)


def unpacked_debian(directory):
    """Unpack a Debian of aarch64 with its Python; nothing of it is run."""
    command = [tool("debootstrap", "debootstrap"), "--foreign", "--arch=arm64"]
    command += ["--variant=minbase", "--include=python3", "bookworm", str(directory)]
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL)
    for package in (directory / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, directory], check=True, timeout=60)


def installed(directory, *requirements):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(directory)]
    command += ["--only-binary=:all:", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        missing(f"needs a package index: {done.stderr[-300:]}")


def on_aarch64(directory, *requirements):
    """Let pip put wheels for aarch64 into a directory."""
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    platforms += ["--platform=manylinux2014_aarch64", "--python-version", PYTHON]
    installed(directory, *platforms, *requirements)
