"""The bytes of every mode on every machine that this one can be taken for, and on another one."""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from llvmlite import binding
from machine_variants import OLD_LIBC, ROOT, SCRIPT, VARIANTS, digests
from processes import Process
from system_tools import missing, tool

FEW = (
    "svc interleaved 2", "svc oldest 3", "committee of five 2", "psvm oldest",
    "late labels of a committee", "drift refit of a committee 3", "combine cautious platt",
    "kinds of a committee",
)  # fmt: skip
"""Modes which together compute with every function that once differed."""
OTHER_LIBM = Path(__file__).parents[1] / "support" / "other_libm.c"
OFTEN = "a Nehalem throughout"
"""What CI computes: it differs in all that the others differ in one by one, but for what surrounds
a process."""
COMPILING = 1500.0
"""Seconds that all modes may take where all machine code has to be made, on a busy machine."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where machine code for other processors is kept while the tests of this file run."""
    return tmp_path_factory.mktemp("machine-code")


@pytest.fixture(scope="module")
def plain():
    """What every mode gives on this machine as it is."""
    return digests({}, seconds=COMPILING)


@pytest.mark.slow
@pytest.mark.timeout(620)  # where no machine code is kept yet, it is made
def test_a_c_library_without_fma_changes_no_byte_of_a_few_modes():
    assert digests(OLD_LIBC, FEW)["digests"] == digests({}, FEW)["digests"]


@pytest.mark.timeout(2 * COMPILING)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are processors of x86-64")
@pytest.mark.parametrize("variant", [
    pytest.param(OFTEN, marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.scale) for name in VARIANTS if name != OFTEN),
])  # fmt: skip
def test_every_mode_gives_the_same_bytes_on_another_machine(variant, plain, kept):
    found = digests(VARIANTS[variant], kept=kept, seconds=COMPILING)
    check_reached(VARIANTS[variant], found["machine"], plain["machine"])
    assert found["digests"] == plain["digests"]


def check_reached(variables, machine, plain):
    """Assert that the libraries did as they were told, as far as this machine lets them."""
    here = binding.get_host_cpu_features()
    if "OPENBLAS_CORETYPE" in variables and here.get("avx512vl"):
        core = variables["OPENBLAS_CORETYPE"]
        assert machine["blas"] == ["Haswell" if core == "Zen" else core]  # it has those functions
    disabled = variables.get("NPY_DISABLE_CPU_FEATURES", "").split()
    assert not set(disabled) & set(machine["numpy"])
    if "NUMBA_CPU_NAME" in variables:
        assert machine["compiler"] == f"{variables['NUMBA_CPU_NAME']} "
    if "GLIBC_TUNABLES" in variables and here.get("fma"):
        assert machine["libm"] != plain["libm"]
    if "TZ" in variables:
        assert machine["time"] != plain["time"]
    if "PYTHONHASHSEED" in variables:
        assert machine["hash"] != plain["hash"]
    assert machine["asserts"] == ("PYTHONOPTIMIZE" not in variables)


@pytest.mark.scale
@pytest.mark.timeout(2 * COMPILING)
def test_every_mode_gives_the_same_bytes_with_a_c_library_of_other_last_bits(plain, tmp_path):
    library = tmp_path / "other_libm.so"
    options = ("-O2", "-fno-builtin", "-shared", "-fPIC")
    subprocess.run(
        [tool("cc", "gcc"), *options, "-o", library, OTHER_LIBM, "-lm"], check=True, timeout=60
    )
    found = digests({"LD_PRELOAD": str(library)}, seconds=COMPILING)
    assert found["machine"]["libm"] != plain["machine"]["libm"]
    assert found["digests"] == plain["digests"]


def installed(directory, *requirements):
    """Let pip put wheels into a directory."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(directory)]
    command += ["--only-binary=:all:", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        missing(f"needs a package index: {done.stderr[-300:]}")


def oldest():
    """Return what pip is asked for: the oldest minor version of each that is admitted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for asked in project["dependencies"]:
        name, lowest = re.match(r"([\w-]+)[^>]*>=([\d.]+)", asked).groups()
        if name in ("numpy", "scipy", "scikit-learn", "orjson"):
            yield f"{name}=={lowest}.*"


@pytest.mark.scale
@pytest.mark.timeout(2 * COMPILING)
def test_every_mode_gives_the_same_bytes_with_the_oldest_libraries(plain, tmp_path):
    installed(tmp_path, "--no-deps", *oldest())
    found = digests({"PYTHONPATH": f"{tmp_path}:{ROOT}"}, seconds=COMPILING)
    same = found["libraries"].items() & plain["libraries"].items()
    assert not same  # each is another version
    assert found["digests"] == plain["digests"]


# aarch64, emulated instruction by instruction. Debian's packages bring the emulator and a Python of
# aarch64, the package index its wheels. Machine code is compiled within the emulator, which takes
# a quarter of an hour.

ON_AARCH64 = ("combine dempster platt", "taxonomy class 2")
COMPUTING = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "orjson")
OTHERS = ("threadpoolctl", "pydantic", "pydantic-settings", "structlog", "redis[hiredis]")
PYTHON = "3.11"
EMULATED = 7200.0


def unpacked_debian(directory):
    """Unpack a Debian of aarch64 with its Python; nothing of it is run."""
    command = [tool("debootstrap", "debootstrap"), "--foreign", "--arch=arm64"]
    command += ["--variant=minbase", "--include=python3", "bookworm", str(directory)]
    subprocess.run(command, check=True, timeout=900, stdout=subprocess.DEVNULL)
    for package in (directory / "var/cache/apt/archives").glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, directory], check=True, timeout=60)


@pytest.mark.scale
@pytest.mark.timeout(EMULATED + 3600)
def test_a_few_modes_give_the_same_bytes_on_aarch64(tmp_path):
    emulator = tool("qemu-aarch64-static", "qemu-user-static")
    debian, wheels, code = (tmp_path / name for name in ("debian", "wheels", "code"))
    unpacked_debian(debian)
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 17)]
    platforms += ["--platform=manylinux2014_aarch64", "--python-version", PYTHON]
    installed(wheels, *platforms, *(f"{name}=={version(name)}" for name in COMPUTING), *OTHERS)
    command = [emulator, "-L", str(debian), str(debian / f"usr/bin/python{PYTHON}")]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}:{wheels}", "PYTHONPYCACHEPREFIX": str(code),
        "NUMBA_CACHE_DIR": str(code), "QEMU_LD_PREFIX": str(debian),
    }  # fmt: skip
    command += [str(SCRIPT), *ON_AARCH64]
    with Process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=EMULATED)
    found = json.loads(printed)
    assert found["machine"]["compiler"].startswith("generic")
    assert found["digests"] == digests({}, ON_AARCH64)["digests"]
