"""The bytes of a few modes on another architecture: aarch64, emulated instruction by instruction.

Debian's packages bring the emulator and a Python of aarch64, the package index its wheels. Machine
code is compiled within the emulator, which takes a quarter of an hour; so `make scale` runs this.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from machine_variants import ROOT, SCRIPT, digests
from processes import Process
from system_tools import tool

FEW = ("combine dempster platt", "taxonomy class 2")
COMPUTING = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "orjson")
OTHERS = ("threadpoolctl", "pydantic", "pydantic-settings", "structlog", "redis[hiredis]")
DEBIAN, PYTHON = "bookworm", "3.11"
SECONDS = 7200.0


def system(directory):
    """Unpack a Debian of aarch64 with its Python; nothing of it is run."""
    command = [tool("debootstrap", "debootstrap"), "--foreign", "--arch=arm64"]
    command += ["--variant=minbase", "--include=python3", DEBIAN, str(directory)]
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL)
    for package in (directory / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, directory], check=True, timeout=60)


def libraries(directory):
    """Unpack the wheels of aarch64, of the versions that are installed here."""
    command = [sys.executable, "-m", "pip", "install", "--quiet"]
    command += ["--target", str(directory), "--only-binary=:all:", "--python-version", PYTHON]
    command += [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    command += ["--platform=manylinux2014_aarch64"]
    command += [f"{name}=={version(name)}" for name in COMPUTING]
    subprocess.run([*command, *OTHERS], check=True, timeout=1800)


@pytest.mark.scale
@pytest.mark.timeout(SECONDS + 3600)
def test_a_few_modes_give_the_same_bytes_on_aarch64(tmp_path):
    emulator = tool("qemu-aarch64-static", "qemu-user-static")
    debian, wheels = tmp_path / "debian", tmp_path / "wheels"
    system(debian)
    libraries(wheels)
    command = [emulator, "-L", str(debian), str(debian / f"usr/bin/python{PYTHON}")]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{wheels}", "PYTHONPYCACHEPREFIX": str(tmp_path / "code"),
        "NUMBA_CACHE_DIR": str(tmp_path / "code"), "QEMU_LD_PREFIX": str(debian),
    }  # fmt: skip
    command += [str(SCRIPT), *FEW]
    with Process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=SECONDS)
    found = json.loads(printed)
    assert found["machine"]["compiler"].startswith("generic")
    assert found["digests"] == digests({}, FEW)["digests"]
