"""The bytes of the oracle's feeds on every machine that this one can be taken for, and another.

Each variant is the environment of a process. `python -m` or a script started with it computes as it
would on a machine with another processor, another C library or other settings.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from emulated_machine import PYTHON, ROOT, installed, on_aarch64
from kernel_digests import AREAS, recorded
from numpy._core import _multiarray_umath as numpy_build
from processes import Process
from system_tools import tool

from online_svm.compiled.kernel import LIBRARY
from scripts.building.kernels import build
from scripts.building.targets import TARGETS

SCRIPT = ROOT / "tests" / "support" / "portable_feeds.py"
OTHER_LIBM = Path(__file__).parents[1] / "support" / "other_libm.c"
OFTEN = "a Nehalem throughout"
"""What CI computes: it differs in all that the others differ in one by one, but for what surrounds
a process."""
EVERY_MODE_SECONDS = 900.0
"""What all modes may take on a busy machine, at the lowest level too, which is slow."""

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


def digests(variables, names=()):
    """Return what `portable_feeds.py` prints in a process with these variables."""
    command = [sys.executable, str(SCRIPT), *names]
    plain = {name: text for name, text in os.environ.items() if name not in _DECIDING}
    environment = plain | {"PYTHONPATH": str(ROOT)} | variables
    with Process(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=EVERY_MODE_SECONDS)
    assert process.returncode == 0
    return json.loads(printed)


@pytest.fixture(scope="module")
def plain():
    return digests({})


@pytest.mark.timeout(2 * EVERY_MODE_SECONDS)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are processors of x86-64")
@pytest.mark.parametrize("variant", [
    pytest.param(OFTEN, marks=pytest.mark.slow),
    *(pytest.param(name, marks=pytest.mark.scale) for name in VARIANTS if name != OFTEN),
])  # fmt: skip
def test_every_mode_gives_the_same_bytes_on_another_machine(variant, plain):
    found = digests(VARIANTS[variant])
    check_reached(VARIANTS[variant], found["machine"], plain["machine"])
    assert found["digests"] == plain["digests"]


def check_reached(variables, machine, plain):
    """Assert that the libraries took the variant, as far as this machine allows."""
    highest = LIBRARY.processor_level()
    if "OPENBLAS_CORETYPE" in variables and highest == "v4":
        core = variables["OPENBLAS_CORETYPE"]
        assert machine["blas"] == ["Haswell" if core == "Zen" else core]  # it has those functions
    disabled = variables.get("NPY_DISABLE_CPU_FEATURES", "").split()
    assert not set(disabled) & set(machine["numpy"])
    assert machine["level"] == variables.get("ONLINE_SVM_LEVEL", highest)
    if "GLIBC_TUNABLES" in variables and highest != "v1":
        assert machine["libm"] != plain["libm"]
    if "TZ" in variables:
        assert machine["time"] != plain["time"]
    if "PYTHONHASHSEED" in variables:
        assert machine["hash"] != plain["hash"]
    assert machine["asserts"] == ("PYTHONOPTIMIZE" not in variables)


@pytest.mark.scale
@pytest.mark.timeout(2 * EVERY_MODE_SECONDS)
def test_every_mode_gives_the_same_bytes_with_a_c_library_of_other_last_bits(plain, tmp_path):
    library = tmp_path / "other_libm.so"
    options = ("-O2", "-fno-builtin", "-shared", "-fPIC")
    subprocess.run(
        [tool("cc", "gcc"), *options, "-o", library, OTHER_LIBM, "-lm"], check=True, timeout=60
    )
    found = digests({"LD_PRELOAD": str(library)})
    assert found["machine"]["libm"] != plain["machine"]["libm"]
    assert found["digests"] == plain["digests"]


def oldest():
    """Return what pip is asked for: the oldest minor version of each that is admitted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for asked in project["dependencies"]:
        name, lowest = re.match(r"([\w-]+)[^>]*>=([\d.]+)", asked).groups()
        if name in ("numpy", "scipy", "scikit-learn", "orjson"):
            yield f"{name}=={lowest}.*"


@pytest.mark.scale
@pytest.mark.timeout(2 * EVERY_MODE_SECONDS)
def test_every_mode_gives_the_same_bytes_with_the_oldest_libraries(plain, tmp_path):
    installed(tmp_path, "--no-deps", *oldest())
    found = digests({"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    same = found["libraries"].items() & plain["libraries"].items()
    assert not same  # each is another version
    assert found["digests"] == plain["digests"]


# aarch64, emulated instruction by instruction.

ON_AARCH64 = ("maps", "linear-kernel")
COMPUTING = ("numpy", "scipy", "scikit-learn", "orjson")
OTHERS = (
    "threadpoolctl", "pydantic", "pydantic-settings", "structlog", "redis[hiredis]", "safetensors",
    "narwhals",
)  # fmt: skip
EMULATED = 1800.0
DIGESTS = """
import json
from kernel_digests import AREAS, cases, digest
found = {area: {name: digest(case) for name, case in cases(area).items()} for area in AREAS}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def on_emulated(emulated, tmp_path_factory):
    """Run Python of aarch64 with a copy of the packages, whose kernels Zig has built for it."""
    wheels, code = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("code")
    on_aarch64(wheels, *(f"{name}=={version(name)}" for name in COMPUTING), *OTHERS)
    for package in ("online_svm", "workers"):
        copytree(ROOT / package, code / package, ignore=ignore_patterns("*.so", "__pycache__"))
    built = code / "online_svm" / "compiled"
    build(built, code / "objects", target=TARGETS["manylinux_2_28_aarch64"])
    environment = {name: text for name, text in os.environ.items() if name != "ONLINE_SVM_LEVEL"}
    environment |= {
        "PYTHONPATH": f"{code}:{wheels}:{SCRIPT.parent}", "PYTHONPYCACHEPREFIX": str(code),
        "QEMU_LD_PREFIX": str(emulated.debian),
    }  # fmt: skip

    def run(*arguments):
        command = [*emulated.runs, str(emulated.debian / f"usr/bin/python{PYTHON}"), *arguments]
        with Process(
            command, cwd=code, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            printed, _ = process.communicate(timeout=EMULATED)
        assert process.returncode == 0
        return json.loads(printed)

    return run


@pytest.mark.scale
@pytest.mark.timeout(EMULATED + 1800)  # a Debian is fetched
def test_every_kernel_gives_the_same_bytes_on_aarch64(on_emulated):
    assert on_emulated("-c", DIGESTS) == {area: recorded(area) for area in AREAS}


@pytest.mark.scale
@pytest.mark.timeout(EMULATED + 1800)
def test_a_few_modes_give_the_same_bytes_on_aarch64(on_emulated):
    found = on_emulated(str(SCRIPT), *ON_AARCH64)
    assert found["machine"]["level"] == "aarch64"
    assert found["digests"] == digests({}, ON_AARCH64)["digests"]
